// libFuzzer's entry point for one target, which the build selects.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mprun::fuzz::MPRUN_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
