#include "watch/stacks/python_loop.h"

#include <map>
#include <utility>
#include <vector>

#include "watch/stacks/python_wait_call.h"

namespace mprun {
namespace {

struct Passive {
  std::string_view module, type;
  const char* name;        ///< for what a loop waits that asks it; nullptr: an idle loop may ask it too
  bool is_shared = false;  ///< with other processes
};
constexpr std::array kPassive = {
    Passive{"concurrent.futures._base", "Future", "a future"},
    Passive{"multiprocessing.pool", "ApplyResult", "a result of a pool"},
    Passive{"multiprocessing.pool", "MapResult", "a result of a pool"},
    Passive{"threading", "Thread", "the end of a thread"},
    Passive{"queue", "Queue", "an item of a queue"},
    Passive{"queue", "LifoQueue", "an item of a queue"},
    Passive{"queue", "PriorityQueue", "an item of a queue"},
    Passive{"threading", "Event", nullptr},
    Passive{"threading", "Condition", nullptr},
    Passive{"threading", "Semaphore", nullptr},
    Passive{"multiprocessing.queues", "Queue", "an item of a queue", true},
    Passive{"multiprocessing.queues", "JoinableQueue", "an item of a queue", true},
    Passive{"multiprocessing.queues", "SimpleQueue", "an item of a queue", true},
    Passive{"multiprocessing.synchronize", "Event", nullptr, true},
    Passive{"multiprocessing.sharedctypes", "Synchronized", nullptr, true},
    Passive{"multiprocessing.sharedctypes", "SynchronizedArray", nullptr, true},
    Passive{"multiprocessing.synchronize", "Lock", nullptr, true},
    Passive{"multiprocessing.synchronize", "RLock", nullptr, true},
    Passive{"ctypes", "c_bool", nullptr, true},
    Passive{"ctypes", "c_int", nullptr, true},
    Passive{"ctypes", "c_long", nullptr, true},
    Passive{"ctypes", "c_double", nullptr, true},
};
// Between two waits, a loop may ask these too: a wait for them would find the same. Loggers only write.
constexpr std::array kWaitedFor = {
    Passive{"multiprocessing.connection", "Connection", nullptr},
    Passive{"multiprocessing.context", "Process", nullptr},
    Passive{"multiprocessing.context", "ForkProcess", nullptr},
    Passive{"multiprocessing.context", "SpawnProcess", nullptr},
    Passive{"multiprocessing.context", "ForkServerProcess", nullptr},
    Passive{"subprocess", "Popen", nullptr},
    Passive{"threading", "Barrier", nullptr},
    Passive{"multiprocessing.synchronize", "Semaphore", nullptr},
    Passive{"multiprocessing.synchronize", "BoundedSemaphore", nullptr},
    Passive{"multiprocessing.synchronize", "Condition", nullptr},
    Passive{"multiprocessing.synchronize", "Barrier", nullptr},
    Passive{"threading", "BoundedSemaphore", nullptr},
    Passive{"threading", "_RLock", nullptr},
    Passive{"concurrent.futures.process", "ProcessPoolExecutor", nullptr},
    Passive{"concurrent.futures.thread", "ThreadPoolExecutor", nullptr},
    Passive{"logging", "Logger", nullptr},
    Passive{"logging", "RootLogger", nullptr},
};
constexpr std::array<std::string_view, 11> kMethodsOfWaits = {
    "poll", "recv", "exitcode", "returncode", "pid", "name", "debug", "info", "warning", "error", "communicate"};
constexpr std::array<std::string_view, 2> kWaits = {"select", "waitpid"};
constexpr std::array<std::string_view, 9> kPlainTypes = {"NoneType", "bool", "int",   "float",       "str",
                                                         "bytes",    "list", "tuple", "_thread.lock"};
constexpr std::array<std::string_view, 5> kCollections = {"list", "tuple", "dict", "set", "collections.deque"};
constexpr std::array<std::string_view, 21> kMethods = {
    "done",   "running",    "cancelled", "result",  "exception", "ready",    "successful",
    "get",    "get_nowait", "empty",     "full",    "qsize",     "is_alive", "join",
    "is_set", "wait",       "locked",    "acquire", "append",    "value",    "get_lock"};
constexpr std::array<std::string_view, 3> kCountThreads = {"active_count", "activeCount", "enumerate"};
constexpr std::array<std::string_view, 6> kFunctions = {"sleep", "all", "any", "len", "isinstance", "print"};

class LoopReader {
  static constexpr std::size_t kMostItems = 64;
  static constexpr std::uint64_t kWord = PythonNames::kWord, kSizeOf = PythonNames::kSizeOf;

