#include "watch/stacks/python_beat.h"

#include <functional>
#include <set>
#include <utility>

#include "watch/stacks/python_harmless.h"

namespace mprun {
namespace {

// Longer functions, and more of them, take too long to follow.
constexpr std::size_t kLongestFunction = 4096, kMostCalled = 64;

// What is found out about one thread.
struct Findings {
  PythonBeat* beat;
  std::uint64_t called = 0;                      ///< code that the caller of this one judges
  bool acts = false;                             ///< on objects that its own conditions may ask
  bool sets_cells = false;                       ///< variables that it shares with other functions
  std::set<std::string> set = {};                ///< names of attributes and globals that are set
  std::set<std::string> called_attributes = {};  ///< names of attributes of which the value is called
  [[nodiscard]] bool calls_what_it_sets() const {
    return std::any_of(called_attributes.begin(), called_attributes.end(),
                       [this](const std::string& name) { return set.count(name) != 0; });
  }
  std::set<std::pair<std::uint64_t, std::uint64_t>> checked = {};  ///< code and `self`
};

// Checks the instructions of a function, and of those of the program's own that it calls.
class BeatReader {
  static constexpr int kDeepest = 4;
  static constexpr std::size_t kMostHandlers = 8;
  static constexpr std::string_view kTextFile = "_io.TextIOWrapper";
  static constexpr std::uint64_t kGetter = 16;   // propertyobject
  static constexpr unsigned kFirstInPlace = 13;  // NB_INPLACE_ADD

 public:
  using OfInstruction = std::function<bool(std::size_t)>;

  BeatReader(const PythonNames& names, Findings* findings) : names_(names), findings_(findings) {}

  /// Those of one function that are on the ways. `each_time`: whether one is reached whatever happens.
  bool check(const std::vector<PythonInstruction>& all, const PythonWays& ways, const OfInstruction& each_time) {
    for (const std::size_t i : ways.reached) {
      if (all[i].op == kStoreFast) stored_.insert(all[i].argument);
    }
    for (const std::size_t i : ways.reached) {
      each_time_ = [&each_time, i] { return each_time(i); };
      is_caught_ = ways.next[i].size() > 1;
      if (!check_one(all, i)) return false;
    }
    return !needs_attribute_ && !findings_->calls_what_it_sets();
  }

  /// Whether the condition of a jump only asks what another thread of the process would have to change, or a child.
  bool is_passive(const std::vector<PythonInstruction>& all, std::size_t jump) const {
    std::uint64_t object = 0;
    int values = 0;  // on the stack, of those that the condition loads
    bool may_call = false;
    for (std::size_t i = begin_of_condition(all, jump); i < jump; ++i) {
      const PythonInstruction& one = all[i];
      switch (one.op) {
        case kLoadFast:
        case kLoadDeref:
        case kLoadGlobal:
        case kLoadName:
          object = variable(one);
          ++values;
          break;
        case kLoadAttribute:
          if (values == 0) return false;
          if (asks_child(object, names_.name_loaded(one))) continue;
          object = is_set(one) ? 0 : names_.attribute_of(object, names_.name_loaded(one));
          break;
        case kLoadMethod:
          may_call = asks_child(object, names_.name_loaded(one)) ||
                     (is_of_threads(object) && is_method(names_.name_loaded(one), kAsks));
          if (values == 0 || !may_call) return false;
          continue;
        case kPrecall:
        case kCall:
          if (one.argument != 0 || !may_call) return false;
          continue;
        case kLoadConst:
        case kLoadSmallInt:
          ++values;
          continue;
        case kCompare:
          if (--values < 1) return false;
          continue;
        case kNot:
          continue;
        default:
          return false;
      }
      may_call = false;
      if (object == 0 || !(takes_attribute(all[i + 1]) || is_harmless_type(names_.type_name(object)))) return false;
    }
    return values == 1 && !findings_->acts;
  }

 private:
  static bool takes_attribute(const PythonInstruction& one) {
    return one.op == kLoadMethod || one.op == kLoadAttribute;
  }

