// DeadlineWatch: which deadlines of the board it believes, on lines that this test writes like a program.
#include "watch/deadline_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

namespace mprun {
namespace {

constexpr Nanos kOneSecond = kNanosPerSecond;

class DeadlineWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto watch = DeadlineWatch::create(proc_.get());
    ASSERT_TRUE(watch);
    watch_.emplace(std::move(*watch));
    // As a program finds it.
    const Fd fd(open(watch_->path().c_str(), O_RDWR | O_CLOEXEC));
    void* memory = mmap(nullptr, sizeof *board_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    board_ = static_cast<mprun_deadline_board*>(memory);
  }
  void TearDown() override { munmap(board_, sizeof *board_); }

  void write(unsigned number, pid_t pid, Nanos due, Nanos limit, const char* label) {
    mprun_deadline_line& line = board_->lines[number];
    line.pid = line.tid = pid;
    line.limit = limit;
    std::string padded(label);
    padded.resize(sizeof line.label);
    padded.copy(static_cast<char*>(line.label), padded.size());
    line.due = due;
    board_->used = std::max(board_->used, number + 1);
  }

  std::unique_ptr<ProcSource> proc_ = live_proc();
  std::optional<DeadlineWatch> watch_;
  mprun_deadline_board* board_ = nullptr;
};

TEST_F(DeadlineWatchTest, ReportsWhatHasPassedOnce) {
  const Nanos now = monotonic_now();
  write(3, getpid(), now + kOneSecond, kOneSecond, "load");
  EXPECT_FALSE(watch_->look(now));
  const auto passed = watch_->look(now + kOneSecond);
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->pid, getpid());
  EXPECT_EQ(passed->tid, getpid());
  EXPECT_EQ(passed->limit, kOneSecond);
  EXPECT_EQ(passed->label, "load");
  EXPECT_FALSE(watch_->look(now + kOneSecond + 1));
  write(3, getpid(), now + kOneSecond + 2, kOneSecond, "save");  // the next one in that line
  EXPECT_TRUE(watch_->look(now + kOneSecond + 3));
}

TEST_F(DeadlineWatchTest, OneAfterTheOther) {
  const Nanos now = monotonic_now();
  write(0, getpid(), now, 1, "a");
  write(1, getpid(), now, 1, "b");
  const auto first = watch_->look(now), second = watch_->look(now);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->label + second->label, "ab");
}

// A thread started after the deadline began only has the reused number of the deadline's thread.
TEST_F(DeadlineWatchTest, PassesOverTheLineOfAnEarlierThread) {
  const Nanos now = monotonic_now();
  write(0, getpid(), now, 24L * 3600 * 1000 * kOneSecond, "of a thread that had our number");
  EXPECT_FALSE(watch_->look(now));
}

TEST_F(DeadlineWatchTest, PassesOverAProgramThatHasNotTheBoard) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(127);
  }
  const auto runs_sleep = [child] {
    const auto proc = live_proc();
    return proc->read(std::to_string(child) + "/comm").value_or("") == "sleep\n";
  };
  while (!runs_sleep() && waitpid(child, nullptr, WNOHANG) == 0) usleep(1000);
  const Nanos now = monotonic_now();
  write(0, child, now, 1, "left over by exec");
  EXPECT_FALSE(watch_->look(now));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(DeadlineWatchTest, PassesOverAProcessThatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  const Nanos now = monotonic_now();
  write(0, child, now, 1, "of a zombie");
  EXPECT_FALSE(watch_->look(now));
  waitpid(child, nullptr, 0);
  write(0, child, now + 1, 1, "of no thread");
  EXPECT_FALSE(watch_->look(now + 1));
}

// When mprun was stopped (Ctrl-Z), so was the program: that time does not count.
TEST_F(DeadlineWatchTest, DoesNotCountTheTimeInWhichItWasStopped) {
  const Nanos now = monotonic_now();
  EXPECT_FALSE(watch_->look(now));
  write(0, getpid(), now + 5 * kOneSecond, 5 * kOneSecond, "work");
  EXPECT_FALSE(watch_->look(now + 2 * kOneSecond - 1));
  EXPECT_FALSE(watch_->look(now + 62 * kOneSecond));
  for (int i = 1; i <= 3; ++i) EXPECT_FALSE(watch_->look(now + (62 + i) * kOneSecond)) << i;
  EXPECT_TRUE(watch_->look(now + 66 * kOneSecond));
  write(1, getpid(), now + 68 * kOneSecond, kOneSecond, "begun later");
  EXPECT_FALSE(watch_->look(now + 67 * kOneSecond));
  EXPECT_TRUE(watch_->look(now + 68 * kOneSecond));
}

TEST_F(DeadlineWatchTest, RubbishDoesNoHarm) {
  const Nanos now = monotonic_now();
  std::memset(static_cast<void*>(board_->lines), 0x41, sizeof board_->lines);
  board_->used = 0xffffffff;
  EXPECT_FALSE(watch_->look(now));
  std::memset(static_cast<void*>(board_->lines), 0xff, sizeof board_->lines);
  EXPECT_FALSE(watch_->look(now));
  write(7, getpid(), now, 1, "a label that is much longer than there is room for in a line");
  const auto passed = watch_->look(now);
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->label.size(), MPRUN_DEADLINES_LABEL);
}

}  // namespace
}  // namespace mprun
