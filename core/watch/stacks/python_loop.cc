#include "watch/stacks/python_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

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
// Functions in C that may wait with a limit.
constexpr std::array<std::string_view, 14> kLimitedCalls = {"acquire", "wait",         "select",   "poll",     "recv",
                                                            "accept",  "read",         "readline", "sleep",    "get",
                                                            "join",    "sigtimedwait", "connect",  "recv_into"};
// Exceptions that waits raise when their time is up.
constexpr std::array<std::string_view, 8> kTimeUp = {"Empty",   "Full",           "TimeoutError",       "Timeout",
                                                     "timeout", "TimeoutExpired", "BrokenBarrierError", "Exception"};
// Iterators that run no Python code.
constexpr std::array<std::string_view, 10> kIterators = {
    "list_iterator",      "tuple_iterator",    "range_iterator", "longrange_iterator",   "dict_keyiterator",
    "dict_valueiterator", "dict_itemiterator", "set_iterator",   "list_reverseiterator", "str_iterator"};
constexpr std::array<std::string_view, 9> kPlainTypes = {"NoneType", "bool", "int",   "float",       "str",
                                                         "bytes",    "list", "tuple", "_thread.lock"};
constexpr std::array<std::string_view, 5> kCollections = {"list", "tuple", "dict", "set", "collections.deque"};
constexpr std::array<std::string_view, 21> kMethods = {
    "done",   "running",    "cancelled", "result",  "exception", "ready",    "successful",
    "get",    "get_nowait", "empty",     "full",    "qsize",     "is_alive", "join",
    "is_set", "wait",       "locked",    "acquire", "append",    "value",    "get_lock"};
constexpr std::array<std::string_view, 6> kFunctions = {"sleep", "all", "any", "len", "isinstance", "print"};

