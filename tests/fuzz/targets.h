// The fuzz targets: functions that give mprun's readers bytes of anybody's making and end the program where what comes
// back breaks a promise. Called by libFuzzer (fuzzer.cc) and over the committed corpora (replay.cc).
#pragma once

#include <string_view>

namespace mprun::fuzz {

#define TARGET(name) void name(std::string_view input);
#include "fuzz_targets.inc"  // the list of CMakeLists.txt
#undef TARGET

}  // namespace mprun::fuzz
