// Control sequences that change how the following text looks on a terminal (ECMA-48, SGR).
#pragma once

#include <string_view>

namespace mprun {

inline constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kRed = "\x1b[31m", kGreen = "\x1b[32m",
                                  kYellow = "\x1b[33m", kReset = "\x1b[0m";

}  // namespace mprun
