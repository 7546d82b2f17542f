// core/cluster: shards and their tasks, host lists, what environment variables say, batch scripts.
#include <gmock/gmock.h>

#include "cluster/allocation.h"
#include "cluster/batch_script.h"
#include "cluster/host_list.h"
#include "cluster/shard.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kArray = {
    {"SLURM_JOB_ID", "13"},          {"SLURM_ARRAY_JOB_ID", "12"},     {"SLURM_ARRAY_TASK_ID", "3"},
    {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "1"},    {"SLURM_ARRAY_TASK_MAX", "7"},
    {"SLURM_ARRAY_TASK_STEP", "2"},  {"SLURM_CPUS_ON_NODE", "8"},      {"SLURM_PROCID", "0"},
    {"SLURM_NTASKS", "1"},           {"SLURM_JOB_NODELIST", "n[3-4]"}, {"SLURMD_NODENAME", "n3"}};
const Variables kStep = {{"SLURM_JOB_ID", "20"}, {"SLURM_STEP_ID", "1"},        {"SLURM_PROCID", "2"},
                         {"SLURM_NTASKS", "3"},  {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "1,2"},
                         {"SLURM_NODEID", "1"},  {"SLURM_CPUS_ON_NODE", "8"},   {"SLURM_STEP_NODELIST", "n[07-08]"}};

TEST(Shard, IsWrittenAsAFraction) {
  const auto shard = parse_shard("2/4");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->index, 1U);
  EXPECT_EQ(to_string(*shard), "2/4");
  for (const char* wrong : {"", "0/4", "5/4", "2", "2/", "/4", "2/4x", "-1/4", "2/9999999"})
    EXPECT_FALSE(parse_shard(wrong)) << wrong;
}

TEST(Shard, EachTaskIsInOne) {
  for (const std::optional<std::uint64_t> total :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(0), std::optional<std::uint64_t>(5),
        std::optional<std::uint64_t>(100)}) {
    for (std::uint64_t count = 1; count < 12; ++count) {
      for (std::uint64_t task = 0; task < total.value_or(100); ++task) {
        int owners = 0;
        for (std::uint64_t index = 0; index < count; ++index)
          owners += tasks_of({index, count}, total).has(task) ? 1 : 0;
        EXPECT_EQ(owners, 1) << "task " << task << " of " << count << " shards";
      }
    }
  }
}

TEST(Shard, BlocksDifferByOneAtMostAndDoNotOverflow) {
  constexpr std::uint64_t kMany = UINT64_MAX / 2;
  EXPECT_EQ(tasks_of({999, 1000}, kMany).end, kMany);
  EXPECT_EQ(tasks_of({1, 4}, 1797).begin, 449U);
  EXPECT_EQ(tasks_of({1, 4}, 1797).size(), 449U);
  EXPECT_EQ(tasks_of({3, 4}, 1797).size(), 450U);
  EXPECT_FALSE(tasks_of({3, 4}, std::nullopt).size());
  EXPECT_EQ(describe({1, 4}, tasks_of({1, 4}, 1797)), "shard 2 of 4: tasks 449 to 897");
  EXPECT_EQ(describe({1, 4}, tasks_of({1, 4}, std::nullopt)), "shard 2 of 4: tasks 1, 5, 9 and so on");
  EXPECT_THAT(describe({0, 4}, tasks_of({0, 4}, 1)), HasSubstr("no tasks"));
}

