#include "formats/dtype.h"

#include <algorithm>
#include <array>
#include <bit>

namespace mprun {

namespace {

static_assert(std::endian::native == std::endian::little, "codes without an order are those of this machine");

constexpr std::string_view kBfloat16 = "bfloat16";

struct Known {
  std::string_view name, code;
  std::uint64_t bytes;
};

constexpr std::array<Known, 15> kKnown = {{{"float32", "f4", 4},
                                           {"float64", "f8", 8},
                                           {"float16", "f2", 2},
                                           {kBfloat16, "", 2},
                                           {"int64", "i8", 8},
                                           {"int32", "i4", 4},
                                           {"int16", "i2", 2},
                                           {"int8", "i1", 1},
                                           {"uint64", "u8", 8},
                                           {"uint32", "u4", 4},
                                           {"uint16", "u2", 2},
                                           {"uint8", "u1", 1},
                                           {"bool", "b1", 1},
                                           {"complex64", "c8", 8},
                                           {"complex128", "c16", 16}}};

}  // namespace

std::optional<Dtype> find_dtype(std::string_view text) {
  char order = '<';
  std::string_view code = text;
  if (!code.empty() && std::string_view("<>=|").find(code.front()) != std::string_view::npos) {
    if (code.front() == '>') order = '>';
    code.remove_prefix(1);
  }
  const auto* const known = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& one) {
    return one.name == text || (!code.empty() && one.code == code);
  });
  if (known == kKnown.end()) return std::nullopt;
  if (known->code.empty()) return Dtype{std::string(known->name), known->bytes};
  if (known->bytes == 1) order = '|';
  return Dtype{order + std::string(known->code), known->bytes};
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  names.reserve(kKnown.size());
  for (const Known& known : kKnown) names.emplace_back(known.name);
  return names;
}

}  // namespace mprun