  // Whether the function, or one that it calls, sets what has the name that is loaded.
  bool is_set(const PythonInstruction& load) const { return findings_->set.count(names_.name_loaded(load)) != 0; }

  // What the variable is that is loaded; 0: not known, or the function sets it.
  std::uint64_t variable(const PythonInstruction& load) const {
    switch (load.op) {
      case kLoadFast:
        return stored_.count(load.argument) != 0 ? 0 : names_.slot(load.argument);
      case kLoadDeref:
        return findings_->sets_cells ? 0 : names_.cell(load.argument);
      default:
        return is_set(load) ? 0 : names_.global(names_.name_loaded(load));
    }
  }

  // Whether the attribute, or the method, tells whether a child has ended.
  bool asks_child(std::uint64_t object, const std::string& name) const {
    constexpr std::array<std::string_view, 4> kOfChildren = {"poll", "is_alive", "exitcode", "returncode"};
    const std::string module = names_.module_of_type(names_.type_of(object));
    const bool is_child =
        module == "subprocess" || module == "multiprocessing.context" || module == "multiprocessing.process";
    if (!is_child || !is_among(kOfChildren, name)) return false;
    findings_->beat->asks_child = true;
    return true;
  }

  static std::size_t begin_of_condition(const std::vector<PythonInstruction>& all, std::size_t jump) {
    std::size_t begin = jump;
    const auto is_part = [](PythonOp op) {
      constexpr std::array kParts = {kLoadFast,     kLoadDeref, kLoadGlobal, kLoadName,  kLoadAttribute,
                                     kLoadMethod,   kPrecall,   kCall,       kNot,       kLoadConst,
                                     kLoadSmallInt, kCompare,   kBinary,     kSubscript, kContains};
      return std::find(kParts.begin(), kParts.end(), op) != kParts.end();
    };
    while (begin > 0 && is_part(all[begin - 1].op)) --begin;
    return begin;
  }

  bool is_of_threads(std::uint64_t object) const {
    const std::string module = names_.module_of_type(names_.type_of(object));
    return module == "threading" || module == "queue" || module == "concurrent.futures._base";
  }

  bool check_one(const std::vector<PythonInstruction>& all, std::size_t i) {
    const PythonInstruction& one = all[i];
    if (one.op == kCopy) {  // as `self.count += 1` does
      copied_ = top_;
      return true;
    }
    if (needs_attribute_ && !takes_attribute(one) && one.op != kStoreAttribute) return false;
    const std::uint64_t object = std::exchange(top_, 0);
    needs_attribute_ = false;
    was_standard_ = std::exchange(is_standard_, false);
    const bool will_be_called = std::exchange(will_be_called_, false) || one.op == kLoadMethod ||
                                (one.op == kLoadGlobal && (one.argument & 1U) != 0) ||
                                (i > 0 && all[i - 1].op == kPushNull);
    // What is called may be an attribute of what is loaded.
    const bool goes_on = i + 1 < all.size() && takes_attribute(all[i + 1]);
    const bool is_called = will_be_called && !goes_on;
    will_be_called_ = will_be_called && goes_on && one.op != kLoadMethod;
    switch (one.op) {
      case kLoadFast:
        return names_.is_cell(one.argument) || load_local(one.argument, is_called);
      case kLoadDeref:
        return load(names_.cell(one.argument), is_called);
      case kLoadClosure:
        return true;
      case kLoadGlobal:
      case kLoadName:
        return load_global(names_.name_loaded(one), is_called);
      case kLoadConst:
        return check_constant(names_.constant(one.argument));
      case kLoadSmallInt:
        return true;
      case kLoadMethod:
      case kLoadAttribute:
        return attribute(object, names_.name_loaded(one), is_called);
      case kStoreAttribute:
        return store_attribute(object, names_.name(one.argument));
      case kPushNull:
        return i + 1 < all.size() && (all[i + 1].op == kLoadFast || all[i + 1].op == kLoadName ||
                                      all[i + 1].op == kLoadDeref || all[i + 1].op == kLoadGlobal);
      case kSwap:
        top_ = copied_;
        return true;
      case kStoreName:
      case kStoreGlobal:
        findings_->set.insert(names_.name(one.argument));
        findings_->beat->changes_variables = true;
        return true;
      case kStoreDeref:
        findings_->sets_cells = true;
        [[fallthrough]];
      case kStoreSubscript:
        findings_->beat->changes_variables = true;
        return true;
      case kBinary:
        if (one.argument >= kFirstInPlace && !is_stored_locally(all, i)) findings_->beat->changes_variables = true;
        return true;
      default:
        if (depth_ == 0) return is_harmless(one.op) || one.op == kMakesObject;
        // Raising an exception could end the thread.
        return (is_harmless(one.op) && one.op != kRaise) || one.op == kMakesObject || one.op == kReturnGenerator ||
               one.op == kYield;
    }
  }

