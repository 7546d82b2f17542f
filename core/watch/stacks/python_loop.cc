#include "watch/stacks/python_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace mprun {
namespace {

// Include/opcode.h and Include/internal/pycore_opcode.h of CPython 3.11. In memory, an instruction may have the number
// of one of its specialised forms.
enum Op : unsigned char {
  kCache = 0,
  kStoreSubscript = 60,
  kForIter = 93,
  kStoreName = 90,
  kUnpackSequence = 92,
  kStoreAttribute = 95,
  kLoadConst = 100,
  kLoadName = 101,
  kLoadAttribute = 106,
  kCompare = 107,
  kLoadGlobal = 116,
  kBinary = 122,
  kSubscript = 25,
  kLoadFast = 124,
  kStoreFast = 125,
  kJumpBackwardNoInterrupt = 134,
  kLoadClosure = 136,
  kLoadDeref = 137,
  kJumpBackward = 140,
  kExtendedArgument = 144,
  kResume = 151,
  kLoadMethod = 160,
  kPrecall = 166,
  kCall = 171,
  kFirstConditionalJumpBackward = 173,
  kLastConditionalJumpBackward = 176,
};

struct Form {
  Op op;
  unsigned caches;  ///< units that follow it
  std::array<unsigned char, 17> specialised;
};
constexpr std::array kForms = {
    Form{kLoadFast, 0, {45, 46}},
    Form{kLoadConst, 0, {44}},
    Form{kStoreFast, 0, {161, 167}},
    Form{kLoadGlobal, 5, {47, 48, 55}},
    Form{kLoadAttribute, 4, {39, 40, 41, 42, 43}},
    Form{kLoadMethod, 10, {56, 57, 58, 59, 62, 63}},
    Form{kCall, 4, {22, 23, 24}},
    Form{kPrecall, 1, {64, 65, 66, 67, 72, 73, 76, 77, 78, 79, 80, 81, 113, 121, 127, 141, 143}},
    Form{kCompare, 2, {26, 27, 28, 29}},
    Form{kBinary, 1, {3, 4, 5, 6, 7, 8, 13, 14, 16}},
    Form{kSubscript, 4, {17, 18, 19, 20, 21}},
    Form{kUnpackSequence, 1, {177, 178, 179, 180}},
    Form{kStoreAttribute, 4, {153, 154, 158, 159}},
    Form{kStoreSubscript, 1, {168, 169, 170}},
    Form{kExtendedArgument, 0, {34}},
    Form{kJumpBackward, 0, {38}},
    Form{kResume, 0, {150}},
};

/// Numbers of instructions.
struct OpRange {
  unsigned char first, last;
};

// Those that change neither an object nor where the thread is: stack and jumps, tests, exceptions that are caught,
// loops over what is there, `with`.
constexpr std::array kHarmless = {
    OpRange{1, 2},      // POP_TOP, PUSH_NULL
    OpRange{9, 12},     // NOP, UNARY_POSITIVE, UNARY_NEGATIVE, UNARY_NOT
    OpRange{15, 15},    // UNARY_INVERT
    OpRange{25, 25},    // BINARY_SUBSCR
    OpRange{30, 30},    // GET_LEN
    OpRange{35, 36},    // PUSH_EXC_INFO, CHECK_EXC_MATCH
    OpRange{49, 49},    // WITH_EXCEPT_START
    OpRange{53, 53},    // BEFORE_WITH
    OpRange{68, 68},    // GET_ITER
    OpRange{82, 83},    // LIST_TO_TUPLE, RETURN_VALUE
    OpRange{89, 89},    // POP_EXCEPT
    OpRange{92, 93},    // UNPACK_SEQUENCE, FOR_ITER
    OpRange{99, 99},    // SWAP
    OpRange{102, 103},  // BUILD_TUPLE, BUILD_LIST
    OpRange{107, 107},  // COMPARE_OP
    OpRange{110, 112},  // JUMP_FORWARD, JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP
    OpRange{114, 115},  // POP_JUMP_FORWARD_IF_FALSE, POP_JUMP_FORWARD_IF_TRUE
    OpRange{117, 120},  // IS_OP, CONTAINS_OP, RERAISE, COPY
    OpRange{122, 122},  // BINARY_OP
    OpRange{125, 126},  // STORE_FAST, DELETE_FAST
    OpRange{128, 130},  // POP_JUMP_FORWARD_IF_NOT_NONE, POP_JUMP_FORWARD_IF_NONE, RAISE_VARARGS
    OpRange{132, 134},  // MAKE_FUNCTION, BUILD_SLICE, JUMP_BACKWARD_NO_INTERRUPT
    OpRange{140, 140},  // JUMP_BACKWARD
    OpRange{144, 144},  // EXTENDED_ARG
    OpRange{151, 151},  // RESUME
    OpRange{155, 155},  // FORMAT_VALUE
    OpRange{157, 157},  // BUILD_STRING
    OpRange{166, 166},  // PRECALL
    OpRange{171, 176},  // CALL, KW_NAMES, POP_JUMP_BACKWARD_IF_NOT_NONE, POP_JUMP_BACKWARD_IF_NONE,
                        // POP_JUMP_BACKWARD_IF_FALSE, POP_JUMP_BACKWARD_IF_TRUE
};

constexpr std::array<unsigned char, 256> make_plain_forms() {
  std::array<unsigned char, 256> plain{};
  for (unsigned i = 0; i < plain.size(); ++i) plain[i] = static_cast<unsigned char>(i);
  for (const Form& form : kForms) {
    for (const unsigned char special : form.specialised) {
      if (special != 0) plain[special] = form.op;
    }
  }
  return plain;
}
constexpr std::array<unsigned char, 256> kPlainForms = make_plain_forms();

unsigned caches_of(unsigned char op) {
  const auto form = std::find_if(kForms.begin(), kForms.end(), [op](const Form& one) { return one.op == op; });
  return form == kForms.end() ? 0 : form->caches;
}

struct Instruction {
  std::size_t at = 0;
  unsigned char op = kCache;
  unsigned argument = 0;
};

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
    Passive{"multiprocessing.sharedctypes", "Synchronized", nullptr, true},
    Passive{"multiprocessing.sharedctypes", "SynchronizedArray", nullptr, true},
    Passive{"multiprocessing.synchronize", "Lock", nullptr},
    Passive{"multiprocessing.synchronize", "RLock", nullptr},
    Passive{"ctypes", "c_bool", nullptr, true},
    Passive{"ctypes", "c_int", nullptr, true},
    Passive{"ctypes", "c_long", nullptr, true},
    Passive{"ctypes", "c_double", nullptr, true},
};
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
  static constexpr std::uint64_t kConstants = 24, kNames = 32;  // PyCodeObject
  static constexpr std::uint64_t kBuiltins = 16;                // _PyInterpreterFrame
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
    for (const Instruction& one : instructions_) {
      if (one.at < begin || one.at >= end) continue;
      if (!check(one)) return std::nullopt;
    }
    if (pending_ != 0) return std::nullopt;
    if (awaited_ != nullptr) return AwaitedInLoop{awaited_, reads_shared_};
    if (compares_ && reads_shared_) return AwaitedInLoop{"another value in shared memory", true};
    if (compares_ && asks_length_) return AwaitedInLoop{"another length of a list, a dict or the like", false};
    if (compares_ && reads_number_) return AwaitedInLoop{"another value of a variable", false};
    return std::nullopt;
  }

 private:
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
    unsigned extended = 0;
    for (std::size_t i = 0; i < size / 2;) {
      const auto number = static_cast<unsigned char>((*bytes)[2 * i]);
      const auto low = static_cast<unsigned char>((*bytes)[2 * i + 1]);
      const Instruction one{i, kPlainForms[number], extended << 8U | low};
      extended = one.op == kExtendedArgument ? one.argument : 0;
      instructions_.push_back(one);
      i += 1 + caches_of(one.op);
    }
    return true;
  }

  static bool jumps_back(unsigned char op) {
    return op == kJumpBackward || op == kJumpBackwardNoInterrupt ||
           (op >= kFirstConditionalJumpBackward && op <= kLastConditionalJumpBackward);
  }
  bool is_for(std::size_t at) const {
    return std::any_of(instructions_.begin(), instructions_.end(),
                       [at](const Instruction& one) { return one.at == at && one.op == kForIter; });
  }

  // The units of the innermost loop that has no end of its own: from where it begins to past the last jump there.
  std::pair<std::size_t, std::size_t> loop() const {
    const std::size_t now = (word(frame_.address + layout_.frame.instruction) - code_.begin) / 2;
    std::map<std::size_t, std::size_t> ends;  // by where the loop begins
    for (const Instruction& one : instructions_) {
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

  bool check(const Instruction& one) {
    const bool takes_attribute = one.op == kLoadMethod || one.op == kLoadAttribute;
    if (pending_ != 0 && !takes_attribute) return false;
    if (std::exchange(is_sized_, false) && (one.op != kPrecall || one.argument != 1)) return false;
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
        return std::any_of(kHarmless.begin(), kHarmless.end(),
                           [&one](const OpRange& range) { return one.op >= range.first && one.op <= range.last; });
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
    const auto found = std::find_if(kPassive.begin(), kPassive.end(),
                                    [&](const Passive& one) { return one.type == name && one.module == module; });
    return found == kPassive.end() ? nullptr : &*found;
  }

  // Whether nothing but threads of the process change it, and asking it shows nothing else.
  bool is_passive(std::uint64_t value, int depth = 0) {
    if (value == 0) return true;  // not set yet
    const std::uint64_t type = word(value + kTypeOf), flags = word(type + kTypeFlags);
    if (const Passive* known = passive_type(type)) {
      if (known->name != nullptr) awaited_ = known->name;
      reads_shared_ = reads_shared_ || known->is_shared;
      return true;
    }
    const std::string name = c_text(word(type + kTypeName));
    if (name == "builtin_function_or_method") {
      return std::any_of(kFunctions.begin(), kFunctions.end(),
                         [&](std::string_view function) { return is_called(value, function); });
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
  // is asked.
  bool check_value(std::uint64_t value) {
    const std::string type = c_text(word(word(value + kTypeOf) + kTypeName));
    is_sized_ = is_for_length_ && is_among(kCollections, type);
    asks_length_ = asks_length_ || is_sized_;
    pending_ = is_sized_ || is_passive(value) ? 0 : value;
    is_for_length_ =
        (is_for_length_ && pending_ != 0) || (type == "builtin_function_or_method" && is_called(value, "len"));
    return true;
  }

  // Another thread may set it.
  bool check_variable(std::uint64_t value) {
    reads_number_ = reads_number_ || c_text(word(word(value + kTypeOf) + kTypeName)) == "int";
    return check_value(value);
  }

  bool is_called(std::uint64_t function, std::string_view name) const {
    return c_text(word(word(function + kMethodDefinition))) == name;
  }

  // Flags are tested or compared for equality: an idle program may wait so until a handler of a signal sets one.
  static bool is_order(unsigned comparison) {
    constexpr unsigned kLess = 0, kLessOrEqual = 1, kGreater = 4, kGreaterOrEqual = 5;
    return comparison == kLess || comparison == kLessOrEqual || comparison == kGreater || comparison == kGreaterOrEqual;
  }

  bool check_attribute(const std::string& name) {
    const std::uint64_t other = std::exchange(pending_, 0);
    if (other == 0) return is_among(kMethods, name);
    const bool is_module = c_text(word(word(other + kTypeOf) + kTypeName)) == "module";
    const std::uint64_t value = is_module ? entry_of(word(other + kModuleDict), name) : attribute_of(other, name);
    return value != 0 && check_variable(value);
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
  std::vector<Instruction> instructions_;
  std::uint64_t pending_ = 0;   ///< an object that was loaded, of which only an attribute may be used
  bool is_for_length_ = false;  ///< the function len was loaded, and what comes next is given to it
  bool is_sized_ = false;       ///< a collection was loaded for it
  const char* awaited_ = nullptr;
  bool reads_shared_ = false, asks_length_ = false, reads_number_ = false;
  bool compares_ = false;  ///< by order
};

}  // namespace

std::optional<AwaitedInLoop> awaited_in_loop(const PythonFrameWords& frame, const PythonCode& code,
                                             const PythonLayout& layout, PythonCodeReader* codes,
                                             ProcessMemory* memory) {
  return LoopReader(frame, code, layout, codes, memory).awaited();
}

}  // namespace mprun
