// fuzz_replay TARGET DIRECTORY: gives every file of a corpus to a target. It names each before it runs it, so that the
// last one is the culprit where the target ends the program.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

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

int replay(const Target& target, const std::string& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::cout << path.string() << std::endl;  // flushed: what follows may crash
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    target.run(input);
  }
  target.run("");
  std::cout << files.size() << " inputs of " << target.name << "\n";
  return files.empty() ? 1 : 0;  // a corpus that is not there is no test
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 3 ? argv[1] : "";
  const auto* const found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& target) { return name == target.name; });
  if (found == std::end(kTargets)) {
    std::cerr << "usage: fuzz_replay TARGET DIRECTORY\n";
    return 2;
  }
  return replay(*found, argv[2]);
}