  // A number that the function itself counts.
  static bool is_stored_locally(const std::vector<PythonInstruction>& all, std::size_t i) {
    return i + 1 < all.size() && all[i + 1].op == kStoreFast && i > 1 &&
           (all[i - 1].op == kLoadConst || all[i - 1].op == kLoadSmallInt);
  }

  // What a function sets itself is another object each time, perhaps one that does something else.
  bool load_local(unsigned index, bool is_called) {
    const std::uint64_t value = names_.slot(index);
    const bool is_known = stored_.count(index) == 0 || is_harmless_type(names_.type_name(value));
    return load(is_known ? value : 0, is_called);
  }

  bool load_global(const std::string& name, bool is_called) {
    const std::uint64_t value = names_.global(name);
    return value != 0 && load(value, is_called);
  }

  // A value that may be called, written, compared, or given to a function; else its attributes may be asked.
  bool load(std::uint64_t value, bool is_called) {
    if (value == 0) return !is_called;  // not set yet, or an argument that is not known
    top_ = value;
    const std::string type = names_.type_name(value);
    if (type == "builtin_function_or_method") return c_function(value);
    if (type == "function") return function(value, 0);
    if (type == "type") return is_class_harmless(value);
    if (is_called) return false;
    needs_attribute_ = !is_harmless_type(type) && !is_of_known_class(value);
    return true;
  }

  bool is_of_known_class(std::uint64_t object) const {
    const std::string module = names_.module_of_type(names_.type_of(object));
    return is_harmless_module(module) || has_waits(module);
  }

  bool is_class_harmless(std::uint64_t type) const {
    const std::uint64_t flags = names_.flags_of_type(type);
    if ((flags & PythonNames::kExceptionType) != 0) return true;
    if ((flags & PythonNames::kHeapType) != 0) return is_harmless_module(names_.module_of_type(type));
    const std::string name = names_.name_of_type(type);
    return name.find('.') == std::string::npos || is_harmless_type(name);
  }

  bool c_function(std::uint64_t function) {
    const std::string module = names_.c_function_module(function), name = names_.c_function_name(function);
    if (is_harmless_function(module, name)) return !is_method(name, kWrites) || writes();
    if (module.empty() && is_method(name, kWrites)) return each_time_();
    if (is_method(name, kTakes) && name != "get") return false;  // not dict's
    return (module.empty() || module == "_io" || module == "io") && method(name, false);
  }

  bool function(std::uint64_t function, std::uint64_t self) {
    const std::uint64_t code = names_.code_of_function(function);
    if (code == 0) return false;
    if (code == findings_->called) return true;
    const PythonCode* const read = names_.code_at(code);
    if (read == nullptr) return false;
    const std::string module = names_.module_of_function(function);
    const std::string name = read->function.substr(read->function.rfind('.') + 1);
    if (is_harmless_function(module, name)) {
      return !is_method(name, kWrites) ||
             (writes() &&
              (module != "logging" || only_writes(names_.entry_of(names_.globals_of_function(function), "root"))));
    }
    if (has_waits(module)) return is_of_wait(module, name);
    return !is_library_file(read->file) && check_code(code, names_.globals_of_function(function), self);
  }

