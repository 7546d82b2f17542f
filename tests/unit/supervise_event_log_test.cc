// The scheduler's event log as text: what is written is read back unchanged.
#include "supervise/event_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace mprun {
namespace {

Policy full_policy() {
  Policy policy;
  policy.workers = 3;
  policy.process_per_task = true;
  policy.ranks = true;
  policy.chunk_size = 7;
  policy.retries_on_error = 1;
  policy.retries_on_death = 2;
  policy.retries_on_hang = 3;
  policy.retry_delay = 4;
  policy.retry_backoff = 1.25;
  policy.retry_max_delay = 7;
  policy.stop_on_error = true;
  policy.max_failures = 5;
  policy.task_limit = 6;
  policy.job_limit = 8;
  policy.join_limit = 9;
  policy.grace = 10;
  policy.tasks_per_worker = 11;
  policy.total = 12;
  policy.earlier = {13, 14, 15, 16, 17};
  return policy;
}

std::vector<Event> every_event() {
  return {event::Begin{},
          event::InputsRead{3, true, 2},
          event::WorkerReady{1},
          event::TaskDone{1, true, 99, true, true},
          event::WorkerGone{2, true, true},
          event::StartFailed{},
          event::TakenBack{1, 4},
          event::Interrupt{},
          event::WorkerHung{1},
          event::WorkerTooLarge{1},
          event::JobHung{},
          event::GroupDecided{GroupPhase::kFinished, 3},
          event::Resumed{-5},
          event::Tick{}};
}

std::vector<Action> every_action() {
  return {action::ReadInputs{18446744073709551615U},
          action::StartWorker{2},
          action::Assign{1, {{5, 1}, {7, 2}}},
          action::Assign{1, {}},
          action::TakeBack{1},
          action::Retire{0},
          action::Signal{1, 15, Cause::kJoinLimit},
          action::EndTask{1, {5, 2}, TaskStatus::kCancelled, Cause::kHang, 12, true},
          action::HoldResult{1, {5, 1}},
          action::RetryTask{1, {5, 1}, Cause::kDeath, true, 7},
          action::RetryTask{1, {5, 1}, Cause::kMemory}};
}

TEST(EventLog, ReadsBackEveryEvent) {
  std::set<std::size_t> kinds;
  for (const Event& event : every_event()) {
    const std::string line = to_text(TimedEvent{42, event});
    const auto back = parse_event(line);
    ASSERT_TRUE(back) << line << ": " << back.error().message;
    EXPECT_EQ(back->at, 42);
    EXPECT_EQ(back->event.index(), event.index()) << line;
    EXPECT_EQ(to_text(*back), line);
    kinds.insert(event.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Event>);
}

TEST(EventLog, ReadsBackEveryAction) {
  std::set<std::size_t> kinds;
  for (const Action& action : every_action()) {
    const std::string line = to_text(action);
    const auto back = parse_action(line);
    ASSERT_TRUE(back) << line << ": " << back.error().message;
    EXPECT_EQ(back->index(), action.index()) << line;
    EXPECT_EQ(to_text(*back), line);
    kinds.insert(action.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Action>);
}

TEST(EventLog, ReadsBackEveryCause) {
  std::set<std::string> texts;
  for (int cause = 0; cause <= static_cast<int>(Cause::kHang); ++cause) {
    const std::string line = to_text(Action(action::Signal{0, 9, static_cast<Cause>(cause)}));
    const auto back = parse_action(line);
    ASSERT_TRUE(back) << line;
    EXPECT_EQ(std::get<action::Signal>(*back).cause, static_cast<Cause>(cause));
    texts.insert(line);
  }
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(Cause::kHang) + 1);
}

TEST(EventLog, ReadsBackPolicies) {
  for (const Policy& policy : {Policy{}, full_policy()}) {
    const std::string line = to_text(policy);
    const auto back = parse_policy(line);
    ASSERT_TRUE(back) << line << ": " << back.error().message;
    EXPECT_EQ(to_text(*back), line);
  }
  EXPECT_EQ(parse_policy(to_text(full_policy()))->earlier.cancelled, 16U);
  EXPECT_FALSE(parse_policy(to_text(Policy{}))->max_failures);
}

TEST(EventLog, LooksLikeThis) {
  EXPECT_EQ(step_text({81, event::InputsRead{2, false, 1}}, {action::Assign{0, {{1, 1}, {2, 3}}}}),
            "81 InputsRead count=2 ended=0 first=1\n  Assign slot=0 tasks=1:1,2:3\n");
}

TEST(EventLog, RefusesWhatItWouldNotWrite) {
  for (const char* line : {"", "7", "7 ", "7 Nothing", "x Tick", "7 Tick more", "7 WorkerReady",
                           "7 WorkerReady slot=", "7 WorkerReady slot=1x", "7 WorkerReady slot=99999999999",
                           "7 WorkerReady place=1", "7 TaskDone slot=1 failed=2 duration=3", "  7 Tick"}) {
    EXPECT_FALSE(parse_event(line)) << line;
  }
  for (const char* line : {"", "  ", "StartWorker slot=1", "  StartWorker", "  Assign slot=1 tasks=1",
                           "  Assign slot=1 tasks=1:1,", "  Signal slot=1 signal=9 cause=9"}) {
    EXPECT_FALSE(parse_action(line)) << line;
  }
  EXPECT_FALSE(parse_policy("policy workers=1"));
  EXPECT_FALSE(parse_policy(to_text(Policy{}) + " more=1"));
}

TEST(EventLog, AppendsSessionsToAFile) {
  std::string path = testing::TempDir() + "events-XXXXXX";
  const int made = mkstemp(path.data());
  ASSERT_GE(made, 0);
  const Fd owner(made);
  for (int session = 0; session < 2; ++session) {
    auto log = EventLog::open(path, Policy{});
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE(log->write(step_text({5, event::Begin{}}, {action::StartWorker{0}})));
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string session =
      std::string(kEventLogHead) + "\n" + to_text(Policy{}) + "\n5 Begin\n  StartWorker slot=0\n";
  EXPECT_EQ(text, session + session);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

}  // namespace
}  // namespace mprun
