// Pools whose result thread has ended, or whose task is lost, in real programs, and stacks that change while they are
// read.
#include "watch/stalls/lost_result.h"

#include <gtest/gtest.h>

#include "python_program.h"
#include "watch/stalls/suspects.h"

namespace mprun {
namespace {

/// Looks at a program once a second, by its own clock.
class Looks {
 public:
  explicit Looks(const char* mode) : program_(mode) { (void)program_.report(); }

  /// The number of looks until it is named; 0: not within as many. `pause`: for main, which may still be on its way.
  int until_named(int most, std::chrono::milliseconds pause = {}) {
    for (int i = 1; i <= most; ++i) {
      now_ += kNanosPerSecond;
      if (look() != 0) return i;
      std::this_thread::sleep_for(pause);
    }
    return 0;
  }
  pid_t look() { return watch_.look({program_.pid()}, now_); }
  void forget() { (void)watch_.look({}, now_); }

 private:
  PythonProgram program_;
  std::unique_ptr<ProcSource> proc_ = live_proc();
  Suspects watch_{[this](pid_t pid) { return has_lost_helper(stack_reader(proc_.get()), pid); }};
  Nanos now_ = 0;
};

TEST(LostHelper, NamesAPoolWithoutItsThreadForResults) {
  Looks looks("pool_without_results");
  EXPECT_GE(looks.until_named(6000, std::chrono::milliseconds(5)), 3);
  EXPECT_EQ(looks.until_named(5), 0) << "it was named already";
  looks.forget();
  EXPECT_EQ(looks.until_named(5), 3);
}

TEST(LostHelper, CountsOneLookASecond) {
  Looks looks("pool_without_results");
  EXPECT_GE(looks.until_named(6000, std::chrono::milliseconds(5)), 3);
  looks.forget();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(looks.look(), 0);
  EXPECT_EQ(looks.until_named(5), 2);
}

TEST(LostHelper, NamesNoPoolThatWaitsForATask) {
  Looks looks("pool_with_results");
  EXPECT_EQ(looks.until_named(50, std::chrono::milliseconds(5)), 0);
}

constexpr pid_t kPool = 10, kKeeper = kPool + 1, kReceiver = kPool + 2;

PythonThread in_pool(pid_t tid, const char* function) {
  PythonThread thread;
  thread.tid = tid;
  thread.whole = true;
  thread.frames = {{"/usr/lib/python3.11/multiprocessing/pool.py", 1, function}};
  return thread;
}

PythonStacks without_results() {
  PythonStacks stacks;
  stacks.threads = {in_pool(kPool, "ApplyResult.get"), in_pool(kPool + 1, "Pool._handle_workers")};
  return stacks;
}

PythonStacks torn() {
  PythonStacks stacks = without_results();
  stacks.threads.back().whole = false;
  return stacks;
}

/// A watch that reads `first` so often, then `rest`; looks three times, a second apart.
bool is_named(int times, const PythonStacks& first, const PythonStacks& rest) {
  int readings = 0;
  const ReadStacks read = [&](pid_t) { return readings++ % (times + 1) < times ? first : rest; };
  Suspects watch([&](pid_t pid) { return has_lost_helper(read, pid); });
  pid_t named = 0;
  for (int i = 1; i <= 3; ++i) named = watch.look({kPool}, i * kNanosPerSecond);
  return named == kPool;
}

TEST(LostHelper, ReadsTornStacksAgain) {
  EXPECT_TRUE(is_named(0, torn(), without_results()));
  EXPECT_TRUE(is_named(1, torn(), without_results()));
  EXPECT_TRUE(is_named(19, torn(), without_results()));
  EXPECT_FALSE(is_named(20, torn(), without_results())) << "it may go on for ever";
}

TEST(LostHelper, CountsNoPoolThatIsReadWholeInTheEnd) {
  PythonStacks with_results = without_results();
  with_results.threads.push_back(in_pool(kPool + 2, "Pool._handle_results"));
  EXPECT_FALSE(is_named(1, torn(), with_results));
  PythonStacks in_callback = with_results;
  in_callback.threads.back().frames.insert(in_callback.threads.back().frames.begin(),
                                           in_pool(0, "ApplyResult.wait").frames.front());
  EXPECT_TRUE(is_named(1, torn(), in_callback)) << "its thread for results waits for one";
  in_callback.threads.push_back(in_pool(kPool + 3, "Pool._handle_results"));
  EXPECT_FALSE(is_named(1, torn(), in_callback)) << "perhaps for one of another pool";
  PythonStacks of_user = torn();
  of_user.threads.front().frames.front().file = "/home/user/program.py";
  EXPECT_FALSE(is_named(1, torn(), of_user)) << "main no longer waits for it";
}

/// A pool whose main thread waits for it, with one worker; `stacks` are those of both, by process.
class PoolAtRest {
 public:
  static constexpr pid_t kWorker = kPool + 10;

  PoolAtRest() {
    stacks[kPool].threads = {in_pool(kPool, "ApplyResult.get"), in_pool(kPool + 1, "Pool._handle_workers"),
                             in_pool(kPool + 2, "Pool._handle_tasks"), in_pool(kPool + 3, "Pool._handle_results")};
    stacks[kWorker].threads = {in_pool(kWorker, "worker")};
    add_inside(&stacks[kPool].threads[0], "/usr/lib/python3.11/threading.py", "Condition.wait");
    add_inside(&stacks[kPool].threads[3], "/usr/lib/python3.11/multiprocessing/connection.py", "Connection._recv");
    add_inside(&stacks[kWorker].threads[0], "/usr/lib/python3.11/multiprocessing/queues.py", "SimpleQueue.get");
  }
  static void add_inside(PythonThread* thread, const char* file, const char* function) {
    thread->frames.insert(thread->frames.begin(), {file, 1, function});
  }
  [[nodiscard]] bool has_lost_task() {
    return mprun::has_lost_task([this](pid_t pid) { return stacks[pid]; }, kPool, {kWorker, kOther},
                                [this](pid_t tid) { return tid == running; });
  }
  static constexpr pid_t kOther = kWorker + 1;  ///< a process without Python, unless a test says otherwise

