#include <gtest/gtest.h>

#include "supervise/phase_text.h"

namespace mprun {
namespace {

[[nodiscard]] std::string told(const Standing& standing) {
  const PhaseText text = phase_text(standing);
  return text.doing.empty() ? text.phase : text.phase + (": " + text.doing);
}

TEST(PhaseText, AStartSaysWhatItIsAt) {
  Standing standing;
  EXPECT_EQ(told(standing), "starting");
  standing.starting = 4;
  EXPECT_EQ(told(standing), "starting: waiting for 4 workers to start");
  standing.host = true;
  EXPECT_EQ(told(standing), "starting: waiting for the host to start");
  standing.stage = "importing job.py";
  EXPECT_EQ(told(standing), "starting: importing job.py");
  standing = {};
  standing.starting = 1;
  standing.first_starting = 3;
  standing.processes = 4;
  EXPECT_EQ(told(standing), "starting: waiting for worker 3 to start");
  standing.stage = "setup()";
  EXPECT_EQ(told(standing), "starting: setup()");
}

TEST(PhaseText, RanksThatAHostHasNotForkedYet) {
  Standing standing;
  standing.was_ready = true;
  standing.busy = 2;
  standing.host = true;
  standing.stage = "importing numpy";
  EXPECT_EQ(told(standing), "starting: importing numpy");
  standing.processes = 1;
  EXPECT_EQ(told(standing), "running");
}

TEST(PhaseText, NothingIsSaidWhileTasksRun) {
  Standing standing;
  standing.was_ready = true;
  standing.processes = 2;
  standing.busy = 1;
  standing.starting = 1;
  standing.needs_input = true;
  standing.waiting_tasks = 7;
  EXPECT_EQ(told(standing), "running");
}

TEST(PhaseText, IdleWorkersHaveAReason) {
  Standing standing;
  standing.was_ready = true;
  standing.processes = 2;
  EXPECT_EQ(told(standing), "running");
  standing.needs_input = true;
  EXPECT_EQ(told(standing), "running: waiting for input");
  standing.stdin_input = true;
  EXPECT_EQ(told(standing), "running: waiting for input on stdin");
  standing.waiting_tasks = 1;
  EXPECT_EQ(told(standing), "running: waiting for 1 task to be tried again");
  standing.starting = 1;
  EXPECT_EQ(told(standing), "running: waiting for worker 0 to start");
}

TEST(PhaseText, TheEndSaysWhoIsLeft) {
  Standing standing;
  standing.was_ready = standing.done = standing.host = true;
  EXPECT_EQ(told(standing), "finishing: waiting for the host to end");
  standing.processes = 1;
  EXPECT_EQ(told(standing), "finishing: waiting for 1 worker to end");
  standing.stopping = true;
  standing.processes = 2;
  EXPECT_EQ(told(standing), "stopping: waiting for 2 workers to end");
  standing.busy = 2;
  EXPECT_EQ(told(standing), "stopping: waiting for 2 running tasks");
}

TEST(PhaseText, WhoseTasksAreWaitedFor) {
  Standing standing;
  standing.was_ready = true;
  standing.needs_shared = true;
  EXPECT_EQ(told(standing), "running: waiting for blocks of tasks");
  standing.waits_for = "blocks of shard 3";
  EXPECT_EQ(told(standing), "running: waiting for blocks of shard 3");
}

}  // namespace
}  // namespace mprun
