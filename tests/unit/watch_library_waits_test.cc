// Which polls and helper threads of libraries are recognised by their Python stacks.
#include "watch/judge/library_waits.h"

#include <gtest/gtest.h>

#include "watch/sample/syscall_numbers.h"

namespace mprun {
namespace {

constexpr const char* kLoader = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py";
constexpr const char* kTryGetData = "_MultiProcessingDataLoaderIter._try_get_data";
constexpr const char* kLoaderWorker = "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py";

const PythonFrame kSelecting{"/usr/lib/python3.11/selectors.py", 415, "_PollLikeSelector.select"};
const PythonFrame kGetting{"/usr/lib/python3.11/multiprocessing/queues.py", 113, "Queue.get"};

TEST(LibraryWaits, KnowsWaitsThatLookAroundNowAndThen) {
  const LibraryPoll* loader =
      find_library_poll({kSelecting, kGetting, {kLoader, 1120, kTryGetData}, {"train.py", 3, "main"}});
  ASSERT_NE(loader, nullptr);
  EXPECT_TRUE(loader->ends_with_child);
  EXPECT_FALSE(loader->ends_with_parent);
  const LibraryPoll* worker = find_library_poll({kSelecting, kGetting, {kLoaderWorker, 270, "_worker_loop"}});
  ASSERT_NE(worker, nullptr);
  EXPECT_TRUE(worker->ends_with_parent);
  EXPECT_TRUE(loader->has_limit_of_caller);
  EXPECT_FALSE(worker->has_limit_of_caller);
}

TEST(LibraryWaits, KnowsLoopsWithoutATimerByTheTimeForWhichTheyWait) {
  const std::string packages = "/usr/lib/python3/dist-packages/";
  const PythonFrame trio{packages + "trio/_core/_io_epoll.py", 229, "EpollIOManager.get_events"};
  ASSERT_NE(find_library_poll({trio}), nullptr);
  EXPECT_EQ(find_library_poll({trio})->longest, 86400);
  for (const auto& [file, function] : {std::pair{"poll.py", "Hub.wait"}, std::pair{"epolls.py", "Hub.do_poll"}}) {
    const PythonFrame eventlet{packages + "eventlet/hubs/" + file, 77, function};
    ASSERT_NE(find_library_poll({eventlet}), nullptr) << file;
    EXPECT_EQ(find_library_poll({eventlet})->longest, 60);
  }
}

// A worker's task may wait with limits of its own.
TEST(LibraryWaits, LeavesAloneWhatTheLibraryHasCalled) {
  EXPECT_EQ(find_library_poll(
                {kSelecting, kGetting, {"train.py", 9, "Numbers.__getitem__"}, {kLoaderWorker, 302, "_worker_loop"}}),
            nullptr);
  EXPECT_EQ(
      find_library_poll({kSelecting, kGetting, {kLoaderWorker, 302, "fetch"}, {kLoaderWorker, 302, "_worker_loop"}}),
      nullptr);
}

TEST(LibraryWaits, KnowsWhoMayConnectToAListener) {
  const PythonFrame accepts{"/usr/lib/python3.11/multiprocessing/managers.py", 185, "Server.accepter"};
  const PythonFrame started{"/usr/lib/python3.11/multiprocessing/managers.py", 599, "BaseManager._run_server"};
  const PythonFrame passes_on{"/usr/lib/python3.11/multiprocessing/resource_sharer.py", 138, "_ResourceSharer._serve"};
  const PythonFrame forkserver{"/usr/lib/python3.11/multiprocessing/forkserver.py", 236, "main"};
  const auto clients = [](const std::vector<PythonFrame>& frames, std::size_t threads = 2) {
    std::vector<PythonThread> all(threads);
    all.back().frames = frames;
    return clients_of_listener(all);
  };
  EXPECT_EQ(clients({started}), Clients::kTree);
  const PythonFrame starts{"/usr/lib/python3.11/multiprocessing/managers.py", 562, "BaseManager.start"};
  const PythonFrame makes{"/usr/lib/python3.11/multiprocessing/context.py", 57, "BaseContext.Manager"};
  EXPECT_EQ(clients({started, starts, makes}), Clients::kTree);
  EXPECT_EQ(clients({started, starts}), Clients::kAnybody) << "a manager of its own, with its own key";
  EXPECT_EQ(clients({kSelecting, passes_on}), Clients::kRelatives);
  EXPECT_EQ(clients({accepts, {"server.py", 9, "main"}}), Clients::kAnybody) << "get_server(), for others";
  EXPECT_EQ(clients({}), Clients::kAnybody);
  EXPECT_EQ(clients({kSelecting, forkserver}, 1), Clients::kYounger);
  EXPECT_EQ(clients({accepts, started, forkserver}, 1), Clients::kTree) << "a child of a forkserver";
  EXPECT_EQ(clients({kSelecting, forkserver}, 2), Clients::kTree) << "a preloaded module has started a thread";
}

class Messages : public ::testing::Test {
 protected:
  static constexpr pid_t kMain = 10, kReceiver = 11;
  const PythonFrame wait_{"/usr/lib/python3.11/threading.py", 320, "Condition.wait"};
  const PythonFrame serve_{"/site/execnet/gateway_base.py", 1060, "WorkerGateway.serve"};
  const std::vector<PythonFrame> receives_{{"/site/execnet/gateway_base.py", 420, "Popen2IO.read"},
                                           {"/site/execnet/gateway_base.py", 967, "BaseGateway._thread_receiver"}};

