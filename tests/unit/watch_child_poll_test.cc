// Whether a process asks if a child has ended, as its preload library records it.
#include "watch/sample/child_poll.h"

#include <gtest/gtest.h>

#include "fake_proc.h"
#include "python_program.h"

namespace mprun {
namespace {

constexpr const char* kAsks = R"(
import subprocess, sys, time
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
while child.poll() is None:
    print(child.pid, flush=True)
    if not sys.stdin.readline():
        break
)";

TEST(ChildPoll, StandsInTheMemoryOfTheLibrary) {
  auto input = make_pipe();
  auto output = make_pipe();
  ASSERT_TRUE(input && output);
  SpawnPlan plan;
  plan.argv = {MPRUN_PYTHON, "-I", "-c", kAsks};
  plan.env = {"LD_PRELOAD=" MPRUN_PRELOAD_LIBRARY};
  plan.fds = {{input->read.get(), 0}, {output->write.get(), 1}, {2, 2}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0) << failure.stage;
  const auto printed = [&] {
    std::string line;
    for (char c = 0; read(output->read.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  };

  const auto proc = live_proc();
  const std::string child = printed();
  EXPECT_EQ(std::to_string(last_child_poll(proc.get(), pid).child), child);
  EXPECT_EQ(last_child_poll(proc.get(), pid).count, 1U);
  ASSERT_EQ(write(input->write.get(), "\n", 1), 1);
  (void)printed();
  EXPECT_EQ(last_child_poll(proc.get(), pid).count, 2U);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(ChildPoll, IsNotKnownWithoutTheLibrary) {
  FakeProc proc;
  proc.process(10).thread(10);
  EXPECT_EQ(last_child_poll(&proc, 10).child, 0);
}

}  // namespace
}  // namespace mprun