 public:
  LoopReader(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout, PythonCodeReader* codes,
             ProcessMemory* memory)
      : frame_(frame),
        code_(code),
        layout_(layout),
        names_(frame, code, layout, codes, memory),
        instructions_(names_.instructions()) {}

  std::optional<AwaitedInLoop> awaited() {
    const auto [begin, end] = loop();
    if (begin == end) return std::nullopt;
    for (std::size_t i = 0; i + 1 < instructions_.size(); ++i) {
      const PythonInstruction& one = instructions_[i];
      if (one.at < begin || one.at >= end) continue;
      if (!check(one, instructions_[i + 1])) return std::nullopt;
      note_test(one, end);
    }
    if (pending_ != 0 || !check_handlers(begin, end)) return std::nullopt;
    if (awaited_ != nullptr) return AwaitedInLoop{awaited_, reads_shared_};
    if (!has_exit_) return std::nullopt;
    const bool is_flag = !compares_ && !tested_.length;
    if (tested_.shared) return AwaitedInLoop{"another value in shared memory", true, is_flag};
    if (tested_.length) return AwaitedInLoop{"another length of a list, a dict or the like", false};
    if (tested_.variable) return AwaitedInLoop{"another value of a variable", false, is_flag};
    return std::nullopt;
  }

  BetweenWaits between_waits(const LimitedCall& called) {
    is_between_waits_ = true;
    called_ = called.code;
    const auto call = call_of_frame(frame_, code_, layout_, names_, instructions_);
    if (!call) return BetweenWaits::kMayDecide;
    if (is_no_wait(instructions_, *call, names_, called.end)) return BetweenWaits::kLeaves;
    const PythonWays ways = ways_from_wait(instructions_, *call, names_, called.end);
    for (const std::size_t i : ways.reached) {
      if (instructions_[i].op == kForIter && runs_code_to_iterate(frame_, code_, layout_, names_))
        return BetweenWaits::kMayDecide;
      if (i + 1 >= instructions_.size()) continue;
      if (!check(instructions_[i], instructions_[i + 1])) return BetweenWaits::kMayDecide;
    }
    return ways.come_back ? BetweenWaits::kLooksOn : BetweenWaits::kLeaves;
  }

 private:
  std::uint64_t word(std::uint64_t address) const { return names_.word(address); }

  bool is_for(std::size_t at) const {
    return std::any_of(instructions_.begin(), instructions_.end(),
                       [at](const PythonInstruction& one) { return one.at == at && one.op == kForIter; });
  }

  // The units of the innermost loop that has no end of its own: from where it begins to past the last jump there.
  std::pair<std::size_t, std::size_t> loop() const {
    const std::size_t now = (word(frame_.address + layout_.frame.instruction) - code_.begin) / 2;
    std::map<std::size_t, std::size_t> ends;  // by where the loop begins
    for (const PythonInstruction& one : instructions_) {
      if (!jumps_back(one) || one.op == kJumpNoInterrupt) continue;
      std::size_t& end = ends[one.target];
      end = std::max(end, one.at + 1);
    }
    const auto innermost = std::find_if(ends.rbegin(), ends.rend(), [&](const auto& one) {
      return one.first <= now && one.second > now && !is_for(one.first);
    });
    return innermost == ends.rend() ? std::pair<std::size_t, std::size_t>(0, 0)
                                    : std::pair<std::size_t, std::size_t>(*innermost);
  }

  // Since 3.12, the handlers of exceptions lie after the loop, and jump back into it.
  bool check_handlers(std::size_t begin, std::size_t end) {
    const auto call = call_of_frame(frame_, code_, layout_, names_, instructions_);
    if (!call) return false;
    const PythonWays ways = ways_from_wait(instructions_, *call, names_, TimeUp::kNotKnown, true);
    const auto is_inside = [&](std::size_t i) { return instructions_[i].at >= begin && instructions_[i].at < end; };
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      const PythonOp op = instructions_[i].op;
      if (!is_inside(i) || jumps_on_condition(op) || op == kJump || op == kForIter) continue;
      for (const std::size_t next : ways.next[i]) {
        if (next != i + 1 && !is_inside(next)) open.push_back(next);
      }
    }
    std::vector<bool> found(instructions_.size()), leads_back(instructions_.size());
    while (!open.empty()) {
      const std::size_t one = open.back();
      open.pop_back();
      if (is_inside(one) || found[one]) continue;
      found[one] = true;
      open.insert(open.end(), ways.next[one].begin(), ways.next[one].end());
    }
    for (bool is_new = true; std::exchange(is_new, false);) {
      for (std::size_t i = instructions_.size(); i-- > 0;) {
        if (!found[i] || leads_back[i]) continue;
        leads_back[i] = std::any_of(ways.next[i].begin(), ways.next[i].end(),
                                    [&](std::size_t next) { return is_inside(next) || leads_back[next]; });
        is_new = is_new || leads_back[i];
      }
    }
    for (std::size_t i = 0; i + 1 < instructions_.size(); ++i) {
      if (leads_back[i] && !check(instructions_[i], instructions_[i + 1])) return false;
    }
    return pending_ == 0;
  }