  static PythonThread thread(pid_t tid, std::vector<PythonFrame> frames) {
    PythonThread made;
    made.tid = tid;
    made.frames = std::move(frames);
    return made;
  }
};

TEST_F(Messages, ComeForNobodyWhileATestWaits) {
  const PythonThread test = thread(kMain, {wait_, {"test_it.py", 3, "test_it"}, serve_});
  const PythonThread receiver = thread(kReceiver, receives_);
  EXPECT_TRUE(receives_for_nobody(kReceiver, {test, receiver}));
  EXPECT_TRUE(receives_for_nobody(kReceiver, {test, receiver, thread(12, {}), thread(13, {wait_})}));
  EXPECT_FALSE(receives_for_nobody(kMain, {test, receiver}));
  EXPECT_FALSE(receives_for_nobody(kReceiver, {test}));
  EXPECT_FALSE(receives_for_nobody(kReceiver, {test, receiver, thread(12, receives_)})) << "a connection of the test";
  EXPECT_FALSE(receives_for_nobody(kReceiver, {thread(kMain, {wait_, {"t.py", 3, "f"}}), receiver})) << "no worker";
}

TEST_F(Messages, AreForWhoWaitsForThem) {
  const PythonFrame get{"/usr/lib/python3.11/queue.py", 171, "Queue.get"};
  for (const PythonFrame& caller : {PythonFrame{"/site/execnet/gateway_base.py", 742, "Channel.receive"},
                                    PythonFrame{"/site/xdist/remote.py", 60, "TestQueue.get"}}) {
    const PythonThread idle = thread(kMain, {wait_, get, caller, serve_});
    EXPECT_FALSE(receives_for_nobody(kReceiver, {idle, thread(kReceiver, receives_)})) << caller.file;
  }
}

TEST(LibraryWaits, KnowsNoOthers) {
  EXPECT_EQ(find_library_poll({}), nullptr);
  EXPECT_EQ(find_library_poll({kSelecting, kGetting}), nullptr);
  EXPECT_EQ(find_library_poll({kSelecting, kGetting, {"/home/me/dataloader.py", 1, kTryGetData}}), nullptr);
}

TEST(LibraryWaits, KnowsHelpers) {
  EXPECT_TRUE(is_library_helper({kSelecting, {"/usr/lib/python3.11/multiprocessing/queues.py", 1, "Queue._feed"}}));
  EXPECT_FALSE(is_library_helper({kSelecting, kGetting}));
  EXPECT_FALSE(is_library_helper({}));
}

constexpr const char* kDistributed = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py";

TEST(LibraryWaits, KnowsLoopsThatLookBetweenSleeps) {
  EXPECT_STREQ(looks_between_sleeps({{kDistributed, 5, "_store_based_barrier"}, {"train.py", 3, "main"}}),
               "whether all ranks have come");
  EXPECT_STREQ(looks_between_sleeps({{kDistributed, 669, "_create_gloo_process_group"}, {"train.py", 3, "main"}}),
               "whether all ranks have come");
  EXPECT_STREQ(looks_between_sleeps({{"/home/me/.venv/lib/filelock/_api.py", 5, "BaseFileLock.acquire"}}),
               "whether a file's lock is free");
  EXPECT_STREQ(looks_between_sleeps({{"/torch/distributed/elastic/rendezvous/utils.py", 161, "_delay"}}),
               "whether other nodes have come");
  EXPECT_STREQ(looks_between_sleeps({{"/site-packages/joblib/parallel.py", 5, "Parallel._retrieve"}}),
               "whether a result has come");
}

TEST(LibraryWaits, KnowsWhoAsksWhetherAllHaveCome) {
  const auto thread = [](const char* function) {
    PythonThread made;
    made.frames = {{kDistributed, 9, function}, {kDistributed, 5, "new_group"}, {"train.py", 1, "f"}};
    return made;
  };
  EXPECT_TRUE(asks_whether_all_have_come({thread("barrier"), thread("_store_based_barrier")}));
  EXPECT_FALSE(asks_whether_all_have_come({thread("barrier")}));
}

// A user's own sleep, or one in what such a loop calls, may end with anything.
TEST(LibraryWaits, KnowsNoOtherSleeps) {
  EXPECT_EQ(looks_between_sleeps({}), nullptr);
  EXPECT_EQ(looks_between_sleeps({{kDistributed, 5, "all_reduce"}}), nullptr);
  EXPECT_EQ(looks_between_sleeps({{"/home/me/api.py", 5, "BaseFileLock.acquire"}}), nullptr);
  EXPECT_EQ(looks_between_sleeps({{"train.py", 3, "main"}, {kDistributed, 5, "_store_based_barrier"}}), nullptr);
}

// gevent's hub without a timer.
TEST(LibraryWaits, KnowsTheLongestBlockOfLibev) {
  const auto is_idle = [](std::int64_t number, std::array<std::uint64_t, 6> arguments) {
    ThreadSample thread;
    thread.call.number = number;
    thread.call.arguments = arguments;
    return is_idle_libev(thread);
  };
  EXPECT_TRUE(is_idle(SYS_epoll_wait, {3, 0x1000, 64, 59743}));
  EXPECT_TRUE(is_idle(SYS_epoll_pwait, {3, 0x1000, 64, 59743}));
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{59742}, std::uint64_t{59744}, ~std::uint64_t{0}}) {
    EXPECT_FALSE(is_idle(SYS_epoll_wait, {3, 0x1000, 64, limit})) << limit;
  }
  EXPECT_FALSE(is_idle(SYS_poll, {0x1000, 1, 59743}));
  EXPECT_FALSE(is_idle(SYS_ppoll, {0x1000, 1, 0x4000, 59743}));
  EXPECT_FALSE(is_idle(SYS_epoll_pwait2, {3, 0x1000, 64, 59743})) << "an address";
}

