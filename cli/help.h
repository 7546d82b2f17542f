// The help texts of mprun. Called by cli/options; owns nothing.
#pragma once

#include <string>

namespace mprun {

/// For `mprun --help`: what users need first, on a screen of 24 lines and 80 columns.
[[nodiscard]] std::string short_help();

/// For `mprun --help-all`: every form of the command line, then `options`, CLI11's list of them.
[[nodiscard]] std::string full_help(const std::string& options);

}  // namespace mprun
