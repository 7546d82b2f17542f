#include "watch/stacks/python_object.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace mprun {
namespace {

// From the end of the PyObject with which it begins:
constexpr std::uint64_t kDictValues = 24;  ///< PyDictObject.ma_values
constexpr std::uint64_t kDictKeys = 16;    ///< PyDictObject.ma_keys, 3.8 to 3.15

constexpr std::uint64_t kKeysHeader = 32;     ///< PyDictKeysObject.dk_indices, 3.11 to 3.15
constexpr std::uint64_t kOldKeysHeader = 40;  ///< the same, 3.8 to 3.10
constexpr unsigned char kGeneralKeys = 0;     ///< its dk_kind: entries have a hash
constexpr unsigned kMostIndexBytesLog = 24;

struct Keys {
  std::uint64_t count = 0, entries_at = 0;
  std::size_t entry_words = 3;  ///< the last is the value
};

// Objects/dict-common.h: the size of the table of indices, and five words before it, the last the count of entries.
std::optional<Keys> read_old_keys(std::uint64_t address, ProcessMemory* memory) {
  std::array<std::uint64_t, kOldKeysHeader / sizeof(std::uint64_t)> header{};
  if (!memory->read(address, header.data(), sizeof header)) return std::nullopt;
  const std::uint64_t size = header[1];
  if (!std::has_single_bit(size) || size > (std::uint64_t{1} << kMostIndexBytesLog)) return std::nullopt;
  const std::uint64_t index_size = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
  return Keys{header[4], address + kOldKeysHeader + size * index_size, 3};
}

std::optional<Keys> read_keys(std::uint64_t address, ProcessMemory* memory) {
  std::array<unsigned char, kKeysHeader> header{};
  if (!memory->read(address, header.data(), header.size())) return std::nullopt;
  const unsigned index_bytes_log = header[9];
  if (index_bytes_log > kMostIndexBytesLog) return std::nullopt;
  Keys keys{0, address + kKeysHeader + (std::uint64_t{1} << index_bytes_log), header[10] == kGeneralKeys ? 3U : 2U};
  std::memcpy(&keys.count, &header[24], sizeof keys.count);
  return keys;
}

}  // namespace

std::vector<std::uint64_t> dictionary_values(std::uint64_t dictionary, std::size_t most, const PythonLayout& layout,
                                             ProcessMemory* memory) {
  const auto address = memory->read<std::uint64_t>(dictionary + layout.object_size + kDictKeys);
  if (!address) return {};
  const auto keys = layout.frame_is_object ? read_old_keys(*address, memory) : read_keys(*address, memory);
  if (!keys) return {};
  std::vector<std::uint64_t> entries(std::min<std::uint64_t>(keys->count, most) * keys->entry_words);
  if (!memory->read(keys->entries_at, entries.data(), entries.size() * sizeof entries[0])) return {};
  std::vector<std::uint64_t> values;
  for (std::size_t i = keys->entry_words - 1; i < entries.size(); i += keys->entry_words) values.push_back(entries[i]);
  return values;
}

namespace {

constexpr std::uint64_t kPointer = sizeof(std::uint64_t);
constexpr std::uint64_t kFirstDigit = 8;  ///< PyLongObject.ob_digit, from the end of the PyObject
// Py_TPFLAGS_*
constexpr std::uint64_t kHasInlineValues = 1U << 2U, kHasManagedDict = 1U << 4U, kIsHeapType = 1U << 9U,
                        kIsClass = std::uint64_t{1} << 31U;

struct ClassOfObject {
  std::uint64_t basic_size = 0, flags = 0, dict_offset = 0;  ///< PyTypeObject.tp_basicsize, tp_flags, tp_dictoffset
};

std::optional<ClassOfObject> class_of(std::uint64_t object, const PythonLayout& layout, ProcessMemory* memory) {
  constexpr std::uint64_t kBasicSize = 16, kDictOffset = 272;  // from the end of the PyObject
  const auto type = memory->read<std::uint64_t>(object + type_offset(layout));
  if (!type) return std::nullopt;
  const std::uint64_t fields = *type + layout.object_size;
  const auto basic_size = memory->read<std::uint64_t>(fields + kBasicSize);
  const auto flags = memory->read<std::uint64_t>(*type + type_flags_offset(layout));
  if (!basic_size || !flags) return std::nullopt;
  return ClassOfObject{*basic_size, *flags, memory->read<std::uint64_t>(fields + kDictOffset).value_or(0)};
}

std::uint64_t pointer_at(std::uint64_t address, ProcessMemory* memory) {
  return memory->read<std::uint64_t>(address).value_or(0);
}

// The dictionary of an object, unless 3.12 and later have its attributes elsewhere; 0: it has none. Objects of a
// free-threaded Python have no header for the garbage collector, two pointers, before them.
std::uint64_t dictionary_of(std::uint64_t object, const ClassOfObject& its_class, const PythonLayout& layout,
                            ProcessMemory* memory) {
  if ((its_class.flags & kHasManagedDict) != 0)
    return pointer_at(object - (is_free_threaded(layout) ? 1 : 3) * kPointer, memory);
  const bool has_dict = its_class.dict_offset != 0 && static_cast<std::int64_t>(its_class.dict_offset) > 0;
  return has_dict ? pointer_at(object + its_class.dict_offset, memory) : 0;
}

// Include/internal/pycore_object.h and pycore_dict.h of each version.
std::optional<std::uint64_t> attributes_at(std::uint64_t object, const ClassOfObject& its_class,
                                           const PythonLayout& layout, ProcessMemory* memory) {
  const auto if_set = [](std::uint64_t values) { return values == 0 ? std::nullopt : std::optional(values); };
  if (layout.minor < 11) {
    const std::uint64_t dictionary = dictionary_of(object, its_class, layout, memory);
    return dictionary == 0 ? std::nullopt : if_set(pointer_at(dictionary + layout.object_size + kDictValues, memory));
  }
  if ((its_class.flags & kHasManagedDict) == 0) return std::nullopt;
  if (layout.minor == 11) return if_set(pointer_at(object - 4 * kPointer, memory));
  if (layout.minor == 12) {
    const std::uint64_t tagged = pointer_at(object - 3 * kPointer, memory);
    return (tagged & 1) == 0 ? std::nullopt : std::optional(tagged + 1);
  }
  if ((its_class.flags & kHasInlineValues) == 0) return std::nullopt;
  const std::uint64_t values = object + its_class.basic_size;
  const bool is_valid =
      memory->read<std::array<std::uint8_t, 4>>(values).value_or(std::array<std::uint8_t, 4>{})[3] == 1;
  return is_valid ? std::optional(values + kPointer) : std::nullopt;
}

// How many of the values are in use.
std::size_t count_of_attributes(std::uint64_t object, const ClassOfObject& its_class, std::uint64_t values,
                                const PythonLayout& layout, ProcessMemory* memory) {
  if (layout.minor >= 13) {  // struct _dictvalues: capacity, size, embedded, valid, and the values
    return memory->read<std::array<std::uint8_t, 2>>(values - kPointer).value_or(std::array<std::uint8_t, 2>{})[1];
  }
  if (layout.minor >= 11) return memory->read<std::uint8_t>(values - 2).value_or(0);
  const auto keys =
      memory->read<std::uint64_t>(dictionary_of(object, its_class, layout, memory) + layout.object_size + kDictKeys);
  const auto found = keys ? read_old_keys(*keys, memory) : std::nullopt;
  return found ? found->count : 0;
}

}  // namespace