TEST(HostList, IsExpanded) {
  EXPECT_THAT(expand_hosts("n[1-2,7],login", 10), ElementsAre("n1", "n2", "n7", "login"));
  EXPECT_THAT(expand_hosts("n[08-10]", 10), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expand_hosts("r[1-2]n[1-2]", 10), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  EXPECT_THAT(expand_hosts("n[1-1000000000]", 2), ElementsAre("n1", "n2"));
  EXPECT_THAT(expand_hosts("", 2), ElementsAre());
}

TEST(Allocation, IsNoneWithoutVariables) {
  const Allocation place = recognise({{"PATH", "/bin"}});
  EXPECT_FALSE(place.shard);
  EXPECT_FALSE(place.slurm);
  EXPECT_EQ(place.run_name, "");
}

TEST(Allocation, AJobOfHTCondorHasTheCpusOfItsThreads) {
  const Variables job{{"BATCH_SYSTEM", "HTCondor"}, {"OMP_NUM_THREADS", "6"}};
  EXPECT_EQ(recognise(job).cpus, 6);
  EXPECT_TRUE(recognise(job).threads_are_cpus);
  EXPECT_FALSE(recognise(job).shard);
  EXPECT_FALSE(recognise({{"OMP_NUM_THREADS", "6"}}).cpus);
  EXPECT_FALSE(recognise({{"BATCH_SYSTEM", "HTCondor"}, {"OMP_NUM_THREADS", "many"}}).threads_are_cpus);
}

TEST(Allocation, AnElementOfAnArray) {
  const Allocation place = recognise(kArray);
  ASSERT_TRUE(place.shard);
  EXPECT_EQ(to_string(*place.shard), "2/4");
  EXPECT_EQ(place.shard_source, "SLURM_ARRAY_TASK_ID");
  EXPECT_EQ(place.run_name, "slurm-12");
  EXPECT_EQ(place.cpus, 8);
  EXPECT_EQ(place.node, "n3");
}

TEST(Allocation, ElementsThatAreNotEvenlySpacedMakeNoShards) {
  const Allocation place = recognise(with(kArray, {{"SLURM_ARRAY_TASK_MAX", "9"}}));
  EXPECT_FALSE(place.shard);
  EXPECT_THAT(place.shard_fault, HasSubstr("evenly spaced"));
}

// Slurm 26.05.
TEST(Allocation, ABatchScriptWhoseStepHasASpecialNumber) {
  for (const char* step : {"-5", "4294967291"}) {
    const Allocation place = recognise(with(kArray, {{"SLURM_STEP_ID", step}, {"SLURM_PROCID", "0"}}));
    ASSERT_TRUE(place.shard);
    EXPECT_EQ(to_string(*place.shard), "2/4");
    EXPECT_EQ(place.run_name, "slurm-12");
    EXPECT_EQ(place.cpus, 8);
    EXPECT_EQ(place.master_port, recognise(kArray).master_port);
  }
}

TEST(Allocation, ATaskOfAStep) {
  const Allocation place = recognise(kStep);
  ASSERT_TRUE(place.shard);
  EXPECT_EQ(to_string(*place.shard), "3/3");
  EXPECT_EQ(place.run_name, "slurm-20.1");
  EXPECT_EQ(place.cpus, 4);  // of eight, for one of two tasks on the second node
  EXPECT_EQ(place.first_host, "n07");
  EXPECT_FALSE(place.one_host);
  EXPECT_EQ(recognise(with(kStep, {{"SLURM_CPUS_PER_TASK", "3"}})).cpus, 3);
  const int port = place.master_port;
  EXPECT_TRUE(port >= 15'000 && port < 30'000) << port;
  EXPECT_EQ(recognise(with(kStep, {{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}})).master_port, port);
  EXPECT_NE(recognise(with(kStep, {{"SLURM_STEP_ID", "2"}})).master_port, port);
}

TEST(Allocation, ABatchScriptIsAlone) {
  Variables script = kStep;
  script.erase("SLURM_STEP_ID");
  EXPECT_FALSE(recognise(script).shard);
}

TEST(Allocation, StepsWithinAnArrayAreAllShards) {
  const Allocation place = recognise(with(kArray, kStep));
  ASSERT_TRUE(place.shard);
  EXPECT_EQ(to_string(*place.shard), "6/12");
}

TEST(Allocation, MpirunCountsBeforeTheStepThatStartedIt) {
  const Allocation place = recognise(with(kStep, {{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "5"}}));
  ASSERT_TRUE(place.shard);
  EXPECT_EQ(to_string(*place.shard), "5/5");
  EXPECT_EQ(place.shard_source, "OMPI_COMM_WORLD_RANK");
  const Allocation alone = recognise({{"OMPI_COMM_WORLD_RANK", "1"},
                                      {"OMPI_COMM_WORLD_SIZE", "2"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                      {"PMIX_NAMESPACE", "9/9"}});
  EXPECT_EQ(alone.run_name, "mpi-9-9");
  EXPECT_TRUE(alone.one_host);
  EXPECT_FALSE(alone.same_after_requeue);
}

TEST(Allocation, WhatNamesAPlaceIsNotForChildren) {
  for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID", "PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK",
                           "SLURM_ARRAY_TASK_ID", "SLURM_STEP_ID"})
    EXPECT_TRUE(names_a_place(name)) << name;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURMD_NODENAME", "PATH"})
    EXPECT_FALSE(names_a_place(name)) << name;
}

TEST(BatchScript, SaysWhatWasAskedFor) {
  BatchJob job;
  job.name = "digits";
  job.nodes = 4;
  job.run_dir = "/shared/it's";
  job.time = "1:00:00";
  job.command = {"/bin/mprun", "--set", "env.A=\"b c\"", "job.json"};
  const std::string script = batch_script(job);
  EXPECT_EQ(script.rfind("#!/bin/bash\n", 0), 0U);
  for (const char* line : {"#SBATCH --nodes=4\n", "#SBATCH --time=1:00:00\n", "#SBATCH --exclusive\n",
                           "#SBATCH --output='/shared/it'\\''s/slurm-%j.out'\n",
                           "--kill-on-bad-exit=0 \\\n  /bin/mprun --set 'env.A=\"b c\"' job.json\n"})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_THAT(script, Not(HasSubstr("--partition")));
  EXPECT_THAT(script, Not(HasSubstr("--no-kill")));
  job.options = {"--cpus-per-task=2"};
  job.end_together = true;
  EXPECT_THAT(batch_script(job), Not(HasSubstr("--exclusive")));
  EXPECT_THAT(batch_script(job), HasSubstr("--kill-on-bad-exit=1"));
  job.outlives_nodes = true;
  EXPECT_THAT(batch_script(job), HasSubstr("#SBATCH --no-kill\n"));
  EXPECT_THAT(batch_script(job), HasSubstr("--kill-on-bad-exit=1 --no-kill \\\n"));
}

}  // namespace
}  // namespace mprun