  // What was loaded since the last statement counts if a jump depends on it.
  void note_test(const PythonInstruction& one, std::size_t end) {
    const bool tests = jumps_on_condition(one.op), back = jumps_back(one);
    has_exit_ = has_exit_ || one.op == kReturn || one.op == kRaise || (tests && back && one.at + 1 == end) ||
                ((tests || one.op == kJump) && !back && one.target >= end);
    if (tests) {
      tested_.shared |= loaded_.shared;
      tested_.length |= loaded_.length;
      tested_.variable |= loaded_.variable;
    }
    const bool ends_statement = one.op == kPopTop || one.op == kStoreFast || one.op == kStoreName;
    if (tests || ends_statement || one.op == kForIter) loaded_ = {};
  }

  // Whether an instruction takes a collection for its length, for whether it is empty, or to look for something in it.
  bool asks_collection(const PythonInstruction& one) const {
    if (is_for_length_) return one.op == kPrecall && one.argument == 1;
    return one.op == kNot || one.op == kContains || jumps_on_condition(one.op);
  }

  bool check(const PythonInstruction& one, const PythonInstruction& next) {
    const bool takes_attribute = one.op == kLoadMethod || one.op == kLoadAttribute;
    if (pending_ != 0 && !takes_attribute) return false;
    next_ = &next;
    switch (one.op) {
      case kPrecall:
        is_for_length_ = false;
        return true;
      case kCompare:
        compares_ = compares_ || is_order(one.argument);
        return true;
      case kLoadFast:
        if (names_.is_cell(one.argument)) return check_variable(names_.cell(one.argument));
        return check_value(names_.slot(one.argument));
      case kLoadDeref:
      case kLoadClosure:
        return check_variable(names_.cell(one.argument));
      case kLoadGlobal:
      case kLoadName:
        return check_variable(names_.global(names_.name_loaded(one)));
      case kLoadMethod:
      case kLoadAttribute:
        return check_attribute(names_.name_loaded(one));
      case kLoadConst:
        is_for_length_ = false;
        return check_constant(one.argument);
      case kLoadSmallInt:
        is_for_length_ = false;
        return true;
      case kStoreName:
        return frame_.is_module;
      default:
        return is_harmless(one.op);
    }
  }

  const Passive* passive_type(std::uint64_t type) const {
    const std::string name = names_.name_of_type(type), module = names_.module_of_type(type);
    if (module.empty()) return nullptr;
    const auto is_it = [&](const Passive& one) { return one.type == name && one.module == module; };
    const auto found = std::find_if(kPassive.begin(), kPassive.end(), is_it);
    if (found != kPassive.end()) return &*found;
    const auto waited = std::find_if(kWaitedFor.begin(), kWaitedFor.end(), is_it);
    return is_between_waits_ && waited != kWaitedFor.end() ? &*waited : nullptr;
  }

