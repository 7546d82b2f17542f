#include "placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "placement/processors_text.h"
#include "placement/topology.h"

namespace mprun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A machine as hwloc describes it: "pack:2 [numa] core:4 pu:2".
Topology described(const char* description) {
  setenv("HWLOC_SYNTHETIC", description, 1);
  auto topology = read_topology();
  unsetenv("HWLOC_SYNTHETIC");
  return topology ? *topology : Topology();
}

/// A machine of which tests/unit/topologies has hwloc's XML.
Topology recorded_machine(const std::string& name) {
  setenv("HWLOC_XMLFILE", (MPRUN_SOURCE_DIR "/tests/unit/topologies/" + name + ".xml").c_str(), 1);
  auto topology = read_topology();
  unsetenv("HWLOC_XMLFILE");
  return topology ? *topology : Topology();
}

std::vector<std::string> texts(const Result<Placement>& placement) {
  std::vector<std::string> lists;
  if (!placement) return {placement.error().message};
  for (const CpuList& cpus : placement->workers) lists.push_back(to_string(cpus));
  return lists;
}

Result<Placement> place_workers(const Topology& topology, Binding binding, int workers, std::optional<int> threads) {
  PlacementQuery query;
  query.binding = binding;
  query.workers = workers;
  query.threads = threads;
  query.usable_cpus = static_cast<int>(topology.cpus().size());
  return place_workers(topology, query);
}

int threads_of(const Topology& topology, Binding binding, int workers) {
  const auto placement = place_workers(topology, binding, workers, std::nullopt);
  return placement ? placement->threads : 0;
}

TEST(CpuListText, IsWhatTasksetWrites) {
  EXPECT_EQ(to_string(CpuList{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(to_string(CpuList{}), "");
  EXPECT_EQ(parse_cpu_list("8,0-3,2"), (CpuList{0, 1, 2, 3, 8}));
  for (const char* wrong : {"", "a", "3-1", "-1", "1,", "1-", "65536", "1 "})
    EXPECT_EQ(parse_cpu_list(wrong), std::nullopt);
}

TEST(TopologyTest, ReadsPackagesNodesAndCores) {
  const Topology server = described("pack:2 [numa] core:4 pu:2");
  ASSERT_EQ(server.cores.size(), 8U);
  EXPECT_FALSE(server.is_real);
  EXPECT_EQ(server.packages(), 2);
  EXPECT_EQ(server.nodes(), 2);
  EXPECT_EQ(server.cores[5].package, 1);
  EXPECT_EQ(server.cores[5].node, 1);
  EXPECT_EQ(to_string(server.cores[5].cpus), "10-11");
}

TEST(TopologyTest, ReadsSeveralNodesInAPackage) {
  const Topology server = described("pack:2 die:4 [numa] core:8 pu:1");
  EXPECT_EQ(server.packages(), 2);
  EXPECT_EQ(server.nodes(), 8);
  EXPECT_EQ(server.cores.size(), 64U);
}

TEST(TopologyTest, KnowsTheNodesBesideProcessors) {
  const Topology server = described("pack:2 die:2 [numa] core:2 pu:2");
  EXPECT_THAT(server.nodes_beside({0, 5}), ElementsAre(0, 1));
  EXPECT_THAT(server.nodes_beside({15}), ElementsAre(3));
  EXPECT_THAT(server.nodes_beside(server.cpus()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(server.nodes_beside({}), IsEmpty());
}

TEST(TopologyTest, IsThatOfThisMachine) {
  const auto here = read_topology();
  ASSERT_TRUE(here);
  EXPECT_TRUE(here->is_real);
  EXPECT_FALSE(here->cpus().empty());
}

TEST(PlaceWorkers, GivesEachItsCoresOfOneNode) {
  const Topology server = described("pack:2 [numa] core:4 pu:2");
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 2, 8)), ElementsAre("0-7", "8-15"));
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 4, 4)), ElementsAre("0-3", "4-7", "8-11", "12-15"));
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 3, 1)), ElementsAre("0-3", "4-7", "8-15"));
}

TEST(PlaceWorkers, SaysHowManyCoresAreMissing) {
  const Topology server = described("pack:2 [numa] core:3 pu:1");
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 3, 2)),
              ElementsAre(HasSubstr("3 workers of 2 threads need 6 cores, each worker those of one memory node; usable "
                                    "are 6 cores of 2 memory nodes")));
}

