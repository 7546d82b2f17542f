#include "watch/stacks/python_names.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mprun {
namespace {

constexpr std::size_t kMostUnits = 1U << 15U, kMostEntries = 512, kMostBases = 32, kLongestWord = 64;
// Of CPython 3.11 to 3.15, where a PyObject has 16 bytes.
constexpr std::uint64_t kTypeOf = 8;
constexpr std::uint64_t kConstants = 24, kNames = 32, kExceptionTable = 40;  // PyCodeObject
constexpr std::uint64_t kFunctionGlobals = 16, kFunctionCode = 48;           // PyFunctionObject
constexpr std::uint64_t kBytes = 32;                                         // PyBytesObject
constexpr std::uint64_t kBuiltins = 8;                                       // after the globals of _PyInterpreterFrame
constexpr std::uint64_t kTag = 3;                                            // in references of frames, since 3.14
constexpr std::uint64_t kTypeName = 24, kTypeFlags = 168, kTypeDict = 264, kTypeBases = 344;

constexpr std::uint64_t kCellContent = 16, kMethodDefinition = 16,
                        kMethodModule = 32;                    // PyCellObject, PyCFunctionObject
constexpr std::uint64_t kModuleDict = 16;                      // PyModuleObject
constexpr std::uint64_t kKeysOfDict = 32, kValuesOfDict = 40;  // PyDictObject

// PyHeapTypeObject.ht_cached_keys.
std::uint64_t keys_in_type(unsigned minor) {
  if (minor == 11) return 872;
  return minor < 15 ? 880 : 888;
}

}  // namespace

PythonNames::PythonNames(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                         PythonCodeReader* codes, ProcessMemory* memory)
    : codes_(codes),
      layout_(&layout),
      memory_(memory),
      code_(code.begin - layout.code.instructions),
      globals_(frame.globals),
      builtins_(word(frame.address + layout.frame.globals + kBuiltins)),
      locals_(frame.address + layout.frame.locals) {}

PythonNames::PythonNames(const PythonNames& caller, std::uint64_t code, std::uint64_t globals, std::uint64_t self)
    : codes_(caller.codes_),
      layout_(caller.layout_),
      memory_(caller.memory_),
      code_(code),
      globals_(globals),
      builtins_(caller.builtins_),
      self_(self) {}

std::string PythonNames::text(std::uint64_t string) const { return codes_->text(string, kLongestWord).value_or(""); }

std::string PythonNames::c_text(std::uint64_t address) const {
  std::array<char, kLongestWord> bytes{};
  if (!memory_->read(address, bytes.data(), bytes.size() / 2)) return "";
  return bytes.data();
}

std::vector<PythonInstruction> PythonNames::instructions() const {
  const PythonCode* code = codes_->read(code_);
  if (code == nullptr || (code->end - code->begin) / 2 > kMostUnits) return {};
  const auto bytes = memory_->bytes(code->begin, code->end - code->begin);
  return bytes ? decode_instructions(*bytes, layout_->minor) : std::vector<PythonInstruction>();
}

std::string PythonNames::exception_table() const {
  const std::uint64_t table = word(code_ + kExceptionTable);
  return memory_->bytes(table + kBytes, std::min<std::uint64_t>(word(table + kSizeOf), kMostUnits)).value_or("");
}

std::uint64_t PythonNames::name_count(std::uint64_t code) const { return word(word(code + kNames) + kSizeOf); }

std::string PythonNames::name_in(std::uint64_t code, unsigned index) const {
  return index < name_count(code) ? text(item_of(word(code + kNames), index)) : "";
}

std::string PythonNames::name_loaded(const PythonInstruction& load) const {
  switch (load.op) {
    case kLoadGlobal:
      return name(load.argument >> 1U);
    case kLoadName:
    case kLoadMethod:
    case kLoadAttribute:
      return name(load.argument);
    default:
      return "";
  }
}

std::uint64_t PythonNames::constant(unsigned index) const {
  const std::uint64_t constants = word(code_ + kConstants);
  return index < word(constants + kSizeOf) ? item_of(constants, index) : 0;
}

std::uint64_t PythonNames::slot(unsigned index) const {
  if (locals_ != 0) return word(locals_ + index * kWord) & ~kTag;
  return index == 0 ? self_ : 0;
}

std::uint64_t PythonNames::cell(unsigned index) const { return locals_ == 0 ? 0 : word(slot(index) + kCellContent); }

std::uint64_t PythonNames::global(const std::string& name) const {
  const std::uint64_t found = entry_of(globals_, name);
  return found != 0 ? found : entry_of(builtins_, name);
}

std::uint64_t PythonNames::entry_of(std::uint64_t dict, const std::string& name) const {
  if (name.empty()) return 0;
  const std::uint64_t values = word(dict + kValuesOfDict);
  const std::uint64_t header = layout_->minor >= 13 ? kWord : 0;  // of PyDictValues
  return entry_of_keys(word(dict + kKeysOfDict), values == 0 ? 0 : values + header, name);
}

std::uint64_t PythonNames::entry_of_keys(std::uint64_t keys, std::uint64_t values, const std::string& name) const {
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

std::uint64_t PythonNames::attribute_of(std::uint64_t object, const std::string& name) const {
  const std::uint64_t type = type_of(object);
  if (name_of_type(type) == "module") return entry_of(word(object + kModuleDict), name);
  if ((flags_of_type(type) & kHeapType) == 0 || entry_of(word(type + kTypeDict), name) != 0) return 0;
  if (const auto values = attributes_at(object, *layout_, memory_)) {
    return entry_of_keys(word(type + keys_in_type(layout_->minor)), *values, name);
  }
  return entry_of(attribute_dictionary_of(object, *layout_, memory_), name);
}

std::uint64_t PythonNames::class_entry_of(std::uint64_t object, const std::string& name) const {
  const std::uint64_t bases = word(type_of(object) + kTypeBases);  // in the order in which they are asked
  const std::uint64_t count = std::min<std::uint64_t>(word(bases + kSizeOf), kMostBases);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t found = entry_of(word(item_of(bases, i) + kTypeDict), name);
    if (found != 0) return found;
  }
  return 0;
}

std::uint64_t PythonNames::item_of(std::uint64_t tuple, std::uint64_t index) const {
  return word(tuple + layout_->tuple_items + index * kWord);
}

std::uint64_t PythonNames::type_of(std::uint64_t object) const { return word(object + kTypeOf); }
std::uint64_t PythonNames::flags_of_type(std::uint64_t type) const { return word(type + kTypeFlags); }
std::string PythonNames::name_of_type(std::uint64_t type) const { return c_text(word(type + kTypeName)); }

std::string PythonNames::module_of_type(std::uint64_t type) const {
  if ((flags_of_type(type) & kHeapType) == 0) return "";
  return text(entry_of(word(type + kTypeDict), "__module__"));
}

std::string PythonNames::c_function_name(std::uint64_t function) const {
  return c_text(word(word(function + kMethodDefinition)));
}
std::string PythonNames::c_function_module(std::uint64_t function) const {
  return text(word(function + kMethodModule));
}

std::uint64_t PythonNames::code_of_function(std::uint64_t function) const {
  return type_name(function) == "function" ? word(function + kFunctionCode) : 0;
}
std::uint64_t PythonNames::globals_of_function(std::uint64_t function) const {
  return word(function + kFunctionGlobals);
}
std::string PythonNames::module_of_function(std::uint64_t function) const {
  return text(entry_of(globals_of_function(function), "__name__"));
}

}  // namespace mprun
