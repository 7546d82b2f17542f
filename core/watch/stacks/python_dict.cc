#include "watch/stacks/python_dict.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace mprun {
namespace {

constexpr std::uint64_t kDictKeys = 32;       ///< PyDictObject.ma_keys, 3.8 to 3.15
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
  const auto address = memory->read<std::uint64_t>(dictionary + kDictKeys);
  if (!address) return {};
  const auto keys = layout.frame_is_object ? read_old_keys(*address, memory) : read_keys(*address, memory);
  if (!keys) return {};
  std::vector<std::uint64_t> entries(std::min<std::uint64_t>(keys->count, most) * keys->entry_words);
  if (!memory->read(keys->entries_at, entries.data(), entries.size() * sizeof entries[0])) return {};
  std::vector<std::uint64_t> values;
  for (std::size_t i = keys->entry_words - 1; i < entries.size(); i += keys->entry_words) values.push_back(entries[i]);
  return values;
}

}  // namespace mprun
