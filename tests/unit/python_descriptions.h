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

/// The same of a free-threaded CPython 3.13.5.
inline std::vector<std::uint64_t> words_of_free_threaded_313() {
  return {0x030d05f0, 1,                                                                   // version, free_threaded
          328320,     608,  632,                                                           // runtime
          215616,     7272, 7264, 7344, 7400, 7664, 7648, 7656, 16,  7760, 0, 7784, 7776,  // interpreter
          304,        0,    8,    16,   72,   152,  160,  232,  32,                        // thread
          80,         8,    0,    56,   72,   70,                                          // frame
          224,        128,  136,  144,  152,  84,   68,   112,  120, 216,                  // code
          32,         24,   432,  40,   104,  184,                                         // object, type
          48,         40,   32,   56,   40,   32,                                          // tuple, list
          64,         48,   56,   40,   32,   48,   32,   40,                              // dict, float, int
          56,         32,   48,   80,   48,   32,   56,   248,  200};                      // bytes, str, gc
}

/// The same of CPython 3.14.10.
inline std::vector<std::uint64_t> words_of_314() {
  return {0x030e0af0, 0,          // version, ...
          316616,     784,  808,  // runtime
          225864,     7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16,  7784, 0, 7800, 7792, 7992, 0,  // interpreter
          832,        0,    8,    16,   72,   152,  160,  232,  32,                                       // thread
          88,         8,    0,    56,   80,   74,   64,   0,                                              // frame
          216,        112,  120,  128,  136,  68,   52,   96,   104,  208, 0,                             // code
          16,         8,    416,  24,   88,   168,                         // object, type
          40,         32,   16,   40,   24,   16,   200,  24,   40,   32,  // tuple, list, set
          48,         32,   40,   24,   16,   32,   16,   24,              // dict, float, int
          40,         16,   32,   64,   32,   16,   40,   264,  192};      // bytes, str, gc
}

/// The same of a free-threaded CPython 3.14.7.
inline std::vector<std::uint64_t> words_of_free_threaded_314() {
  return {0x030e07f0, 1,                                                                    // version, ...
          362368,     784,  808,                                                            // runtime
          246720,     7280, 7272, 7344,  7360, 7408, 7712, 7696, 7704, 16,  7808, 0,        // interpreter
          7832,       7824, 8024, 17628, 832,  0,    8,    16,   72,   152, 160,  232, 32,  // thread
          88,         8,    0,    56,    80,   78,   64,   72,                              // frame
          240,        128,  136,  144,   152,  84,   68,   112,  120,  232, 224,            // code
          32,         24,   432,  40,    104,  184,                                         // object, type
          56,         48,   32,   56,    40,   32,   216,  40,   56,   48,                  // tuple, list, set
          64,         48,   56,   40,    32,   48,   32,   40,                              // dict, float, int
          56,         32,   48,   80,    48,   32,   56,   288,  192};                      // bytes, str, gc
}

/// The same of CPython 3.15.2.
inline std::vector<std::uint64_t> words_of_315() {
  return {
      0x030f02f0, 0,                                                                                   // version, ...
      346568,     912,  936,                                                                           // runtime
      226240,     7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16,  7736, 0,  7752, 7744, 7944, 0,  // interpreter
      888,        0,    8,    16,   72,   80,   88,   96,   176,  184, 256,  32, 36,   40,   136,  288, 0,  // thread
      88,         8,    0,    56,   80,   74,   64,   0,                                                    // frame
      216,        112,  120,  128,  136,  68,   52,   96,   104,  208, 0,                                   // code
      16,         8,    424,  24,   88,   168,  32,   288,  944,  888,   // object, types
      40,         32,   16,   40,   24,   16,   200,  24,   40,   32,    // tuple, list, set
      48,         32,   40,   24,   16,   32,   16,   24,                // dict, float, int
      40,         16,   32,   64,   32,   16,   40,   56,   176,  112};  // bytes, str, gc
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