template <std::size_t kCount>
bool is_among(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class LoopReader {
  static constexpr std::size_t kMostUnits = 1U << 15U;
  static constexpr std::size_t kMostEntries = 512, kMostItems = 64, kLongestWord = 64;
  static constexpr std::uint64_t kWord = 8, kTypeOf = 8, kSizeOf = 16;
  // Of CPython 3.11.
  static constexpr std::uint64_t kConstants = 24, kNames = 32, kExceptionTable = 40, kStackSize = 68;  // PyCodeObject
  static constexpr std::uint64_t kFunctionCode = 48;  // PyFunctionObject
  static constexpr std::uint64_t kBytes = 32;         // PyBytesObject
  static constexpr std::uint64_t kBuiltins = 16;      // _PyInterpreterFrame
  static constexpr std::uint64_t kTypeName = 24, kTypeFlags = 168, kTypeDict = 264,
                                 kTypeKeys = 872;                            // PyHeapTypeObject
  static constexpr std::uint64_t kItems = 24;                                // PyTupleObject, PyListObject
  static constexpr std::uint64_t kCellContent = 16, kMethodDefinition = 16;  // PyCellObject, PyCFunctionObject
  static constexpr std::uint64_t kModuleDict = 16;                           // PyModuleObject
  static constexpr std::uint64_t kDictKeys = 32, kDictValues = 40;           // PyDictObject
  static constexpr std::uint64_t kHeapType = 1U << 9U, kExceptionType = 1U << 30U;

 public:
  LoopReader(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout, PythonCodeReader* codes,
             ProcessMemory* memory)
      : frame_(frame), code_(code), layout_(layout), codes_(codes), memory_(memory) {
    address_ = code.begin - layout.code.instructions;
  }

  std::optional<AwaitedInLoop> awaited() {
    if (!read_instructions()) return std::nullopt;
    const auto [begin, end] = loop();
    if (begin == end) return std::nullopt;
    for (std::size_t i = 0; i + 1 < instructions_.size(); ++i) {
      const PythonInstruction& one = instructions_[i];
      if (one.at < begin || one.at >= end) continue;
      if (!check(one, instructions_[i + 1])) return std::nullopt;
      note_test(one, end);
    }
    if (pending_ != 0) return std::nullopt;
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
    if (!read_instructions()) return BetweenWaits::kMayDecide;
    const std::size_t now = (word(frame_.address + layout_.frame.instruction) - code_.begin) / 2;
    const auto after = std::upper_bound(instructions_.begin(), instructions_.end(), now,
                                        [](std::size_t at, const PythonInstruction& one) { return at < one.at; });
    if (after == instructions_.begin()) return BetweenWaits::kMayDecide;
    const auto call = static_cast<std::size_t>(after - instructions_.begin()) - 1;
    if (called.end == TimeUp::kInC && !calls_wait(call)) return BetweenWaits::kLeaves;
    const std::uint64_t table = word(address_ + kExceptionTable);
    const auto bytes = memory_->bytes(table + kBytes, std::min<std::uint64_t>(word(table + kSizeOf), kMostUnits));
    const PythonWays ways = ways_after(instructions_, call, bytes.value_or(""), called.end,
                                       [this](const PythonInstruction& load) { return is_time_up(load); });
    for (const std::size_t i : ways.reached) {
      if (instructions_[i].op == kForIter && runs_code_to_iterate()) return BetweenWaits::kMayDecide;
      if (i + 1 >= instructions_.size()) continue;
      if (!check(instructions_[i], instructions_[i + 1])) return BetweenWaits::kMayDecide;
    }
    return ways.come_back ? BetweenWaits::kLooksOn : BetweenWaits::kLeaves;
  }

 private:
  bool is_time_up(const PythonInstruction& load) const {
    const bool is_global = load.op == kLoadGlobal;
    const bool is_named = is_global || load.op == kLoadAttribute || load.op == kLoadName;
    return is_named && is_among(kTimeUp, name_at(address_, is_global ? load.argument >> 1U : load.argument));
  }

  // Whether the statement that makes the call names a function that may wait with a limit.
  bool calls_wait(std::size_t call) const {
    for (std::size_t i = call; i-- > 0;) {
      const PythonInstruction& one = instructions_[i];
      if (one.op == kPopTop || one.op == kStoreFast || one.op == kStoreName || jumps_on_condition(one.op)) return false;
      const bool is_global = one.op == kLoadGlobal;
      const bool is_named = is_global || one.op == kLoadName || one.op == kLoadMethod || one.op == kLoadAttribute;
      if (is_named && is_among(kLimitedCalls, name_at(address_, is_global ? one.argument >> 1U : one.argument)))
        return true;
    }
    return false;
  }

  // Whether an iterator of a `for` loop, which lies on the stack after the variables, may run Python code.
  bool runs_code_to_iterate() const {
    const std::uint64_t begin = frame_.address + layout_.frame.locals;
    const auto top = static_cast<std::int32_t>(frame_.stack_top);  // below 0: it has called a function in C
    const std::uint64_t most = code_.local_count + static_cast<std::uint32_t>(word(address_ + kStackSize));
    const std::uint64_t count = std::min<std::uint64_t>(top < 0 ? most : static_cast<std::uint32_t>(top), kMostEntries);
    for (std::uint64_t i = code_.local_count; i < count; ++i) {
      const std::string type = c_text(word(word(word(begin + i * kWord) + kTypeOf) + kTypeName));
      const bool is_iterator = type.ends_with("iterator") || type.starts_with("itertools.") || type == "generator" ||
                               type == "map" || type == "filter" || type == "zip" || type == "enumerate";
      if (is_iterator && !is_among(kIterators, type)) return true;
    }
    return false;
  }

  std::uint64_t word(std::uint64_t address) const { return memory_->read<std::uint64_t>(address).value_or(0); }
  std::string text(std::uint64_t string) const { return codes_->text(string, kLongestWord).value_or(""); }
  std::string c_text(std::uint64_t address) const {
    std::array<char, kLongestWord> bytes{};
    if (!memory_->read(address, bytes.data(), bytes.size() / 2)) return "";
    return bytes.data();
  }
  std::string name_at(std::uint64_t code, unsigned index) const {
    const std::uint64_t names = word(code + kNames);
    return index < word(names + kSizeOf) ? text(word(names + kItems + index * kWord)) : "";
  }

  bool read_instructions() {
    const std::uint64_t size = code_.end - code_.begin;
    const auto bytes = size / 2 > kMostUnits ? std::nullopt : memory_->bytes(code_.begin, size);
    if (!bytes) return false;
    instructions_ = decode_instructions(*bytes);
    return true;
  }

  bool is_for(std::size_t at) const {
    return std::any_of(instructions_.begin(), instructions_.end(),
                       [at](const PythonInstruction& one) { return one.at == at && one.op == kForIter; });
  }

  // The units of the innermost loop that has no end of its own: from where it begins to past the last jump there.
  std::pair<std::size_t, std::size_t> loop() const {
    const std::size_t now = (word(frame_.address + layout_.frame.instruction) - code_.begin) / 2;
    std::map<std::size_t, std::size_t> ends;  // by where the loop begins
    for (const PythonInstruction& one : instructions_) {
      if (!jumps_back(one.op) || one.argument > one.at + 1) continue;
      std::size_t& end = ends[one.at + 1 - one.argument];
      end = std::max(end, one.at + 1);
    }
    const auto innermost = std::find_if(ends.rbegin(), ends.rend(), [&](const auto& one) {
      return one.first <= now && one.second > now && !is_for(one.first);
    });
    return innermost == ends.rend() ? std::pair<std::size_t, std::size_t>(0, 0)
                                    : std::pair<std::size_t, std::size_t>(*innermost);
  }

  // What was loaded since the last statement counts if a jump depends on it.
  void note_test(const PythonInstruction& one, std::size_t end) {
    const bool forward = jumps_on_condition_forward(one.op), backward = jumps_on_condition_backward(one.op);
    has_exit_ = has_exit_ || one.op == kReturn || one.op == kRaise || (backward && one.at + 1 == end) ||
                ((forward || one.op == kJumpForward) && one.at + 1 + one.argument >= end);
    if (forward || backward) {
      tested_.shared |= loaded_.shared;
      tested_.length |= loaded_.length;
      tested_.variable |= loaded_.variable;
    }
    const bool ends_statement = one.op == kPopTop || one.op == kStoreFast || one.op == kStoreName;
    if (forward || backward || ends_statement || one.op == kForIter) loaded_ = {};
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
        return check_value(slot(one.argument));
      case kLoadDeref:
      case kLoadClosure:
        return check_variable(word(slot(one.argument) + kCellContent));
      case kLoadGlobal:
        return check_variable(global(name_at(address_, one.argument >> 1U)));
      case kLoadName:
        return check_variable(global(name_at(address_, one.argument)));
      case kLoadMethod:
      case kLoadAttribute:
        return check_attribute(name_at(address_, one.argument));
      case kLoadConst:
        is_for_length_ = false;
        return check_constant(one.argument);
      case kStoreName:
        return frame_.is_module;
      default:
        return is_harmless(one.op);
    }
  }

  std::uint64_t slot(unsigned index) const { return word(frame_.address + layout_.frame.locals + index * kWord); }
  std::uint64_t global(const std::string& name) const {
    const std::uint64_t found = entry_of(frame_.globals, name);
    return found != 0 ? found : entry_of(word(frame_.address + kBuiltins), name);
  }

  // The value of a key in a dict; 0: it is not there.
  std::uint64_t entry_of(std::uint64_t dict, const std::string& name) const {
    return name.empty() ? 0 : entry_of_keys(word(dict + kDictKeys), word(dict + kDictValues), name);
  }
  std::uint64_t entry_of_keys(std::uint64_t keys, std::uint64_t values, const std::string& name) const {
    std::array<unsigned char, 32> header{};
    if (keys == 0 || !memory_->read(keys, header.data(), header.size())) return 0;
    std::uint64_t count = 0;
    std::memcpy(&count, &header[24], sizeof count);
    if (header[9] > 16) return 0;
    const std::uint64_t words = header[10] == 0 ? 3 : 2;
    const std::uint64_t begin = keys + header.size() + (std::uint64_t{1} << header[9]);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, kMostEntries); ++i) {
      const std::uint64_t entry = begin + i * words * kWord + (words - 2) * kWord;
      if (text(word(entry)) == name) return values != 0 ? word(values + i * kWord) : word(entry + kWord);
    }
    return 0;
  }

  // An attribute of an instance, which its class does not compute.
  std::uint64_t attribute_of(std::uint64_t object, const std::string& name) const {
    const std::uint64_t type = word(object + kTypeOf);
    if ((word(type + kTypeFlags) & kHeapType) == 0 || entry_of(word(type + kTypeDict), name) != 0) return 0;
    if (const std::uint64_t values = word(object - 4 * kWord); values != 0) {
      return entry_of_keys(word(type + kTypeKeys), values, name);
    }
    return entry_of(word(object - 3 * kWord), name);
  }

  const Passive* passive_type(std::uint64_t type) const {
    if ((word(type + kTypeFlags) & kHeapType) == 0) return nullptr;
    const std::string name = c_text(word(type + kTypeName));
    const std::string module = text(entry_of(word(type + kTypeDict), "__module__"));
    const auto is_it = [&](const Passive& one) { return one.type == name && one.module == module; };
    const auto found = std::find_if(kPassive.begin(), kPassive.end(), is_it);
    if (found != kPassive.end()) return &*found;
    const auto waited = std::find_if(kWaitedFor.begin(), kWaitedFor.end(), is_it);
    return is_between_waits_ && waited != kWaitedFor.end() ? &*waited : nullptr;
  }

  // Whether nothing but threads of the process change it, and asking it shows nothing else.
  bool is_passive(std::uint64_t value, int depth = 0) {
    if (value == 0) return true;  // not set yet
    const std::uint64_t type = word(value + kTypeOf), flags = word(type + kTypeFlags);
    if (const Passive* known = passive_type(type)) {
      if (known->name != nullptr) awaited_ = known->name;
      reads_shared_ = reads_shared_ || known->is_shared;
      loaded_.shared |= known->is_shared;
      loaded_.variable = true;
      return true;
    }
    const std::string name = c_text(word(type + kTypeName));
    if (is_of_call(value)) return true;
    if (name == "builtin_function_or_method") {
      const auto is_it = [&](std::string_view function) { return is_called(value, function); };
      return std::any_of(kFunctions.begin(), kFunctions.end(), is_it) ||
             (is_between_waits_ && std::any_of(kWaits.begin(), kWaits.end(), is_it));
    }
    if (name == "type") return (word(value + kTypeFlags) & kExceptionType) != 0;
    if (!is_among(kPlainTypes, name) || ((flags & kHeapType) != 0 && name.find('.') == std::string::npos)) return false;
    if (name != "list" && name != "tuple") return true;
    const std::uint64_t count = word(value + kSizeOf);
    const std::uint64_t items = name == "list" ? word(value + kItems) : value + kItems;
    if (count > kMostItems || depth > 1) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!is_passive(word(items + i * kWord), depth + 1)) return false;
    }
    return true;
  }

  // One that is neither passive nor a module may have an attribute that is. Of what len() is given, the length alone
  // is asked; of other collections, whether they are empty, or have something.
  bool check_value(std::uint64_t value) {
    const std::string type = c_text(word(word(value + kTypeOf) + kTypeName));
    const bool is_asked = is_among(kCollections, type) && asks_collection(*next_);
    loaded_.length |= is_asked;
    pending_ = is_asked || is_passive(value) ? 0 : value;
    is_for_length_ =
        (is_for_length_ && pending_ != 0) || (type == "builtin_function_or_method" && is_called(value, "len"));
    return true;
  }

  // Another thread may set it.
  bool check_variable(std::uint64_t value) {
    loaded_.variable |= is_among(kPlainTypes, c_text(word(word(value + kTypeOf) + kTypeName)));
    return check_value(value);
  }

  bool is_called(std::uint64_t function, std::string_view name) const {
    return c_text(word(word(function + kMethodDefinition))) == name;
  }

  static bool is_order(unsigned comparison) {
    constexpr unsigned kLess = 0, kLessOrEqual = 1, kGreater = 4, kGreaterOrEqual = 5;
    return comparison == kLess || comparison == kLessOrEqual || comparison == kGreater || comparison == kGreaterOrEqual;
  }

  bool check_attribute(const std::string& name) {
    const std::uint64_t other = std::exchange(pending_, 0);
    if (other == 0) return is_among(kMethods, name) || (is_between_waits_ && is_among(kMethodsOfWaits, name));
    const bool is_module = c_text(word(word(other + kTypeOf) + kTypeName)) == "module";
    const std::uint64_t value = is_module ? entry_of(word(other + kModuleDict), name) : attribute_of(other, name);
    if (value != 0) return check_variable(value);
    return is_of_call(entry_of(word(word(other + kTypeOf) + kTypeDict), name));
  }

  // The function that the frame has called, if it is the program's own: its own frame is judged too.
  bool is_of_call(std::uint64_t function) const {
    return called_ != 0 && function != 0 && c_text(word(word(function + kTypeOf) + kTypeName)) == "function" &&
           word(function + kFunctionCode) == called_;
  }

  // The code of `done() for one in futures` asks what the loop itself has loaded.
  bool check_constant(unsigned index) {
    const std::uint64_t constants = word(address_ + kConstants);
    if (index >= word(constants + kSizeOf)) return false;
    const std::uint64_t constant = word(constants + kItems + index * kWord);
    if (codes_->read(constant) == nullptr) return true;
    const std::uint64_t count = word(word(constant + kNames) + kSizeOf);
    for (unsigned i = 0; i < std::min<std::uint64_t>(count, kMostItems); ++i) {
      if (!is_among(kMethods, name_at(constant, i))) return false;
    }
    return count <= kMostItems;
  }

  const PythonFrameWords& frame_;
  const PythonCode& code_;
  const PythonLayout& layout_;
  PythonCodeReader* codes_;
  ProcessMemory* memory_;
  std::uint64_t address_ = 0;  ///< of the code object
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