  // A function of the program's own, from its first instruction on. If it may raise an exception that its caller
  // catches, it does nothing each time.
  bool check_code(std::uint64_t code, std::uint64_t globals, std::uint64_t self) {
    if (!findings_->checked.insert({code, self}).second) return true;
    if (findings_->checked.size() > kMostCalled) return false;
    BeatReader inner(PythonNames(names_, code, globals, self), findings_);
    inner.depth_ = depth_ + 1;
    const std::vector<PythonInstruction> all = inner.names_.instructions();
    if (all.empty() || all.size() > kLongestFunction || inner.depth_ > kDeepest) return false;
    const bool is_generator =
        std::any_of(all.begin(), all.end(), [](const PythonInstruction& one) { return one.op == kReturnGenerator; });
    const bool is_each_time = each_time_() && !is_caught_ && !is_generator;
    const PythonWays ways = ways_from_wait(all, 0, inner.names_, TimeUp::kNotKnown, true);
    const WaysOfCall of_call(all, 0, ways);
    return inner.check(all, ways, [&](std::size_t i) {
      return is_each_time && !of_call.leaves([i](std::size_t, std::size_t to) { return to != i; });
    });
  }

  // A constant may be the code of a comprehension, or of a function that is made here.
  bool check_constant(std::uint64_t constant) {
    if (constant == 0) return false;
    return names_.code_at(constant) == nullptr || check_code(constant, names_.globals(), 0);
  }

  bool attribute(std::uint64_t object, const std::string& name, bool is_called) {
    if (object == 0) return !is_called || method(name, true);
    const std::string type = names_.type_name(object);
    if (type == "module") {
      const std::uint64_t value = names_.attribute_of(object, name);
      is_standard_ = names_.text(names_.attribute_of(object, "__name__")) == "sys";
      return value != 0 && load(value, is_called);
    }
    if (type == kTextFile && is_method(name, kWrites)) return was_standard_ ? writes() : each_time_();
    if (type == kTextFile && is_method(name, kTakes)) return false;
    if (is_harmless_type(type) || (type == "type" && is_class_harmless(object))) return method(name, false);
    const std::string module = names_.module_of_type(names_.type_of(object));
    if (module == "logging") return !is_method(name, kWrites) ? method(name, false) : writes() && only_writes(object);
    if (is_harmless_module(module)) return method(name, false);
    if (has_own(object, "__getattribute__")) return false;
    const std::uint64_t value = names_.attribute_of(object, name);
    if (has_waits(module) && (is_called || !is_harmless_type(names_.type_name(value)))) {
      return is_of_wait(module, name);
    }
    if (value != 0) {
      if (is_called) findings_->called_attributes.insert(name);
      return load(value, is_called);
    }
    const std::uint64_t entry = names_.class_entry_of(object, name);
    if (entry == 0) return false;
    const std::string kind = names_.type_name(entry);
    if (kind == "property") return function(names_.word(entry + kGetter), object);
    if (kind == "function") return is_called && function(entry, object);
    return load(entry, is_called);
  }

  // A class may run code of its own when an attribute is set.
  bool store_attribute(std::uint64_t object, const std::string& name) {
    findings_->beat->changes_variables = true;
    findings_->set.insert(name);
    return object != 0 && names_.class_entry_of(object, name) == 0 && !has_own(object, "__setattr__");
  }

  // Whether a class in Python has a method of this name: of the interpreter's, "object" has one.
  bool has_own(std::uint64_t object, const std::string& method) const {
    return names_.type_name(names_.class_entry_of(object, method)) == "function";
  }

  // Functions of the program that are asked of each record.
  bool has_filters(std::uint64_t logger_or_handler) const {
    const std::uint64_t filters = names_.attribute_of(logger_or_handler, "filters");
    return filters == 0 || names_.word(filters + PythonNames::kSizeOf) != 0;
  }

