// Calls that wait without sleeping: which they are, and how threads in them are judged.
#include "watch/stalls/spins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "watch/judge/spinning_calls.h"

namespace mprun {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::string kMpi = "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4";

std::vector<Mapping> maps_of(const std::string& path) {
  Mapping mapping;
  mapping.path = path;
  return {mapping};
}

TEST(Spins, AreCallsOfMpi) {
  const std::vector<std::string> inner{"epoll_wait (libc.so.6)", "opal_progress (libopen-pal.so.40)"};
  const auto call = [&](const std::string& function) {
    std::vector<std::string> frames = inner;
    frames.insert(frames.end(), {"mca_pml_ob1_recv (mca_pml_ob1.so)", function, "main (program)"});
    return call_that_spins(frames);
  };
  EXPECT_EQ(call("PMPI_Recv (libmpi.so.40)"), "MPI_Recv");
  EXPECT_EQ(call("MPI_Barrier (libmpi.so.40)"), "MPI_Barrier");
  EXPECT_EQ(call("ompi_mpi_finalize (libmpi.so.40)"), "MPI_Finalize");
  EXPECT_EQ(call("ompi_mpi_finalize (libopen_mpi.so.40)"), "MPI_Finalize") << "Open MPI 6";
  EXPECT_EQ(call("PMPI_Init_thread (libmpi.so.40)"), "MPI_Init_thread");
  for (const char* looks : {"PMPI_Test", "MPI_Testall", "PMPI_Iprobe", "MPI_Improbe", "MPI_Irecv", "PMPI_Ibarrier",
                            "MPI_Wtime", "MPI_Reduce_local", "MPI_Initialized", "MPI_Send_init"}) {
    EXPECT_EQ(call(looks + std::string(" (libmpi.so.40)")), "") << looks;
  }
  EXPECT_EQ(call("MPI_Recv (libother.so)"), "");
  EXPECT_EQ(call_that_spins(inner), "") << "what the program called is not known";
  EXPECT_EQ(call_that_spins({}), "");
}

// A callback of the program that a collective calls is on its way back to it.
TEST(Spins, AreOfTheOutermostCall) {
  EXPECT_EQ(call_that_spins({"MPI_Recv (libmpi.so.40)", "reduce (program)", "MPI_Testall (libmpi.so.40)"}), "");
}

TEST(Spins, AreOfProcessesWithTheLibrary) {
  EXPECT_TRUE(may_spin(maps_of(kMpi)));
  EXPECT_FALSE(may_spin(maps_of("/usr/lib/x86_64-linux-gnu/libm.so.6")));
  EXPECT_FALSE(is_mpi_launcher(maps_of(kMpi)));
  EXPECT_TRUE(is_mpi_launcher(maps_of("/usr/lib/x86_64-linux-gnu/libopen-rte.so.40")));
}

/// Two ranks, 11 and 12, which each run in a call and share memory; looked at once a second.
struct SpinningRanks {
  FakeProc proc;
  std::map<pid_t, std::string> calls{{11, "MPI_Recv"}, {12, "MPI_Recv"}};
  int unreadable = 0;  ///< how many stacks can not be read, before one can
  SpinMeter meter{&proc, [this, failed = 0](const ThreadSample& thread) mutable -> std::optional<std::string> {
                    if (failed++ < unreadable) return std::nullopt;
                    failed = 0;
                    return calls.at(thread.tid);
                  }};
  Nanos now = 100 * kNanosPerSecond;
  bool have_cpus = true;

  SpinningRanks() {
    for (const pid_t pid : {11, 12}) {
      proc.process(pid).map("r-xp", 8, kMpi).map("rw-s", 900, "/dev/shm/rank").thread(pid).running = true;
      proc.processes[pid].put_text(FakeProc::kMapped, "nothing");
    }
  }

