#include "formats/safetensors_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "formats/array_bytes.h"
#include "json/document.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun {

namespace {

constexpr std::size_t kLengthBytes = 8;

constexpr std::array<SafeDtype, 13> kDtypes = {{{"F64", "<f8", 8},
                                                {"F32", "<f4", 4},
                                                {"F16", "<f2", 2},
                                                {"BF16", "bfloat16", 2},
                                                {"I64", "<i8", 8},
                                                {"I32", "<i4", 4},
                                                {"I16", "<i2", 2},
                                                {"I8", "|i1", 1},
                                                {"U64", "<u8", 8},
                                                {"U32", "<u4", 4},
                                                {"U16", "<u2", 2},
                                                {"U8", "|u1", 1},
                                                {"BOOL", "|b1", 1}}};

Error damaged(const std::string& words) { return usage_error("has a damaged header: " + words); }

std::string named(const SafeTensor& tensor) { return "the tensor " + in_quotes(clip(tensor.name)); }

/// A JSON list of non-negative lengths or offsets.
std::optional<std::vector<std::int64_t>> read_numbers(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Json& value : *found) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) return std::nullopt;
    numbers.push_back(value.get<std::int64_t>());
  }
  return numbers;
}

Result<SafeTensor> read_tensor(const std::string& name, const Json& entry, std::uint64_t data,
                               std::uint64_t file_size) {
  SafeTensor tensor;
  tensor.name = name;
  const std::string words = named(tensor);
  if (!entry.is_object()) return damaged(words + " is described by " + preview(entry) + ", which is no object");
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) return damaged(words + " has no dtype");
  tensor.dtype = dtype->get<std::string>();
  std::optional<std::vector<std::int64_t>> shape = read_numbers(entry, "shape");
  if (!shape) return damaged(words + " has no shape that is a list of lengths");
  tensor.shape = std::move(*shape);
  const std::optional<std::vector<std::int64_t>> offsets = read_numbers(entry, "data_offsets");
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return damaged(words + " has no data_offsets that are a begin and an end");
  }
  const auto begin = static_cast<std::uint64_t>((*offsets)[0]);
  const auto end = static_cast<std::uint64_t>((*offsets)[1]);
  if (end > file_size - data) {
    return usage_error("is cut off: its header claims bytes up to " + std::to_string(end) + " of data for " + words +
                       ", the file has " + std::to_string(file_size - data));
  }
  tensor.begin = data + begin;
  tensor.end = data + end;
  const SafeDtype* known = find_safe_dtype(tensor.dtype);
  const std::optional<std::uint64_t> bytes = known == nullptr ? end - begin : array_bytes(known->bytes, tensor.shape);
  if (bytes && *bytes == end - begin) return tensor;
  return damaged(words + " needs " + (bytes ? std::to_string(*bytes) : "2^64 or more") + " bytes by its shape " +
                 preview(entry["shape"]) + " and dtype " + clip(tensor.dtype, 10) + ", its data_offsets are " +
                 std::to_string(end - begin) + " apart");
}

/// Checks that every byte after the header belongs to exactly one tensor.
Result<void> check_places(std::vector<SafeTensor> tensors, std::uint64_t data, std::uint64_t file_size) {
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t filled = data;
  const SafeTensor* before = nullptr;
  for (const SafeTensor& tensor : tensors) {
    if (tensor.begin < filled && before != nullptr)
      return damaged(named(*before) + " and " + named(tensor) + " overlap");
    if (tensor.begin > filled) {
      return damaged("the " + std::to_string(tensor.begin - filled) + " bytes in front of " + named(tensor) +
                     " belong to no tensor");
    }
    filled = tensor.end;
    before = &tensor;
  }
  if (filled == file_size) return {};
  return damaged("the last " + std::to_string(file_size - filled) + " bytes of the file belong to no tensor");
}

Result<void> check_metadata(const Json& value) {
  const bool texts = value.is_object() &&
                     std::all_of(value.begin(), value.end(), [](const Json& member) { return member.is_string(); });
  if (texts) return {};
  return damaged("__metadata__ is no object of texts");
}

/// The JSON text in the header.
Result<std::string_view> header_text(std::string_view head, std::uint64_t file_size) {
  if (head.size() < kLengthBytes) return usage_error("is cut off inside its header");
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | static_cast<unsigned char>(head[i]);
  if (head.size() > kLengthBytes && head[kLengthBytes] != '{') {
    return usage_error("is not a .safetensors file: byte 8 is not the { of its header");
  }
  if (length > file_size - kLengthBytes) {
    return usage_error("is cut off inside its header: that claims " + std::to_string(length) + " bytes, the file has " +
                       std::to_string(file_size - kLengthBytes));
  }
  if (length > kSafetensorsHead - kLengthBytes) {
    return usage_error("has a header of " + std::to_string(length) + " bytes, mprun reads at most " +
                       std::to_string(kSafetensorsHead - kLengthBytes));
  }
  if (length < 2) return damaged("it claims " + std::to_string(length) + " bytes");
  return head.substr(kLengthBytes, length);
}

}  // namespace

const SafeDtype* find_safe_dtype(std::string_view name) {
  const auto* const found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const SafeDtype& dtype) { return dtype.name == name; });
  return found == kDtypes.end() ? nullptr : found;
}

Result<std::vector<SafeTensor>> parse_safetensors_header(std::string_view head, std::uint64_t file_size) {
  Result<std::string_view> text = header_text(head, file_size);
  if (!text) return std::move(text).error();
  Result<Document> header = parse_document("header", "", std::string(*text));
  if (!header) return damaged(header.error().message);
  const std::uint64_t data = kLengthBytes + text->size();
  std::vector<SafeTensor> tensors;
  for (const auto& [name, entry] : header->value.items()) {
    if (name == "__metadata__") {
      if (Result<void> checked = check_metadata(entry); !checked) return std::move(checked).error();
      continue;
    }
    Result<SafeTensor> tensor = read_tensor(name, entry, data, file_size);
    if (!tensor) return std::move(tensor).error();
    tensors.push_back(std::move(*tensor));
  }
  if (Result<void> checked = check_places(tensors, data, file_size); !checked) return std::move(checked).error();
  return tensors;
}

}  // namespace mprun
