#include <gtest/gtest.h>

#include "supervise/phase_text.h"

namespace mprun {
namespace {

[[nodiscard]] std::string text_of(const PhaseFacts& facts) {
  const PhaseText text = phase_text(facts);
  return text.doing.empty() ? text.phase : text.phase + (": " + text.doing);
}

TEST(PhaseText, AStartSaysWhatItIsAt) {
  PhaseFacts facts;
  EXPECT_EQ(text_of(facts), "starting");
  facts.starting = 4;
  EXPECT_EQ(text_of(facts), "starting: waiting for 4 workers to start");
  facts.host = true;
  EXPECT_EQ(text_of(facts), "starting: waiting for the host to start");
  facts.stage = "importing job.py";
  EXPECT_EQ(text_of(facts), "starting: importing job.py");
  facts = {};
  facts.starting = 1;
  facts.first_starting = 3;
  facts.processes = 4;
  EXPECT_EQ(text_of(facts), "starting: waiting for worker 3 to start");
  facts.stage = "setup()";
  EXPECT_EQ(text_of(facts), "starting: setup()");
}

TEST(PhaseText, RanksThatAHostHasNotForkedYet) {
  PhaseFacts facts;
  facts.was_ready = true;
  facts.busy = 2;
  facts.host = true;
  facts.stage = "importing numpy";
  EXPECT_EQ(text_of(facts), "starting: importing numpy");
  facts.processes = 1;
  EXPECT_EQ(text_of(facts), "running");
}

TEST(PhaseText, NothingIsSaidWhileTasksRun) {
  PhaseFacts facts;
  facts.was_ready = true;
  facts.processes = 2;
  facts.busy = 1;
  facts.starting = 1;
  facts.needs_input = true;
  facts.waiting_tasks = 7;
  EXPECT_EQ(text_of(facts), "running");
}

TEST(PhaseText, IdleWorkersHaveAReason) {
  PhaseFacts facts;
  facts.was_ready = true;
  facts.processes = 2;
  EXPECT_EQ(text_of(facts), "running");
  facts.needs_input = true;
  EXPECT_EQ(text_of(facts), "running: waiting for input");
  facts.stdin_input = true;
  EXPECT_EQ(text_of(facts), "running: waiting for input on stdin");
  facts.waiting_tasks = 1;
  EXPECT_EQ(text_of(facts), "running: waiting for 1 task to be tried again");
  facts.starting = 1;
  EXPECT_EQ(text_of(facts), "running: waiting for worker 0 to start");
}

TEST(PhaseText, TheEndNamesWhatIsLeft) {
  PhaseFacts facts;
  facts.was_ready = facts.done = facts.host = true;
  EXPECT_EQ(text_of(facts), "finishing: waiting for the host to end");
  facts.processes = 1;
  EXPECT_EQ(text_of(facts), "finishing: waiting for 1 worker to end");
  facts.stopping = true;
  facts.processes = 2;
  EXPECT_EQ(text_of(facts), "stopping: waiting for 2 workers to end");
  facts.busy = 2;
  EXPECT_EQ(text_of(facts), "stopping: waiting for 2 running tasks");
}

TEST(PhaseText, WhoseTasksAreWaitedFor) {
  PhaseFacts facts;
  facts.was_ready = true;
  facts.other_shards = "shards 2, 3";
  EXPECT_EQ(phase_text(facts).doing, "waiting for shards 2, 3");
  facts.other_shards.clear();
  facts.needs_shared = true;
  EXPECT_EQ(text_of(facts), "running: waiting for blocks of tasks");
  facts.waits_for = "blocks of shard 3";
  EXPECT_EQ(text_of(facts), "running: waiting for blocks of shard 3");
}

}  // namespace
}  // namespace mprun
