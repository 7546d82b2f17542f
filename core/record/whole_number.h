// whole_number: numbers in files that are read back. For readers of run directories; owns nothing.
#pragma once

#include <cstdint>
#include <utility>

#include "json/document.h"
#include "json/json.h"

namespace mprun {

/// A whole number that a T can hold. Throws a Json::exception for anything else: nlohmann converts 1e300 to an int,
/// too.
template <typename T>
[[nodiscard]] T whole_number(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  } else if (json.is_number_integer()) {
    const auto value = json.get<std::int64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  }
  throw Json::out_of_range::create(401, "not a whole number of this kind", &json);
}

}  // namespace mprun
