// What prevents the watch from tracing, in words.
#include "watch/sample/trace_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_process.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

FakeProcess all_to_see() {
  FakeProcess proc;
  const std::string pid = std::to_string(getpid());
  proc.links["self"] = pid;
  proc.files[pid + "/syscall"] = "running\n";
  proc.files[pid + "/schedstat"] = "1 2 3\n";
  return proc;
}

// The explanation for `proc`; there is one even for an unknown architecture.
std::string explanation_for(FakeProcess* proc) {
  const auto problem = access_problem_here(proc);
  if (!problem) return "";
  EXPECT_TRUE(problem->is_total || !can_prove_here());
  EXPECT_FALSE(problem->cure.empty());
  return problem->why;
}

TEST(Sight, IsFreeHere) {
  if (!can_prove_here()) GTEST_SKIP() << "the system calls of this architecture are not known";
  EXPECT_FALSE(access_problem_here(live_proc().get()));
  FakeProcess proc = all_to_see();
  EXPECT_EQ(explanation_for(&proc), "");
}

TEST(Sight, NeedsProc) {
  FakeProcess nothing;
  EXPECT_NE(explanation_for(&nothing).find("/proc is not there"), std::string::npos);
}

TEST(Sight, NeedsTheProcOfOurOwnNamespace) {
  FakeProcess proc = all_to_see();
  proc.links["self"] = std::to_string(getpid() + 1);
  EXPECT_NE(explanation_for(&proc).find("another PID namespace"), std::string::npos);
}

TEST(Sight, NeedsAKernelThatShowsCallsAndTimes) {
  for (const char* file : {"/syscall", "/schedstat"}) {
    FakeProcess proc = all_to_see();
    proc.files.erase(std::to_string(getpid()) + file);
    EXPECT_NE(explanation_for(&proc).find("this kernel does not show"), std::string::npos) << file;
  }
  FakeProcess proc = all_to_see();
  proc.files[std::to_string(getpid()) + "/schedstat"] = "\n";
  EXPECT_NE(explanation_for(&proc).find("this kernel does not show"), std::string::npos);
}

}  // namespace
}  // namespace mprun