TEST(LibraryWaits, ShowsWhatARankDoes) {
  const auto thread = [](std::vector<PythonFrame> frames) {
    PythonThread made;
    made.frames = std::move(frames);
    return made;
  };
  const PythonThread meets = thread(
      {{kDistributed, 9, "_store_based_barrier"}, {kDistributed, 5, "init_process_group"}, {"train.py", 1, "f"}});
  const PythonThread met = thread({{kDistributed, 9, "all_reduce"}, {"train.py", 1, "f"}});
  const PythonThread other = thread({{"/home/me/distributed_c10d.py", 5, "init_process_group"}, {"train.py", 1, "f"}});
  EXPECT_EQ(rank_phase({}), RankPhase::kNone);
  EXPECT_EQ(rank_phase({other}), RankPhase::kNone);
  EXPECT_EQ(rank_phase({other, met}), RankPhase::kMet);
  EXPECT_EQ(rank_phase({other, met, meets}), RankPhase::kMeets);
  EXPECT_EQ(rank_phase({meets, met}), RankPhase::kMeets);
  const PythonThread node = thread(
      {{"/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", 55, "StaticTCPRendezvous.next_rendezvous"}});
  EXPECT_EQ(rank_phase({node}), RankPhase::kMeets);
}

TEST(LibraryWaits, KnowsWaitsForWorkOfRanks) {
  EXPECT_TRUE(is_wait_for_work_of_ranks("c10d::ProcessGroupGloo::RecvWork::wait(std::chrono::duration<...>)"));
  EXPECT_TRUE(is_wait_for_work_of_ranks("c10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >)"));
  EXPECT_FALSE(is_wait_for_work_of_ranks("c10d::ProcessGroupGloo::runLoop(int) (libtorch_cpu.so)"));
  EXPECT_FALSE(is_wait_for_work_of_ranks("my::Work::wait() (program)"));
}

}  // namespace
}  // namespace mprun
