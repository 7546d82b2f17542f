#include "formats/safetensors_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "json/json.h"
#include "os/fd.h"

namespace mprun {
namespace {

// The dtypes of the format that mprun's workers write.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 15> kItemBytes{{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"U16", 2},
    {"I16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"U32", 4},
    {"I32", 4},
    {"F32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
}};

/// A whole number in the header; nullopt for anything else.
std::optional<std::uint64_t> number(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

/// The bytes that dtype and shape of an entry need.
std::optional<std::uint64_t> bytes_asked(const Json& entry) {
  if (!entry.contains("dtype") || !entry.contains("shape") || !entry["dtype"].is_string()) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const auto& [name, size] : kItemBytes) {
    if (entry["dtype"].get_ref<const std::string&>() == name) bytes = size;
  }
  if (bytes == 0 || !entry["shape"].is_array()) return std::nullopt;
  for (const Json& length : entry["shape"]) {
    const auto factor = number(length);
    if (!factor || __builtin_mul_overflow(bytes, *factor, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// Whether the entry's range is as large as its shape needs, and inside the data.
bool is_whole(const Json& entry, std::uint64_t data_bytes) {
  if (!entry.is_object()) return false;
  const auto asked = bytes_asked(entry);
  if (!asked || !entry.contains("data_offsets")) return false;
  const Json& place = entry["data_offsets"];
  if (!place.is_array() || place.size() != 2) return false;
  const auto begin = number(place[0]);
  const auto end = number(place[1]);
  return begin && end && *begin <= *end && *end <= data_bytes && *end - *begin == *asked;
}

}  // namespace

std::string safetensors_header(const SafetensorsEntry& entry) {
  Json header = Json::object();
  header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {0, entry.bytes}}};
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string prefix;
  for (unsigned i = 0; i < 8; ++i) prefix += static_cast<char>(text.size() >> 8U * i & 0xFFU);
  return prefix + text;
}

std::optional<std::string> safetensors_fault(int fd, const std::vector<std::string_view>& names) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return "is not a regular file";
  std::array<unsigned char, 8> prefix{};
  if (pread_all(fd, prefix.data(), prefix.size(), 0) != static_cast<ssize_t>(prefix.size())) return "is cut off";
  std::uint64_t length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) length = length << 8U | prefix[i];
  const std::uint64_t rest = static_cast<std::uint64_t>(info.st_size) - prefix.size();
  if (length > rest) return "is cut off inside its header";
  if (length > kLongestSafetensorsHeader) return "has a header of more than 8 MiB";
  std::string text(length, '\0');
  if (pread_all(fd, text.data(), text.size(), prefix.size()) != static_cast<ssize_t>(length)) return "cannot be read";
  const Json header = parse_json(text);
  if (!header.is_object()) return "has a damaged header";
  for (const std::string_view name : names) {
    const auto entry = header.find(std::string(name));
    if (entry == header.end() || !is_whole(*entry, rest - length)) {
      return "does not hold the tensor '" + std::string(name) + "' whole";
    }
  }
  return std::nullopt;
}

}  // namespace mprun
