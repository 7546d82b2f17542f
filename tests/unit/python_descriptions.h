// Descriptions as newer versions of CPython have them at the start of _PyRuntime, word by word after the cookie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/stacks/python_layout.h"

namespace mprun {

// clang-format off: a line for each part of the description

/// The values are those of CPython 3.13.0 on x86-64.
inline std::vector<std::uint64_t> words_of_313() {
  return {0x030d00f0, 0,                                                                   // version, free_threaded
          283320,     608,  632,                                                           // runtime
          194968,     7272, 7264, 7344, 7400, 7656, 7640, 7648, 16,  7752, 0, 7768, 7760,  // interpreter
          304,        0,    8,    16,   72,   152,  160,  232,  32,                        // thread
          80,         8,    0,    56,   72,   70,                                          // frame
          208,        112,  120,  128,  136,  68,   52,   96,   104, 200,                  // code
          16,         8,    416,  24,   88,   168,                                         // object, type
          32,         24,   16,   40,   24,   16,                                          // tuple, list
          48,         32,   40,   24,   16,   32,   16,   24,                              // dict, float, int
          40,         16,   32,   64,   32,   16,   40,   240,  200};                      // bytes, str, gc
}

/// The fields are those of CPython 3.14's Include/internal/pycore_debug_offsets.h, the values made up where 3.13 has
/// no such field.
inline std::vector<std::uint64_t> words_of_314() {
  return {0x030e00f0, 0,    283320, 808, 832, 194968, 7272, 7264, 7344, 7352, 7400, 7656, 7640, 7648, 16, 7752, 0,
          7768,       7760, 8000,   0,   304, 0,      8,    16,   72,   152,  160,  232,  32,   88,   8,  0,    56,
          80,         74,   64,     0,   208, 112,    120,  128,  136,  68,   52,   96,   104,  200,  0,  16,   8,
          416,        24,   88,     168, 32,  24,     16,   40,   24,   16,   200,  24,   40,   32,  // tuple, list, set
          48,         32,   40,     24,  16,  32,     16,   24,   40,   16,   32,   64,   32,   16,   40, 240,  200};
}
// clang-format on

/// As it lies in memory.
inline std::string description(const std::vector<std::uint64_t>& words) {
  std::string bytes = "xdebugpy";
  bytes.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]);
  bytes.resize(kPythonDescriptionSize, '\xff');
  return bytes;
}

}  // namespace mprun
