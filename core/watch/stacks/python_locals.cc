#include "watch/stacks/python_locals.h"

#include <algorithm>
#include <array>
#include <map>

#include "watch/stacks/python_object.h"

namespace mprun {
namespace {

constexpr std::size_t kMostValues = 512, kMostAttributes = 64, kMostFloats = 64;
constexpr std::uint64_t kTags = 3;  ///< of a reference, since 3.14

void mix(std::uint64_t word, std::uint64_t* fingerprint) {
  constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a, by words
  *fingerprint = (*fingerprint ^ word) * kPrime;
}

class LocalsReader {
 public:
  LocalsReader(const PythonLayout& layout, const PythonTypes& types, ProcessMemory* memory, PythonLocals* locals)
      : layout_(layout), types_(types), memory_(memory), locals_(locals) {}

  /// A value, and its attributes: a loop in a method counts by those of `self`.
  void add_variable(std::uint64_t reference) {
    const std::uint64_t address = reference & ~kTags;
    add_value(address);
    if (address == 0) return;
    for (const std::uint64_t value : attribute_values(address, kMostAttributes, layout_, memory_))
      add_attribute(value & ~kTags);
  }

 private:
  void add_value(std::uint64_t address);
  void add_attribute(std::uint64_t address);
  void add_float(std::uint64_t bits);
  [[nodiscard]] std::size_t words_of_value(std::uint64_t type);

  const PythonLayout& layout_;
  const PythonTypes& types_;
  ProcessMemory* memory_;
  PythonLocals* locals_;
  std::map<std::uint64_t, std::size_t> words_of_value_;  ///< by type
};

void LocalsReader::add_value(std::uint64_t address) {
  mix(address, &locals_->fingerprint);
  std::array<std::uint64_t, 4> words{};  // the type, and the start of what it holds
  if (address == 0 || !memory_->read(address + type_offset(layout_), words.data(), sizeof words)) return;
  for (const std::uint64_t word : words) mix(word, &locals_->fingerprint);
  if (types_.floating != 0 && words[0] == types_.floating) add_float(words[1]);
}

// Attributes are many, and what other objects hold changes while they only wait.
void LocalsReader::add_attribute(std::uint64_t address) {
  mix(address, &locals_->fingerprint);
  const std::uint64_t type =
      address == 0 ? 0 : memory_->read<std::uint64_t>(address + type_offset(layout_)).value_or(0);
  std::array<std::uint64_t, 2> words{};
  const std::size_t count = type == 0 ? 0 : words_of_value(type);
  if (!memory_->read(address + layout_.object_size, words.data(), count * sizeof words[0])) return;
  for (std::size_t i = 0; i < count; ++i) mix(words[i], &locals_->fingerprint);
  if (types_.floating != 0 && type == types_.floating) add_float(words[0]);
}

// How many words after the header show whether it is another number, or has more or fewer items. The rest are objects
// whose address says it.
std::size_t LocalsReader::words_of_value(std::uint64_t type) {
  constexpr std::uint64_t kInteger = 1U << 24U, kList = 1U << 25U, kDict = 1U << 29U;  // Py_TPFLAGS_*_SUBCLASS
  const auto [known, is_new] = words_of_value_.try_emplace(type, 0);
  if (is_new) {
    const auto flags = memory_->read<std::uint64_t>(type + type_flags_offset(layout_)).value_or(0);
    if (type == types_.floating || (flags & (kList | kDict)) != 0) known->second = 1;
    if ((flags & kInteger) != 0) known->second = 2;  // the count of its digits, and the first of them
  }
  return known->second;
}

void LocalsReader::add_float(std::uint64_t bits) {
  if (locals_->floats.size() < kMostFloats) locals_->floats.push_back(double_of_bits(bits));
}

}  // namespace

void add_locals(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
                const PythonTypes& types, ProcessMemory* memory, PythonLocals* locals) {
  const std::uint64_t begin = frame.address + layout.frame.locals;
  std::uint64_t count = code.local_count;
  if (layout.frame_is_object) {
    count = frame.stack_top;
  } else if (layout.stack_top_is_pointer) {
    if (frame.stack_top > begin) count = (frame.stack_top - begin) / sizeof(std::uint64_t);
  } else if (const auto top = static_cast<std::int32_t>(frame.stack_top); top > 0) {
    count = static_cast<std::uint32_t>(top);
  }
  std::vector<std::uint64_t> values(std::min<std::uint64_t>(count, kMostValues));
  if (!values.empty() && !memory->read(begin, values.data(), values.size() * sizeof values[0])) return;
  LocalsReader reader(layout, types, memory, locals);
  for (const std::uint64_t value : values) reader.add_variable(value);
  if (!frame.is_module) return;
  for (const std::uint64_t value : dictionary_values(frame.globals, kMostValues, layout, memory)) {
    reader.add_variable(value);
  }
}

}  // namespace mprun