  /// The time of the first look since which nothing has changed, from the start of the test; -1: unknown.
  int since_after(int looks) {
    for (int i = 0; i < looks; ++i, now += kNanosPerSecond) {
      for (const pid_t pid : {11, 12}) proc.processes[pid].threads[pid].cpu += have_cpus ? kNanosPerSecond / 100 : 0;
      meter.take(take_sample(&proc, process_tree(&proc, 1, false)), now);
    }
    return meter.since() == 0 ? -1 : static_cast<int>(meter.since() / kNanosPerSecond) - 100;
  }
};

TEST(SpinMeter, TakesThreeLooks) {
  SpinningRanks ranks;
  EXPECT_EQ(ranks.since_after(2), -1);
  EXPECT_EQ(ranks.since_after(1), 0);
  EXPECT_EQ(ranks.since_after(5), 0);
  EXPECT_THAT(ranks.meter.spins(), ElementsAre(Pair(11, "MPI_Recv"), Pair(12, "MPI_Recv")));
}

TEST(SpinMeter, CountsNoLookAtAThreadThatHadNoCpu) {
  SpinningRanks ranks;
  ranks.have_cpus = false;
  EXPECT_EQ(ranks.since_after(5), -1) << "a message may be there: they have not looked";
  ranks.have_cpus = true;
  EXPECT_EQ(ranks.since_after(1), -1);
  EXPECT_EQ(ranks.since_after(1), 0);
}

// MPI_Finalize() of Open MPI sleeps between its looks.
TEST(SpinMeter, KnowsACallThatSleepsForMoments) {
  SpinningRanks ranks;
  ranks.calls[12] = "MPI_Finalize";
  ranks.proc.processes[12].threads[12].running = false;
  ranks.proc.processes[12].threads[12].sleeps();
  EXPECT_EQ(ranks.since_after(4), 0);
  EXPECT_THAT(ranks.meter.spins(), ElementsAre(Pair(11, "MPI_Recv"), Pair(12, "MPI_Finalize")));
}

TEST(SpinMeter, SaysNothingOfWhoSleepsElsewhere) {
  SpinningRanks ranks;
  ranks.calls[12] = "";
  ranks.proc.processes[12].threads[12].running = false;
  ranks.proc.processes[12].threads[12].sleeps();
  EXPECT_EQ(ranks.since_after(4), 0);
  EXPECT_THAT(ranks.meter.spins(), ElementsAre(Pair(11, "MPI_Recv")));
}

TEST(SpinMeter, BeginsAnewWhereOneMoves) {
  SpinningRanks ranks;
  EXPECT_EQ(ranks.since_after(4), 0);
  ranks.calls[12] = "MPI_Send";
  EXPECT_EQ(ranks.since_after(2), -1);
  EXPECT_EQ(ranks.since_after(1), 4);
  ranks.proc.processes[11].io = "rchar: 6\n";
  EXPECT_EQ(ranks.since_after(2), -1) << "it has read something";
  EXPECT_EQ(ranks.since_after(1), 7);
  ranks.proc.processes[12].put(FakeProc::kMapped, 'x');
  EXPECT_EQ(ranks.since_after(2), -1) << "it has written to shared memory";
  EXPECT_EQ(ranks.since_after(1), 10);
}

TEST(SpinMeter, IsSilentWhereOneComputes) {
  SpinningRanks ranks;
  EXPECT_EQ(ranks.since_after(4), 0);
  ranks.calls[11] = "";
  EXPECT_EQ(ranks.since_after(1), -1);
  EXPECT_THAT(ranks.meter.spins(), IsEmpty());
  ranks.calls[11] = "MPI_Recv";
  EXPECT_EQ(ranks.since_after(2), -1);
  EXPECT_EQ(ranks.since_after(1), 5);
}

TEST(SpinMeter, ReadsAStackAgainThatItCouldNotRead) {
  SpinningRanks ranks;
  ranks.unreadable = 4;
  EXPECT_EQ(ranks.since_after(4), 0);
  ranks.unreadable = 5;
  EXPECT_EQ(ranks.since_after(1), -1) << "it may compute";
}

TEST(SpinMeter, IsSilentWhereMessagesCannotBeSeen) {
  SpinningRanks no_counts;
  no_counts.proc.processes[12].io = std::nullopt;
  EXPECT_EQ(no_counts.since_after(4), -1);
  SpinningRanks device;
  device.proc.processes[12].map("rw-s", 7, "/dev/infiniband/uverbs0");
  EXPECT_EQ(device.since_after(4), -1);
  SpinningRanks other_library;
  other_library.proc.processes[12].maps = "";
  EXPECT_EQ(other_library.since_after(4), -1);
}

/// mpirun, 10, and its ranks, 11 and 12, with a helper thread of the library, 13, in the first.
struct Ranks {
  FakeProc proc;
  TreeBoundary boundary;

  Ranks() {
    proc.process(10).map("r-xp", 9, "/usr/lib/libopen-rte.so.40").thread(10).call(SYS_poll, {0, 0, 1000});
    for (const pid_t pid : {11, 12}) {
      proc.process(pid, 10).map("r-xp", 8, kMpi).thread(pid).running = true;
      boundary.assumptions.spins[pid] = "MPI_Recv";
    }
    proc.processes[11].thread(13).call(SYS_poll, {0, 0, 1000});
  }

  Judgement judged(std::vector<std::string>* assumed = nullptr) {
    const Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
    TreeSnapshot snapshot(&proc, &sample, boundary);
    Judgement found = judge(sample, &snapshot);
    if (assumed != nullptr) *assumed = snapshot.assumed();
    for (JudgedThread& thread : found.threads) thread.sample = nullptr;
    return found;
  }
};

TEST(Spins, WaitForOtherRanks) {
  Ranks ranks;
  std::vector<std::string> assumed;
  EXPECT_TRUE(ranks.judged(&assumed).is_deadlock());
  EXPECT_THAT(assumed, Contains(HasSubstr("thread 12 of process 12 runs in MPI_Recv")));
  ranks.boundary.assumptions.spins.clear();
  EXPECT_FALSE(ranks.judged(&assumed).is_deadlock());
  EXPECT_THAT(assumed, IsEmpty());
}

TEST(Spins, MayBeHelpedByARankThatIsElsewhere) {
  Ranks computing;
  computing.boundary.assumptions.spins.erase(12);
  EXPECT_FALSE(computing.judged().is_deadlock());
  Ranks sleeping;
  sleeping.boundary.assumptions.spins.erase(12);
  sleeping.proc.processes[12].threads[12].sleeps();
  EXPECT_FALSE(sleeping.judged().is_deadlock());
  Ranks beside;
  beside.proc.process(14, 10).thread(14).sleeps();
  EXPECT_FALSE(beside.judged().is_deadlock()) << "no rank, but it may do anything";
}

}  // namespace
}  // namespace mprun
