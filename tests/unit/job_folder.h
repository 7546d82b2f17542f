// JobFolder: the fixture of tests that resolve a job in a folder of its own, which has an empty script, job.py, and an
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "job/resolve.h"

namespace mprun {

class JobFolder : public ::testing::Test {
 protected:
  JobFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mprun-job-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    around_.current_directory = directory_;
    around_.env = {{"PATH", directory_}};
    write("job.py", "");
    write("python3", "");
    std::filesystem::permissions(directory_ + "/python3", std::filesystem::perms::all);
  }
  ~JobFolder() override { std::filesystem::remove_all(directory_); }

  /// Returns the path of the file.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << bytes;
    return directory_ + "/" + name;
  }

  std::string directory_;
  Surroundings around_;
};

}  // namespace mprun