TEST(PlaceWorkers, SpreadsThemByTheCoresOfANode) {
  Topology uneven = described("pack:2 [numa] core:4 pu:1");
  uneven.cores.resize(6);  // four of the first, two of the second
  EXPECT_THAT(texts(place_workers(uneven, Binding::kNuma, 6, 1)),
              ElementsAre("0-3", "0-3", "0-3", "0-3", "4-5", "4-5"));
}

TEST(PlaceWorkers, TakesPackagesWithAllTheirNodes) {
  const Topology server = described("pack:2 die:2 [numa] core:2 pu:1");
  EXPECT_THAT(texts(place_workers(server, Binding::kSocket, 2, 1)), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(texts(place_workers(server, Binding::kNuma, 4, 1)), ElementsAre("0-1", "2-3", "4-5", "6-7"));
}

TEST(PlaceWorkers, BindsByItselfOnlyWhereThatHelps) {
  const auto small = place_workers(described("pack:1 [numa] core:8 pu:2"), Binding::kAuto, 4, 1);
  ASSERT_TRUE(small);
  EXPECT_THAT(small->workers, IsEmpty());
  EXPECT_THAT(small->reason, HasSubstr("one memory node"));

  Topology server = described("pack:2 [numa] core:4 pu:1");
  EXPECT_THAT(texts(place_workers(server, Binding::kAuto, 4, 2)), ElementsAre("0-3", "0-3", "4-7", "4-7"));
  server.excluded = {8};  // a batch system has given us these
  EXPECT_THAT(texts(place_workers(server, Binding::kAuto, 4, 2)), ElementsAre("0-1", "2-3", "4-5", "6-7"));

  const auto full = place_workers(server, Binding::kAuto, 9, 1);
  ASSERT_TRUE(full);
  EXPECT_THAT(full->workers, IsEmpty());
  EXPECT_THAT(full->reason, HasSubstr("9 workers of 1 thread need 9 CPUs"));

  const Topology threaded = described("pack:2 [numa] core:2 pu:2");
  EXPECT_THAT(texts(place_workers(threaded, Binding::kAuto, 8, 1)),
              ElementsAre("0-3", "0-3", "0-3", "0-3", "4-7", "4-7", "4-7", "4-7"));
  EXPECT_THAT(place_workers(threaded, Binding::kAuto, 3, 3)->workers, IsEmpty());  // two would share four
}

TEST(PlaceWorkers, CountsTheThreadsThatACoreRuns) {
  const Topology two = described("pack:1 [numa] core:4 pu:2");
  EXPECT_THAT(texts(place_workers(two, Binding::kCore, 2, 4)), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(texts(place_workers(two, Binding::kCore, 4, 3)), ElementsAre(HasSubstr("need 8 cores")));
}

TEST(PlaceWorkers, GivesEachThreadAProcessor) {
  const Topology server = described("pack:2 [numa] core:4 pu:2");
  EXPECT_EQ(threads_of(server, Binding::kNone, 3), 5);  // 16 processors / 3
  EXPECT_EQ(threads_of(server, Binding::kCore, 3), 4);  // two workers share a node
  EXPECT_EQ(threads_of(server, Binding::kNuma, 3), 4);
  EXPECT_EQ(threads_of(server, Binding::kNuma, 6), 2);
  EXPECT_EQ(threads_of(server, Binding::kSocket, 1), 8);
  EXPECT_EQ(threads_of(server, Binding::kAuto, 40), 1);
  PlacementQuery query;
  query.lists = {{0, 1, 2, 3}, {3}};
  query.workers = 2;
  query.usable_cpus = 16;
  EXPECT_EQ(place_workers(server, query)->threads, 1);
  query.lists = {{0, 1, 2, 3}};
  query.workers = 3;
  EXPECT_THAT(texts(place_workers(server, query)), ElementsAre("0-3", "0-3", "0-3"));
  EXPECT_EQ(place_workers(server, query)->threads, 1);
  query.usable_cpus = 2;  // of a quota
  query.workers = 1;
  EXPECT_EQ(place_workers(server, query)->threads, 2);
}

TEST(PlaceWorkers, LeavesHyperThreadsUnused) {
  const Topology cores = described("pack:2 [numa] core:4 pu:2").without_hyperthreads();
  EXPECT_EQ(to_string(cores.cpus()), "0,2,4,6,8,10,12,14");
  EXPECT_THAT(texts(place_workers(cores, Binding::kCore, 2, std::nullopt)), ElementsAre("0,2,4,6", "8,10,12,14"));
  EXPECT_EQ(threads_of(cores, Binding::kCore, 2), 4);
}

TEST(ProcessorsText, ShowsWhoRunsWhere) {
  Topology server = described("pack:2 [numa] core:4 pu:2");
  const auto bound = place_workers(server, Binding::kAuto, 3, std::nullopt);
  ASSERT_TRUE(bound);
  EXPECT_EQ(processors_text(server, *bound, 3),
            "package 0, memory node 0: 4 cores, CPUs 0-7, workers 0-1\n"
            "package 1, memory node 1: 4 cores, CPUs 8-15, worker 2\n"
            "by default 3 workers of 4 threads, bound: memory nodes, not cores: mprun has no part of the machine to "
            "itself\n");
  server.excluded = {16, 17};
  EXPECT_THAT(processors_text(server, *bound, 3),
              HasSubstr("\nnot usable, by the affinity mask or a control group: CPUs 16-17\n"));
  const Topology small = described("pack:1 [numa] core:2 pu:1");
  const auto unbound = place_workers(small, Binding::kAuto, 2, std::nullopt);
  ASSERT_TRUE(unbound);
  EXPECT_EQ(processors_text(small, *unbound, 2),
            "package 0, memory node 0: 2 cores, CPUs 0-1\n"
            "by default 2 workers of 1 thread, not bound: one memory node: the kernel places threads equally well\n");
}

// As the kernel of a server with two Xeons numbers them: first a thread of each core, then the others.
TEST(PlaceWorkers, KeepsThreadsOfACoreTogether) {
  const Topology server = recorded_machine("two_sockets");
  EXPECT_FALSE(server.is_real);
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 4, 4)),
              ElementsAre("0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"));
  EXPECT_THAT(texts(place_workers(server, Binding::kAuto, 2, std::nullopt)), ElementsAre("0-3,8-11", "4-7,12-15"));
  EXPECT_THAT(texts(place_workers(server.without_hyperthreads(), Binding::kCore, 2, 4)), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(server.nodes_beside({4, 12}), ElementsAre(1));
}

