// Decimal numbers at the start of a text. std::from_chars reads them only since GCC 11; the portable build has the
// libstdc++ of GCC 10 (configs/portable).
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mprun {

/// Takes digits, with at most one point among them, off the front of `*rest`; false: there is no number, or none that a
/// double can hold. mprun sets no locale, so the point is a point.
[[nodiscard]] inline bool take_decimal(std::string_view* rest, double* number) {
  const std::string digits(rest->substr(0, rest->find_first_not_of("0123456789.")));
  char* end = nullptr;
  *number = std::strtod(digits.c_str(), &end);
  rest->remove_prefix(static_cast<std::size_t>(end - digits.c_str()));
  return end != digits.c_str() && std::isfinite(*number);
}

}  // namespace mprun