  std::map<pid_t, PythonStacks> stacks;
  pid_t running = 0;  ///< a thread that waits for a CPU
};

TEST(LostTask, IsNoneWhileAThreadOfThePoolWaitsForACpu) {
  for (const pid_t running : {kPool, kPool + 2, kPool + 3, PoolAtRest::kWorker}) {
    PoolAtRest pool;
    pool.running = running;
    EXPECT_FALSE(pool.has_lost_task()) << running;
  }
  PoolAtRest pool;
  pool.running = kPool + 1;
  EXPECT_TRUE(pool.has_lost_task()) << "the thread that replaces workers wakes up again and again";
}

TEST(LostTask, IsNoneWhileAResultIsDelivered) {
  PoolAtRest pool;
  PoolAtRest::add_inside(&pool.stacks[kPool].threads[3], "/usr/lib/python3.11/multiprocessing/pool.py",
                         "IMapIterator._set");
  EXPECT_FALSE(pool.has_lost_task());
}

TEST(LostTask, IsNoneOnceTheMainThreadIsWoken) {
  PoolAtRest pool;
  PoolAtRest::add_inside(&pool.stacks[kPool].threads[0], "/usr/lib/python3.11/threading.py",
                         "Condition._acquire_restore");
  EXPECT_FALSE(pool.has_lost_task());
}

TEST(LostTask, IsOneOfAPoolThatHasNothingToDo) { EXPECT_TRUE(PoolAtRest().has_lost_task()); }

TEST(LostTask, IsNoneWhileAnyPartOfThePoolRunsOtherCode) {
  for (const auto& [pid, thread] : {std::pair(kPool, 0), {kPool, 3}, {PoolAtRest::kWorker, 0}}) {
    PoolAtRest pool;
    PoolAtRest::add_inside(&pool.stacks[pid].threads[static_cast<std::size_t>(thread)], "/home/user/program.py",
                           "work");
    EXPECT_FALSE(pool.has_lost_task()) << pid << ", thread " << thread;
  }
}

TEST(LostTask, IsNoneWhileInputsAreMade) {
  PoolAtRest pool;
  PoolAtRest::add_inside(&pool.stacks[kPool].threads[2], "/usr/lib/python3.11/queue.py", "Queue.get");
  EXPECT_FALSE(pool.has_lost_task());
}

TEST(LostTask, IsNoneWhileAThreadOfThePoolWorks) {
  PoolAtRest pool;
  pool.stacks[kPool].threads.push_back(in_pool(kPool + 4, "worker"));
  PoolAtRest::add_inside(&pool.stacks[kPool].threads.back(), "/home/user/program.py", "work");
  EXPECT_FALSE(pool.has_lost_task()) << "a ThreadPool";
}

TEST(LostTask, IsNoneWithoutAWorkerOrWhereOneCannotBeRead) {
  PoolAtRest pool;
  pool.stacks[PoolAtRest::kOther].threads = {in_pool(PoolAtRest::kOther, "worker")};
  EXPECT_TRUE(pool.has_lost_task());
  pool.stacks[PoolAtRest::kOther].threads.front().whole = false;
  EXPECT_FALSE(pool.has_lost_task());
  pool.stacks[PoolAtRest::kOther] = pool.stacks[PoolAtRest::kWorker] = {};
  EXPECT_FALSE(pool.has_lost_task());
}

TEST(LostTask, IsNoneUnlessTheMainThreadWaitsForThePool) {
  PoolAtRest pool;
  pool.stacks[kPool].threads[0].frames.pop_back();
  EXPECT_FALSE(pool.has_lost_task());
}

std::set<pid_t> keepers(const PythonStacks& stacks) {
  return keepers_beside_callback([&stacks](pid_t) { return stacks; }, kPool);
}

TEST(KeepersBesideCallback, AreThoseOfAPoolWhoseThreadForResultsIsInACallback) {
  PythonStacks stacks = without_results();
  stacks.threads.push_back(in_pool(kReceiver, "Pool._handle_results"));
  EXPECT_TRUE(keepers(stacks).empty()) << "it waits for a result";
  PoolAtRest::add_inside(&stacks.threads.back(), "/usr/lib/python3.11/multiprocessing/pool.py", "ApplyResult._set");
  PoolAtRest::add_inside(&stacks.threads.back(), "/home/user/program.py", "callback");
  EXPECT_EQ(keepers(stacks), std::set<pid_t>({kKeeper}));
  stacks.threads.back().whole = false;
  EXPECT_TRUE(keepers(stacks).empty());
}

TEST(KeepersBesideCallback, AreNoneUnlessTheMainThreadWaitsForThePool) {
  PythonStacks stacks = without_results();
  stacks.threads.push_back(in_pool(kReceiver, "Pool._handle_results"));
  PoolAtRest::add_inside(&stacks.threads.back(), "/home/user/program.py", "callback");
  EXPECT_FALSE(keepers(stacks).empty());
  stacks.threads.front().frames.front().file = "/home/user/program.py";
  EXPECT_TRUE(keepers(stacks).empty());
}

}  // namespace
}  // namespace mprun