// An EPYC with four nodes in each socket.
TEST(PlaceWorkers, SpreadsOverTheNodesOfASocket) {
  const Topology server = recorded_machine("four_nodes");
  EXPECT_EQ(server.packages(), 2);
  EXPECT_EQ(server.nodes(), 8);
  const auto eight = place_workers(server, Binding::kAuto, 8, std::nullopt);
  EXPECT_THAT(texts(eight), ElementsAre("0-1,16-17", "2-3,18-19", "4-5,20-21", "6-7,22-23", "8-9,24-25", "10-11,26-27",
                                        "12-13,28-29", "14-15,30-31"));
  EXPECT_EQ(eight->threads, 4);
  EXPECT_THAT(texts(place_workers(server, Binding::kSocket, 2, 16)), ElementsAre("0-7,16-23", "8-15,24-31"));
  EXPECT_THAT(texts(place_workers(server, Binding::kCore, 2, 8)),
              ElementsAre(HasSubstr("each worker those of one memory node")));
}

// Two cores that run two threads each, four that run one: a core counts as what the smallest can run.
TEST(PlaceWorkers, CountsOnTheSmallestCores) {
  const Topology laptop = recorded_machine("big_little");
  EXPECT_EQ(to_string(laptop.cpus()), "0-4,6,8,10");
  EXPECT_THAT(texts(place_workers(laptop, Binding::kCore, 3, 2)), ElementsAre("0-3", "4,6", "8,10"));
  EXPECT_THAT(texts(place_workers(laptop, Binding::kCore, 4, 2)), ElementsAre(HasSubstr("need 8 cores")));
  EXPECT_EQ(threads_of(laptop, Binding::kCore, 3), 2);
  EXPECT_THAT(place_workers(laptop, Binding::kAuto, 3, 2)->workers, IsEmpty());
}

}  // namespace
}  // namespace mprun