std::optional<std::uint64_t> attributes_at(std::uint64_t object, const PythonLayout& layout, ProcessMemory* memory) {
  const auto its_class = class_of(object, layout, memory);
  return its_class ? attributes_at(object, *its_class, layout, memory) : std::nullopt;
}

std::uint64_t attribute_dictionary_of(std::uint64_t object, const PythonLayout& layout, ProcessMemory* memory) {
  const auto its_class = class_of(object, layout, memory);
  return its_class ? dictionary_of(object, *its_class, layout, memory) : 0;
}

std::vector<std::uint64_t> attribute_values(std::uint64_t object, std::size_t most, const PythonLayout& layout,
                                            ProcessMemory* memory) {
  // Not a module, a class or a function, whose attributes are much that does not change, nor an object of a type in C.
  const auto its_class = class_of(object, layout, memory);
  if (!its_class || (its_class->flags & kIsHeapType) == 0 || (its_class->flags & kIsClass) != 0) return {};
  const auto begin = attributes_at(object, *its_class, layout, memory);
  if (!begin) {
    const std::uint64_t dictionary = dictionary_of(object, *its_class, layout, memory);
    return dictionary == 0 ? std::vector<std::uint64_t>() : dictionary_values(dictionary, most, layout, memory);
  }
  std::vector<std::uint64_t> values(std::min(count_of_attributes(object, *its_class, *begin, layout, memory), most));
  if (!memory->read(*begin, values.data(), values.size() * sizeof(std::uint64_t))) values.clear();
  return values;
}

std::uint64_t PythonObjects::word(std::uint64_t address) const { return pointer_at(address, memory_); }

bool PythonObjects::is_a(std::uint64_t object, std::string_view type) const {
  std::array<char, 32> name{};
  const std::size_t size = type.size() + 1;  // with the zero at its end
  constexpr std::uint64_t kNameOfType = 8;   // from the end of the PyObject
  const std::uint64_t its_type = object == 0 ? 0 : word(object + type_offset(layout_));
  const std::uint64_t name_at = its_type == 0 ? 0 : word(its_type + layout_.object_size + kNameOfType);
  if (name_at == 0 || size > name.size() || !memory_->read(name_at, name.data(), size)) return false;
  return name[type.size()] == 0 && std::string_view(name.data(), type.size()) == type;
}

std::vector<std::uint64_t> PythonObjects::attributes_of(std::uint64_t object) const {
  constexpr std::size_t kMostAttributes = 64;
  return attribute_values(object, kMostAttributes, layout_, memory_);
}

std::optional<std::vector<std::uint64_t>> PythonObjects::items_of(std::uint64_t list) const {
  constexpr std::size_t kMostItems = 4096;
  const std::uint64_t size_at = list + layout_.object_size, items_at = size_at + kPointer;
  const std::uint64_t size = word(size_at);
  if (size == 0) return std::vector<std::uint64_t>();
  if (size > kMostItems) return std::nullopt;
  std::vector<std::uint64_t> items(size);
  if (!memory_->read(word(items_at), items.data(), size * sizeof(std::uint64_t))) return std::nullopt;
  return items;
}

std::optional<std::uint32_t> PythonObjects::number_of(std::uint64_t object) const {
  const std::uint64_t one_digit = layout_.minor < 12 ? 1 : 1U << 3U;  // and not negative
  if (!is_a(object, "int") || word(object + layout_.object_size) != one_digit) return std::nullopt;
  return memory_->read<std::uint32_t>(object + layout_.object_size + kFirstDigit);
}

bool PythonObjects::is_true(std::uint64_t object) const {
  return memory_->read<std::uint32_t>(object + layout_.object_size + kFirstDigit).value_or(1) != 0;
}

}  // namespace mprun
