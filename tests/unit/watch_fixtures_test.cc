// Recorded hangs and controls (fixtures/NAME.recording: two samples, and all that the judge then asked;
// made by watch/record_fixture.cc), judged again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "procfs/process_table.h"
#include "procfs/text_scan.h"
#include "watch/judge/judge.h"
#include "watch/sample/architecture.h"

namespace mprun {
namespace {

struct Recorded {
  const char* name;
  std::size_t stuck, live;         ///< processes
  std::vector<WaitKind> kinds;     ///< of the threads, in their order
  const char* why_live = nullptr;  ///< of the last thread
};

void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name; }

class FixtureTest : public testing::TestWithParam<Recorded> {};

std::string content_of(const std::string& name) {
  const std::ifstream file(MPRUN_SOURCE_DIR "/tests/unit/watch/fixtures/" + name + ".recording");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "# root 123", the second line.
pid_t root_of(std::string_view recording) {
  TextScan scan(recording);
  scan.line();
  pid_t root = 0;
  return scan.literal("# root") && scan.number(&root) ? root : 0;
}

TEST_P(FixtureTest, IsJudgedAsItWas) {
  if (architecture::kElfMachine != EM_X86_64) GTEST_SKIP() << "recorded on x86-64";
  const std::string recording = content_of(GetParam().name);
  const pid_t root = root_of(recording);
  ASSERT_GT(root, 0);
  const auto proc = recorded_proc(recording);
  ASSERT_TRUE(proc) << proc.error().message;
  const Sample before = take_sample(proc->get(), process_tree(proc->get(), root, true));
  const Sample after = take_sample(proc->get(), process_tree(proc->get(), root, true));
  EXPECT_TRUE(stood_still(before, after));
  TreeSnapshot snapshot(proc->get(), &after, {});
  const Judgement judgement = judge(after, &snapshot);
  EXPECT_EQ(judgement.stuck.size(), GetParam().stuck);
  EXPECT_EQ(judgement.live.size(), GetParam().live);
  std::vector<WaitKind> kinds;
  for (const JudgedThread& thread : judgement.threads) kinds.push_back(thread.wait.kind);
  EXPECT_EQ(kinds, GetParam().kinds);
  ASSERT_FALSE(judgement.threads.empty());
  const std::string& why_live = judgement.threads.back().wait.why_live;
  EXPECT_EQ(why_live, GetParam().why_live == nullptr ? "" : GetParam().why_live);
}

// One row of the wait table each.
const std::vector<Recorded> kHangs = {
    {"lock_cycle", 1, 0, {WaitKind::kThreadEnd, WaitKind::kMutex, WaitKind::kMutex}},
    {"semaphore", 1, 0, {WaitKind::kFutex}},
    {"condition", 1, 0, {WaitKind::kFutex}},
    {"libgomp_team", 2, 0, {WaitKind::kChild, WaitKind::kFutex, WaitKind::kFutex}},
    {"shared_mutex_owner_killed", 1, 0, {WaitKind::kSharedFutex}},
    {"pipe_never_closed", 2, 0, {WaitKind::kChild, WaitKind::kPipeRead}},
    {"pipe_write", 1, 0, {WaitKind::kPipeWrite}},
    {"poll", 1, 0, {WaitKind::kPoll}},
    {"restarted_poll", 1, 0, {WaitKind::kPoll}},
    {"select", 1, 0, {WaitKind::kPoll}},
    {"epoll_eventfd", 1, 0, {WaitKind::kPoll}},
    {"eventfd", 1, 0, {WaitKind::kEventfd}},
    {"unix_sockets", 2, 0, {WaitKind::kSocket, WaitKind::kSocket}},
    {"flock", 2, 0, {WaitKind::kChild, WaitKind::kFileLock}},
    {"fcntl_lock", 2, 0, {WaitKind::kChild, WaitKind::kFileLock}},
};
const std::vector<Recorded> kControls = {
    {"vfork_sleep", 0, 2, {WaitKind::kVfork, WaitKind::kTimer}, "it sleeps"},
    {"event_from_handler", 0, 1, {WaitKind::kFutex}, "its process catches signal 15"},
    {"timed_condition", 0, 1, {WaitKind::kTimer}, "a wait with a time limit"},
    {"epoll_timer", 0, 1, {WaitKind::kPoll}, "anon_inode:[timerfd]"},
    {"accept", 0, 1, {WaitKind::kSocket}, "a network connection"},
    {"pause", 0, 1, {WaitKind::kSignal}, "it waits for a signal"},
    {"signal", 0, 1, {WaitKind::kSignal}, "it waits for a signal"},
};

INSTANTIATE_TEST_SUITE_P(Hangs, FixtureTest, testing::ValuesIn(kHangs));
INSTANTIATE_TEST_SUITE_P(Controls, FixtureTest, testing::ValuesIn(kControls));

}  // namespace
}  // namespace mprun