  // Whether nothing but threads of the process change it, and asking it shows nothing else.
  bool is_passive(std::uint64_t value, int depth = 0) {
    if (value == 0) return true;  // not set yet
    const std::uint64_t type = names_.type_of(value), flags = names_.flags_of_type(type);
    if (const Passive* known = passive_type(type)) {
      if (known->name != nullptr) awaited_ = known->name;
      reads_shared_ = reads_shared_ || known->is_shared;
      loaded_.shared |= known->is_shared;
      loaded_.variable = true;
      return true;
    }
    const std::string name = names_.name_of_type(type);
    if (is_of_call(value)) return true;
    if (name == "builtin_function_or_method") {
      const auto is_it = [&](std::string_view function) { return is_called(value, function); };
      return std::any_of(kFunctions.begin(), kFunctions.end(), is_it) ||
             (is_between_waits_ && std::any_of(kWaits.begin(), kWaits.end(), is_it));
    }
    if (name == "function" && names_.module_of_function(value) == "threading") {
      const PythonCode* const code = names_.code_at(names_.code_of_function(value));
      const bool counts = code != nullptr && is_among(kCountThreads, code->function);
      if (counts) awaited_ = "the end of a thread";
      return counts;
    }
    if (name == "type") return (names_.flags_of_type(value) & PythonNames::kExceptionType) != 0;
    if (!is_among(kPlainTypes, name) || ((flags & PythonNames::kHeapType) != 0 && name.find('.') == std::string::npos))
      return false;
    if (name != "list" && name != "tuple") return true;
    const std::uint64_t count = word(value + kSizeOf);
    const std::uint64_t items = name == "list" ? word(value + PythonNames::kItems) : value + layout_.tuple_items;
    if (count > kMostItems || depth > 1) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!is_passive(word(items + i * kWord), depth + 1)) return false;
    }
    return true;
  }

  // One that is neither passive nor a module may have an attribute that is. Of what len() is given, the length alone
  // is asked; of other collections, whether they are empty, or have something.
  bool check_value(std::uint64_t value) {
    const std::string type = names_.type_name(value);
    const bool is_asked = is_among(kCollections, type) && asks_collection(*next_);
    loaded_.length |= is_asked;
    pending_ = is_asked || is_passive(value) ? 0 : value;
    is_for_length_ =
        (is_for_length_ && pending_ != 0) || (type == "builtin_function_or_method" && is_called(value, "len"));
    return true;
  }

  // Another thread may set it.
  bool check_variable(std::uint64_t value) {
    loaded_.variable |= is_among(kPlainTypes, names_.type_name(value));
    return check_value(value);
  }

  bool is_called(std::uint64_t function, std::string_view name) const {
    return names_.c_function_name(function) == name;
  }

  static bool is_order(unsigned comparison) {
    constexpr unsigned kLess = 0, kLessOrEqual = 1, kGreater = 4, kGreaterOrEqual = 5;
    return comparison == kLess || comparison == kLessOrEqual || comparison == kGreater || comparison == kGreaterOrEqual;
  }

  bool check_attribute(const std::string& name) {
    const std::uint64_t other = std::exchange(pending_, 0);
    if (other == 0) return is_among(kMethods, name) || (is_between_waits_ && is_among(kMethodsOfWaits, name));
    const std::uint64_t value = names_.attribute_of(other, name);
    if (value != 0) return check_variable(value);
    return is_of_call(names_.class_entry_of(other, name));
  }

  // The function that the frame has called, if it is the program's own: its own frame is judged too.
  bool is_of_call(std::uint64_t function) const { return called_ != 0 && names_.code_of_function(function) == called_; }

  // The code of `done() for one in futures` asks what the loop itself has loaded.
  bool check_constant(unsigned index) {
    const std::uint64_t constant = names_.constant(index);
    if (constant == 0) return false;
    if (names_.code_at(constant) == nullptr) return true;
    const std::uint64_t count = names_.name_count(constant);
    for (unsigned i = 0; i < std::min<std::uint64_t>(count, kMostItems); ++i) {
      if (!is_among(kMethods, names_.name_in(constant, i))) return false;
    }
    return count <= kMostItems;
  }

  const PythonFrameWords& frame_;
  const PythonCode& code_;
  const PythonLayout& layout_;
  PythonNames names_;
  std::vector<PythonInstruction> instructions_;
  std::uint64_t pending_ = 0;                ///< an object that was loaded, of which only an attribute may be used
  bool is_for_length_ = false;               ///< the function len was loaded, and what comes next is given to it
  const PythonInstruction* next_ = nullptr;  ///< after the one that is checked
  const char* awaited_ = nullptr;
  bool reads_shared_ = false, has_exit_ = false;
  bool compares_ = false;          ///< by order
  bool is_between_waits_ = false;  ///< between_waits() asks
  std::uint64_t called_ = 0;       ///< LimitedCall::code
  struct Read {
    bool shared = false, length = false, variable = false;
  };
  Read loaded_, tested_;  ///< since the last statement; all on which a jump depends
};

}  // namespace

std::optional<AwaitedInLoop> awaited_in_loop(const PythonFrameWords& frame, const PythonCode& code,
                                             const PythonLayout& layout, PythonCodeReader* codes,
                                             ProcessMemory* memory) {
  return LoopReader(frame, code, layout, codes, memory).awaited();
}

BetweenWaits between_waits(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                           PythonCodeReader* codes, ProcessMemory* memory, const LimitedCall& called) {
  return LoopReader(frame, code, layout, codes, memory).between_waits(called);
}

}  // namespace mprun
