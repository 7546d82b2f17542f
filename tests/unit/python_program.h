// PythonProgram: one of the Python programs in tests/unit/watch, running while a test looks at it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "json/json.h"
#include "os/fd.h"
#include "os/process.h"
#include "watch/stacks/python_instructions.h"

namespace mprun {

/// True as soon as `holds` is; false after a time no machine needs.
template <typename Condition>
bool eventually(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Whether mprun follows the instructions of this Python, "3.11.2".
inline bool reads_instructions(const std::string& version) {
  const auto minor = static_cast<unsigned>(std::strtoul(version.substr(2).c_str(), nullptr, 10));
  return version.starts_with("3.") && knows_instructions(minor);
}

class PythonProgram {
 public:
  explicit PythonProgram(const std::string& mode, const std::string& file = "python_stacks.py") {
    const char* chosen = std::getenv("MPRUN_PYTHON");
    auto input = make_pipe();
    auto output = make_pipe();
    EXPECT_TRUE(input && output);
    input_ = std::move(input->write);
    output_ = std::move(output->read);
    SpawnPlan plan;
    plan.argv = {chosen != nullptr ? chosen : MPRUN_PYTHON,
                 "-I",
                 "-W",
                 "ignore",
                 std::string(MPRUN_SOURCE_DIR) + "/tests/unit/watch/" + file,
                 mode};
    plan.env = {"LC_ALL=C.UTF-8"};
    plan.fds = {{input->read.get(), 0}, {output->write.get(), 1}, {2, 2}};
    SpawnFailure failure;
    pid_ = spawn_process(plan, &failure);
    EXPECT_GT(pid_, 0) << failure.stage;
  }
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;
  ~PythonProgram() {
    input_.reset();  // its reader continues and ends
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);  // its session, children included
    waitpid(pid_, nullptr, 0);
  }

  /// Waits for its line of JSON.
  Json report() {
    std::string line;
    char c = 0;
    while (read(output_.get(), &c, 1) == 1 && c != '\n') line += c;
    EXPECT_FALSE(line.empty()) << "it ended before it reported";
    return parse_json(line);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Fd input_, output_;
};

}  // namespace mprun
