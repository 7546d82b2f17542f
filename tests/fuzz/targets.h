// The fuzz targets: functions that give arbitrary bytes to mprun's readers and end the program if the output breaks a
// promise. Called by libFuzzer (fuzzer.cc) and over the committed corpora (replay.cc).
#pragma once

#include <string_view>

namespace mprun::fuzz {

#define TARGET(name) void name(std::string_view input);
#include "fuzz_targets.inc"  // the list from CMakeLists.txt
#undef TARGET

}  // namespace mprun::fuzz
