// fuzz_replay TARGET ARCHIVE: gives every file of a corpus to a target. It prints each name before it runs the file, so
// the last one is the culprit if the target ends the program. A broken archive is a failure, and so is an empty one.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "archive.h"
#include "targets.h"

namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};

#define TARGET(name) Target{#name, mprun::fuzz::name},
constexpr Target kTargets[] = {
#include "fuzz_targets.inc"
};
#undef TARGET

int replay(const Target& target, const char* archive) {
  std::ifstream file(archive, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto inputs = mprun::fuzz::read_archive(bytes);
  if (!inputs || inputs->empty()) {
    std::cerr << archive << ": " << (inputs ? "no inputs" : inputs.error().message) << "\n";
    return 1;
  }
  for (const auto& input : *inputs) {
    std::cout << input.name << std::endl;  // flushed: what follows may crash
    target.run(input.bytes);
  }
  target.run("");
  std::cout << inputs->size() << " inputs of " << target.name << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 3 ? argv[1] : "";
  const auto* const found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& target) { return name == target.name; });
  if (found == std::end(kTargets)) {
    std::cerr << "usage: fuzz_replay TARGET ARCHIVE\n";
    return 2;
  }
  return replay(*found, argv[2]);
}