  // A logger, and those that it hands its records to.
  bool only_writes(std::uint64_t logger) const {
    for (std::size_t depth = 0; logger != 0 && depth < kMostHandlers; ++depth) {
      const std::uint64_t handlers = names_.attribute_of(logger, "handlers");
      const std::uint64_t count = names_.word(handlers + PythonNames::kSizeOf);
      const std::uint64_t items = names_.word(handlers + PythonNames::kItems);
      if (handlers == 0 || count > kMostHandlers || has_filters(logger)) return false;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t handler = names_.word(items + i * PythonNames::kWord);
        const std::uint64_t type = names_.type_of(handler);
        const bool is_known = names_.module_of_type(type).starts_with("logging");
        if (!is_known || has_filters(handler) || !is_log_handler(names_.name_of_type(type))) return false;
      }
      logger = names_.attribute_of(logger, "parent");
      if (names_.type_name(logger) == "NoneType") return true;
    }
    return false;
  }

  // Of an object that threads wait for. Each item that leaves a queue of threads lets one go on that waits for room; a
  // pipe or a socket may have to lose many first.
  bool is_of_wait(const std::string& module, const std::string& name) {
    if (is_method(name, kAsks)) return true;
    if (module != "queue" && is_method(name, kTakes)) return false;
    findings_->acts |= !name.starts_with("send");
    return is_method(name, kActs) && each_time_();
  }

  // A method of an object of a harmless class, or of one that is not known.
  bool method(const std::string& name, bool is_unknown) {
    if (name.empty() || is_method(name, kDenied)) return false;
    if (is_unknown) return is_method(name, kHarmlessOfAny);
    if (is_method(name, kWrites)) return writes();
    if (is_method(name, kChanges)) findings_->acts = findings_->beat->changes_variables = true;
    if (!is_method(name, kActs)) return true;
    findings_->acts = true;
    return each_time_();
  }

  bool writes() {
    findings_->beat->prints_at_times |= !each_time_();
    return true;
  }

  PythonNames names_;
  Findings* findings_;
  int depth_ = 0;
  std::set<unsigned> stored_;        ///< local variables that are set
  std::function<bool()> each_time_;  ///< whether the instruction that is checked is executed each time
  bool is_caught_ = false;           ///< whether the function goes on if that raises an exception
  std::uint64_t top_ = 0;            ///< what the last instruction loaded; 0: not known
  bool is_standard_ = false;         ///< it is an attribute of sys, as sys.stderr
  bool was_standard_ = false;        ///< the same of what was loaded before
  std::uint64_t copied_ = 0;         ///< what the last kCopy took
  bool will_be_called_ = false;      ///< it, or an attribute of it
  bool needs_attribute_ = false;     ///< only attributes of it may be used
};

}  // namespace

AfterWait after_wait(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                     PythonCodeReader* codes, ProcessMemory* memory, const LimitedCall& called, PythonBeat* beat) {
  const PythonNames names(frame, code, layout, codes, memory);
  const std::vector<PythonInstruction> all = names.instructions();
  const auto call = call_of_frame(frame, code, layout, names, all);
  if (all.size() > kLongestFunction || !call || is_no_wait(all, *call, names, called.end)) return AfterWait::kMore;
  const PythonWays ways = ways_from_wait(all, *call, names, called.end, true);
  const auto runs_code = [&](std::size_t i) {
    return all[i].op == kForIter && runs_code_to_iterate(frame, code, layout, names);
  };
  if (std::any_of(ways.reached.begin(), ways.reached.end(), runs_code)) return AfterWait::kMore;
  const WaysOfCall of_call(all, *call, ways);
  const auto each_time = [&](std::size_t i) { return ways.come_back && !of_call.comes_back_without(i); };
  Findings findings{beat, called.code};
  BeatReader reader(names, &findings);
  if (!reader.check(all, ways, each_time)) return AfterWait::kMore;
  if (!ways.come_back) return AfterWait::kReturns;
  // A condition that only another thread could change stays as it is: its way out of the loop is not taken.
  const auto may_take = [&](std::size_t from, std::size_t to) {
    const bool stays = jumps_on_condition(all[from].op) && reader.is_passive(all, from);
    return !stays || of_call.comes_back_from(to);
  };
  return of_call.leaves(may_take) ? AfterWait::kMore : AfterWait::kBeats;
}

}  // namespace mprun
