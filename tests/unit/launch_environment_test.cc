// What the processes of a job find in their environment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/environment.h"
#include "launch/launcher.h"
#include "supervise/command_pool.h"

namespace mprun {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(Environment, ThreadCountsAreSetUnlessTheUserDid) {
  JobSpec spec;
  spec.threads_per_worker = 3;
  const Environment mine{{"OMP_NUM_THREADS", "7"}, {"PATH", "/bin"}};
  auto env = job_environment(spec, mine, "/run");
  EXPECT_EQ(env["OMP_NUM_THREADS"], "7");
  EXPECT_EQ(env["MKL_NUM_THREADS"], "3");
  EXPECT_EQ(env["MPRUN_RUN_DIR"], "/run");
  spec.threads_explicit = true;
  EXPECT_EQ(job_environment(spec, mine, "/run")["OMP_NUM_THREADS"], "3");
  spec.env = {{"OMP_NUM_THREADS", "9"}};
  EXPECT_EQ(job_environment(spec, mine, "/run")["OMP_NUM_THREADS"], "9");
}

TEST(Environment, ThreadsThatSayHowManyCpusThereAreAreNoWishOfTheUsers) {
  JobSpec spec;
  spec.threads_per_worker = 1;
  spec.allocation.cpus = 4;
  const Environment mine{{"OMP_NUM_THREADS", "4"}, {"MKL_NUM_THREADS", "2"}};
  EXPECT_EQ(job_environment(spec, mine, "/run")["OMP_NUM_THREADS"], "4");
  spec.allocation.threads_are_cpus = true;
  auto env = job_environment(spec, mine, "/run");
  EXPECT_EQ(env["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(env["MKL_NUM_THREADS"], "2");
}

TEST(Environment, OfAnotherJobsTaskIsNotHandedOn) {
  const Environment inherited{
      {"MPRUN_TASK", "7"}, {"MPRUN_ATTEMPT", "2"}, {"MPRUN_WORKER", "3"}, {"MPRUN_CPUS", "0-3"}, {"PATH", "/bin"}};
  const auto env = job_environment(JobSpec(), inherited, "/run");
  for (const char* name : {"MPRUN_TASK", "MPRUN_ATTEMPT", "MPRUN_WORKER", "MPRUN_CPUS"}) {
    EXPECT_THAT(env, Not(Contains(Key(name))));
  }
  EXPECT_THAT(env, Contains(Key("PATH")));
}

TEST(Environment, WhatAServiceManagerSetsIsForMprunAlone) {
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "1000000", 1);
  const Environment env = own_environment();
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  EXPECT_THAT(env, Not(Contains(Key("NOTIFY_SOCKET"))));
  EXPECT_THAT(env, Not(Contains(Key("WATCHDOG_USEC"))));
  EXPECT_THAT(env, Contains(Key("PATH")));
}

TEST(Environment, TheAllocatorComesAfterOurLibraryAndBeforeOthers) {
  JobSpec spec;
  spec.allocator_library = "/lib/libjemalloc.so.2";
  spec.env = {{"LD_PRELOAD", "/mine.so"}};
  Environment env = job_environment(spec, {}, "/run");
  add_adapters(&env, {"/preload.so", "/site", "notes", "", ""}, {});
  EXPECT_EQ(env["LD_PRELOAD"], "/preload.so:/lib/libjemalloc.so.2:/mine.so");
  EXPECT_THAT(env, Not(Contains(Key("MALLOC_TRIM_THRESHOLD_"))));
}

TEST(Environment, FreeMemoryIsKeptUnlessTheUserTunesMalloc) {
  const JobSpec spec;
  EXPECT_EQ(job_environment(spec, {}, "/run")["MALLOC_TRIM_THRESHOLD_"], "134217728");
  EXPECT_THAT(job_environment(spec, {{"MALLOC_TOP_PAD_", "0"}}, "/run"), Not(Contains(Key("MALLOC_TRIM_THRESHOLD_"))));
  EXPECT_THAT(job_environment(spec, {{"GLIBC_TUNABLES", ""}}, "/run"), Not(Contains(Key("MALLOC_MMAP_THRESHOLD_"))));
  JobSpec mine;
  mine.env = {{"MALLOC_TRIM_THRESHOLD_", "1"}};
  EXPECT_EQ(job_environment(mine, {}, "/run")["MALLOC_TRIM_THRESHOLD_"], "1");
  JobSpec commands;
  commands.kind = JobKind::kCommand;
  EXPECT_THAT(job_environment(commands, {}, "/run"), Not(Contains(Key("MALLOC_TRIM_THRESHOLD_"))));
}

TEST(Environment, DevicesGoRoundAndHideTheOthers) {
  JobSpec spec;
  spec.device = {DeviceKind::kCuda, {"0", "2"}};
  EXPECT_EQ(slot_environment(spec, 0)["CUDA_VISIBLE_DEVICES"], "0");
  EXPECT_EQ(slot_environment(spec, 1)["CUDA_VISIBLE_DEVICES"], "2");
  EXPECT_EQ(slot_environment(spec, 2)["MPRUN_DEVICE"], "cuda:0");
  EXPECT_EQ(slot_environment(spec, 3)["MPRUN_DEVICE_INDEX"], "2");
  spec.device = {DeviceKind::kCuda, {"0", "2", "3", "7", "8"}, 2};
  EXPECT_EQ(slot_environment(spec, 1)["CUDA_VISIBLE_DEVICES"], "3,7");
  EXPECT_EQ(slot_environment(spec, 1)["MPRUN_DEVICE"], "cuda:3,7");
  spec.device = {DeviceKind::kAscend, {"5"}};
  EXPECT_EQ(slot_environment(spec, 9)["ASCEND_RT_VISIBLE_DEVICES"], "5");
  spec.device = {};
  EXPECT_THAT(slot_environment(spec, 0), Not(Contains(Pair("CUDA_VISIBLE_DEVICES", testing::_))));
}

TEST(Environment, RanksGetTorchrunsVariables) {
  EXPECT_THAT(
      rank_environment(2, 4, 29501),
      IsSupersetOf({Pair("RANK", "2"), Pair("LOCAL_RANK", "2"), Pair("WORLD_SIZE", "4"), Pair("LOCAL_WORLD_SIZE", "4"),
                    Pair("MASTER_ADDR", "127.0.0.1"), Pair("MASTER_PORT", "29501")}));
}

TEST(Environment, RanksDoWithoutLibuvByDefault) {
  JobSpec spec;
  EXPECT_EQ(job_environment(spec, {}, "/run").count("USE_LIBUV"), 0U);
  spec.kind = JobKind::kRanks;
  EXPECT_EQ(job_environment(spec, {}, "/run")["USE_LIBUV"], "0");
  EXPECT_EQ(job_environment(spec, {{"USE_LIBUV", "1"}}, "/run")["USE_LIBUV"], "1");
  spec.env = {{"USE_LIBUV", "1"}};
  EXPECT_EQ(job_environment(spec, {}, "/run")["USE_LIBUV"], "1");
}

TEST(Environment, RanksOfAllNodesAreCountedTogether) {
  EXPECT_THAT(rank_environment(2, 4, 29501, Shard{1, 3}, "first"),
              IsSupersetOf({Pair("RANK", "6"), Pair("LOCAL_RANK", "2"), Pair("WORLD_SIZE", "12"),
                            Pair("LOCAL_WORLD_SIZE", "4"), Pair("GROUP_RANK", "1"), Pair("MASTER_ADDR", "first")}));
}

TEST(Environment, FlattenLetsTheSecondWin) {
  EXPECT_THAT(flatten({{"A", "1"}, {"B", "2"}}, {{"A", "3"}}), ElementsAre("A=3", "B=2"));
}

TEST(Environment, FlattenKeepsTheOrderOfOurs) {
  setenv("MPRUN_TEST_Z", "1", 1);
  setenv("MPRUN_TEST_A", "1", 1);
  EXPECT_THAT(flatten({{"MPRUN_TEST_A", "1"}, {"MPRUN_TEST_Z", "1"}, {"MPRUN_TEST_B", "1"}}, {{"MPRUN_TEST_A", "2"}}),
              ElementsAre("MPRUN_TEST_Z=1", "MPRUN_TEST_A=2", "MPRUN_TEST_B=1"));
  unsetenv("MPRUN_TEST_Z");
  unsetenv("MPRUN_TEST_A");
}

TEST(FillCommand, ReplacesAllThreeAndTheInputOnlyOnce) {
  EXPECT_THAT(fill_command({"echo", "{}-{#}", "{%}", "plain"}, "\"a {} {#} b\"", 7, 1),
              ElementsAre("echo", "a {} {#} b-7", "1", "plain"));
  EXPECT_THAT(fill_command({"{}"}, "[1,2]", 0, 0), ElementsAre("[1,2]"));
  EXPECT_THAT(fill_command({"{}"}, R"("\udcff")", 0, 0), ElementsAre("\xff"));
}

TEST(LogTail, GivesTheLastLinesAfterTheOffset) {
  const std::string path = testing::TempDir() + "mprun-log-tail";
  auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  ASSERT_TRUE(file);
  std::string text;
  for (int line = 0; line < 20; ++line) text += "line " + std::to_string(line) + "\n";
  ASSERT_TRUE(write_all(file->get(), text));
  EXPECT_EQ(log_tail(path, 0).substr(0, 8), "line 10\n");
  EXPECT_EQ(log_tail(path, static_cast<std::int64_t>(text.size()) - 8), "line 19");
  EXPECT_EQ(log_tail(path, 1'000'000), "");
  EXPECT_EQ(log_tail("/nowhere", 0), "");
}

TEST(StartFailure, IsExplainedWithItsTraceback) {
  EXPECT_EQ(explain_start_failure(R"({"stage":"setup","message":"setup failed","traceback":"Trace\n"})"),
            "setup failed\nTrace");
  EXPECT_EQ(
      explain_start_failure(R"({"message":"no x","type":"ModuleNotFoundError","python":"/usr/bin/python3"})"),
      "no x\n  /usr/bin/python3 has no such module: install it there, or set \"python\" (--python) to one that has "
      "it");
  EXPECT_NE(explain_start_failure("nonsense"), "");
}

}  // namespace
}  // namespace mprun
