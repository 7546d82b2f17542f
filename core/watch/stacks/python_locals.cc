#include "watch/stacks/python_locals.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "watch/stacks/python_dict.h"

namespace mprun {
namespace {

constexpr std::size_t kMostValues = 512, kMostFloats = 64;
constexpr std::uint64_t kTags = 3;         ///< of a reference, since 3.14
constexpr std::uint64_t kHeaderSize = 16;  ///< PyObject: the count of references, which changes by itself, and the type

void mix(std::uint64_t word, std::uint64_t* fingerprint) {
  constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a, by words
  *fingerprint = (*fingerprint ^ word) * kPrime;
}

void add_value(std::uint64_t reference, const PythonTypes& types, ProcessMemory* memory, PythonLocals* locals) {
  const std::uint64_t address = reference & ~kTags;
  mix(address, &locals->fingerprint);
  std::array<std::uint64_t, 4> words{};  // the type, and the start of what it holds
  if (address == 0 || !memory->read(address + kHeaderSize / 2, words.data(), sizeof words)) return;
  for (const std::uint64_t word : words) mix(word, &locals->fingerprint);
  if (types.floating == 0 || words[0] != types.floating || locals->floats.size() >= kMostFloats) return;
  double value = 0;
  std::memcpy(&value, &words[1], sizeof value);
  locals->floats.push_back(value);
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
  for (const std::uint64_t value : values) add_value(value, types, memory, locals);
  if (!frame.is_module) return;
  for (const std::uint64_t value : dictionary_values(frame.globals, kMostValues, layout, memory)) {
    add_value(value, types, memory, locals);
  }
}

}  // namespace mprun
