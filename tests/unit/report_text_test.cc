#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/fd.h"
#include "report/text_report.h"

namespace mprun {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kDivision = R"({"type":"ZeroDivisionError","message":"division by zero","traceback":)"
                                  R"("Traceback:\n  File \"a.py\", line 1, in f\n  File \"b.py\", line 2, in g\n)"
                                  R"(    1 / 0\nZeroDivisionError: division by zero\n"})";

[[nodiscard]] std::string read_available(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t count = 0; (count = read(fd, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// What a report prints to a pipe.
[[nodiscard]] std::string printed(TextOptions options, const std::function<void(TextReport&)>& act) {
  auto pipe = make_pipe();
  EXPECT_TRUE(pipe);
  set_nonblocking(pipe->read.get());
  options.fd = pipe->write.get();
  options.name = "digits";
  {
    TextReport report(options);
    act(report);
  }
  return read_available(pipe->read.get());
}

[[nodiscard]] TaskEnded failed_task(TaskId task, std::string_view error = kDivision) {
  TaskEnded ended;
  ended.task = task;
  ended.status = TaskStatus::kFailed;
  ended.result = error;
  ended.worker = 2;
  return ended;
}

[[nodiscard]] Pulse pulse_at(double elapsed, std::uint64_t done, std::optional<std::uint64_t> total) {
  Pulse pulse;
  pulse.elapsed = elapsed;
  pulse.done = done;
  pulse.total = total;
  pulse.phase = "running";
  return pulse;
}

[[nodiscard]] std::ptrdiff_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(TextReportReader, ThatSleepsDelaysNothingAndGetsAllInTheEnd) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  TextOptions options;
  options.fd = pipe->write.get();
  std::string received;
  std::thread reader;
  {
    TextReport report(options);
    const std::string long_line(999, 'x');
    for (int i = 0; i < 200; ++i) report.print(long_line);  // three times what the pipe holds
    report.print("the last");
    reader = std::thread([&] {
      if (auto all = read_all(pipe->read.get())) received = std::move(*all);
    });
  }
  pipe->write.reset();
  reader.join();
  EXPECT_EQ(received.size(), 200'000 + std::string_view("the last\n").size());
  EXPECT_THAT(received, EndsWith("x\nthe last\n"));
}

TEST(TextReportReader, ThatSleepsForLongMissesSome) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  TextOptions options;
  options.fd = pipe->write.get();
  std::string received;
  std::thread reader;
  {
    TextReport report(options);
    for (int i = 0; i < 1000; ++i) report.print(std::string(999, 'x'));
    reader = std::thread([&] {
      if (auto all = read_all(pipe->read.get())) received = std::move(*all);
    });
  }
  pipe->write.reset();
  reader.join();
  EXPECT_LT(received.size(), 400'000U);
  EXPECT_THAT(received, testing::ContainsRegex("mprun: [0-9]+ messages are left out here: the reader was too slow"));
}

TEST(ReportTextTest, AFailedTaskIsOneLine) {
  EXPECT_EQ(printed({}, [](TextReport& report) { report.on_event(failed_task(17)); }),
            "task 17 failed: ZeroDivisionError: division by zero (worker 2, attempt 1)\n");
  EXPECT_EQ(printed({}, [](TextReport& report) { report.on_event(failed_task(1, "no JSON\nat all")); }),
            "task 1 failed: Error: no JSON (worker 2, attempt 1)\n");
}

TEST(ReportTextTest, OnlyTheFirstFailuresAndRetriesArePrinted) {
  const std::string failures = printed({}, [](TextReport& report) {
    for (TaskId task = 0; task < 100; ++task) report.on_event(failed_task(task));
  });
  EXPECT_EQ(count_lines(failures), 11);
  EXPECT_THAT(failures, EndsWith("attempt 1)\nfurther failures are in results.jsonl\n"));
  const std::string retries = printed({}, [](TextReport& report) {
    for (TaskId task = 0; task < 100; ++task) report.on_event(TaskRetried{task, 1, 0, "worker died"});
  });
  EXPECT_EQ(count_lines(retries), 11);
  EXPECT_THAT(retries, StartsWith("task 0 is tried again: worker died (worker 0, attempt 1)\n"));
}

TEST(ReportTextTest, DeathsAreNamed) {
  EXPECT_EQ(printed({},
                    [](TextReport& report) {
                      report.on_event(WorkerStarted{2, 99});
                      report.on_event(WorkerEnded{2, 99, "worker", {0, 9}, false});
                      report.on_event(WorkerEnded{3, 98, "worker", {0, 0}, true});
                      report.on_event(WorkerEnded{0, 97, "host", {4, 0}, false});
                    }),
            "worker 2 (pid 99) died: killed by signal 9 (Killed)\nhost (pid 97) died: exit code 4\n");
}

TEST(ReportTextTest, VerboseAddsStartsAndEnds) {
  TextOptions options;
  options.verbose = true;
  EXPECT_EQ(printed(options,
                    [](TextReport& report) {
                      report.on_event(WorkerStarted{2, 99});
                      report.on_event(WorkerEnded{2, 99, "worker", {0, 0}, true});
                      report.on_event(WorkerStarted{-1, 98, "host"});
                      report.on_event(WorkerEnded{-1, 98, "host", {0, 0}, true});
                      report.on_event(WorkerStarted{0, 97, "rank"});
                    }),
            "worker 2 started (pid 99)\nworker 2 (pid 99) ended: exit code 0\n"
            "host started (pid 98)\nhost (pid 98) ended: exit code 0\n"
            "rank 0 started (pid 97)\n");
}

TEST(ReportTextTest, NoticesAreLabelledAndReasonsOnlyShownWhenAsked) {
  const auto notices = [](TextReport& report) {
    report.on_event(Notice{Notice::Kind::kInfo, "hello"});
    report.on_event(Notice{Notice::Kind::kWarning, "careful\nsecond line"});
    report.on_event(Notice{Notice::Kind::kError, "broken"});
    report.on_event(Notice{Notice::Kind::kExplain, "chunk 4\nbecause"});
  };
  EXPECT_EQ(printed({}, notices), "mprun: hello\nmprun: warning: careful\n  second line\nmprun: error: broken\n");
  TextOptions options;
  options.quiet = true;
  options.explain = true;
  EXPECT_EQ(printed(options, notices),
            "mprun: warning: careful\n  second line\nmprun: error: broken\n"
            "explain: chunk 4\nexplain: because\n");
}

TEST(ReportTextTest, PlainProgressIsRareAndHasNoControlCharacters) {
  TextOptions options;
  options.processes = 4;
  const std::string text = printed(options, [](TextReport& report) {
    for (int tenth = 0; tenth <= 1000; ++tenth) {  // 100 s, 1000 tasks: every 10 s is also every 10 %
      report.on_event(pulse_at(tenth / 10.0, static_cast<std::uint64_t>(tenth), 1000));
    }
    report.on_event(failed_task(1, R"({"type":"\u001b[31mE","message":"\u0007"})"));
  });
  EXPECT_THAT(text, StartsWith("digits: started, 1000 tasks, 4 processes\ndigits: 100/1000 (10%), 10/s, ETA 1m30s\n"));
  EXPECT_EQ(count_lines(text), 12);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c != 0x7F); }));
}

TEST(ReportTextTest, PlainProgressIsEveryTenPercentWhereThatIsRarerAndEveryTenSecondsWithoutATotal) {
  const auto pulses = [](std::optional<std::uint64_t> total) {
    return [total](TextReport& report) {
      for (int second = 0; second <= 1000; ++second) {
        report.on_event(pulse_at(second, static_cast<std::uint64_t>(second), total));
      }
    };
  };
  EXPECT_EQ(count_lines(printed({}, pulses(1000))), 11);
  EXPECT_EQ(count_lines(printed({}, pulses(std::nullopt))), 101);
  TextOptions options;
  options.progress = ProgressMode::kNever;
  EXPECT_EQ(printed(options, pulses(1000)), "");
  options = {};
  options.quiet = true;
  EXPECT_EQ(printed(options, pulses(1000)), "");
  options.progress = ProgressMode::kAlways;
  EXPECT_EQ(count_lines(printed(options, pulses(1000))), 11);
}

TEST(ReportTextTest, TheLiveLineIsErasedBeforeOtherTextAndDrawnTenTimesASecondAtMost) {
  TextOptions options;
  options.terminal = true;
  const std::string text = printed(options, [](TextReport& report) {
    for (int milli = 0; milli < 1000; milli += 20) report.on_event(pulse_at(milli / 1000.0, 1, 10));
    report.print("other text\n");
    report.print("more");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 15) << "ten drawn, two erased and drawn again, one erased";
  EXPECT_THAT(text, StartsWith("\rdigits  [==="));
  const std::string drawn = text.substr(0, text.find("\x1b[K"));
  EXPECT_THAT(
      text, EndsWith(drawn + "\x1b[K\r\x1b[Kother text\n" + drawn + "\x1b[K\r\x1b[Kmore\n" + drawn + "\x1b[K\r\x1b[K"));
}

TEST(ReportTextTest, TheFinalLinesGroupFailures) {
  const std::string text = printed({}, [](TextReport& report) {
    for (TaskId task = 20; task < 40; ++task) report.on_event(failed_task(task));
    report.on_event(failed_task(7, R"({"type":"KeyError","message":"'a'","traceback":""})"));
    FinalSummary summary;
    summary.ok = 1776;
    summary.failed = 21;
    summary.retried = 2;
    summary.not_run = 5;
    summary.seconds = 3.5;
    summary.exit_code = 1;
    summary.results = "runs/digits/latest/results.jsonl";
    report.finish(summary);
  });
  EXPECT_THAT(text, EndsWith("digits: 1776 ok, 21 failed, 5 not run, 2 retried in 3.50s (513/s)\n"
                             "  20 x ZeroDivisionError: division by zero (task 20, File \"b.py\", line 2, in g)\n"
                             "  1 x KeyError: 'a' (task 7)\n"
                             "results: runs/digits/latest/results.jsonl\n"
                             "exit code 1: at least one task failed after its retries\n"));
}

TEST(ReportTextTest, TheFinalLineCountsNoTimeForWhatWasDoneEarlier) {
  const std::string text = printed({}, [](TextReport& report) {
    FinalSummary summary;
    summary.ok = 60;
    summary.earlier = 59;
    summary.seconds = 0.5;
    report.finish(summary);
  });
  EXPECT_THAT(text, EndsWith("digits: 60 ok, 59 of them earlier, in 0.50s (2.0/s)\n"));
}

TEST(ReportTextTest, QuietSaysNothingOfSuccess) {
  TextOptions options;
  options.quiet = true;
  const auto finish = [](std::uint64_t failed, int exit_code) {
    return [failed, exit_code](TextReport& report) {
      if (failed != 0) report.on_event(failed_task(3));
      FinalSummary summary;
      summary.ok = 3;
      summary.failed = failed;
      summary.exit_code = exit_code;
      report.finish(summary);
    };
  };
  EXPECT_EQ(printed(options, finish(0, 0)), "");
  EXPECT_THAT(printed(options, finish(1, 1)), AllOf(StartsWith("digits: 3 ok, 1 failed"), HasSubstr("  1 x Zero")));
  EXPECT_THAT(printed(options, finish(0, 130)), HasSubstr("exit code 130: stopped by signal 2 (Interrupt)\n"));
}

TEST(ReportTextTest, AnFdThatTakesNothingIsLeftAlone) {
  TextOptions options;
  options.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const Fd owner(options.fd);
  TextReport report(options);
  report.print("lost");
  report.on_event(failed_task(1));
  report.finish({});
}

TEST(ReportFailureDigestTest, GroupsByTypeHoweverTheObjectIsWritten) {
  FailureDigest digest;
  digest.add(failed_task(1, R"({"type":"A","message":"first"})"));
  digest.add(failed_task(2, R"({"type": "A", "message": "second"})"));
  digest.add(failed_task(3, R"({"message":"third","type":"A"})"));
  digest.add(failed_task(4, "[]"));
  const auto groups = digest.largest(5);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].count, 3U);
  EXPECT_EQ(groups[0].example_task, 1U);
  EXPECT_EQ(groups[0].example.headline(), "A: first");
  EXPECT_EQ(groups[1].example.headline(), "Error: []");
}

TEST(ReportFailureDigestTest, MadeUpTypesDoNotFillTheMemory) {
  FailureDigest digest;
  for (TaskId task = 0; task < 5000; ++task) {
    digest.add(failed_task(task, R"({"type":"T)" + std::to_string(task) + "\"}"));
  }
  EXPECT_LE(digest.largest(10'000).size(), 201U);
  EXPECT_EQ(digest.largest(1)[0].count, 4800U);
}

/// Restores an environment variable at the end of a test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~ScopedEnv() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(ReportTextOptionsTest, FollowTheTerminalAndItsEnvironment) {
  const Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0) GTEST_SKIP() << "no pseudo-terminals";
  const Fd terminal(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  const ScopedEnv term("TERM", "xterm");
  const ScopedEnv color("NO_COLOR", "");
  const ScopedEnv locale("LC_ALL", "C.UTF-8");
  const JobSpec spec;
  EXPECT_TRUE(text_options(spec, terminal.get()).terminal);
  EXPECT_TRUE(text_options(spec, terminal.get()).color);
  EXPECT_TRUE(text_options(spec, terminal.get()).unicode);
  {
    const ScopedEnv no_color("NO_COLOR", "1");
    EXPECT_TRUE(text_options(spec, terminal.get()).terminal);
    EXPECT_FALSE(text_options(spec, terminal.get()).color);
  }
  const ScopedEnv dumb("TERM", "dumb");
  EXPECT_FALSE(text_options(spec, terminal.get()).terminal);
  EXPECT_FALSE(text_options(spec, terminal.get()).color);
}

TEST(ReportTextTest, TheLiveLineFitsTheTerminal) {
  const Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0) GTEST_SKIP() << "no pseudo-terminals";
  const Fd terminal(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  winsize size{};
  size.ws_col = 30;
  ASSERT_EQ(ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  TextOptions options;
  options.fd = terminal.get();
  options.name = "digits";
  options.terminal = true;
  TextReport report(options);
  report.on_event(pulse_at(0, 1234, 1797));
  EXPECT_EQ(read_available(master.get()), "\rdigits  1234/1797  68%\x1b[K");
}

}  // namespace
}  // namespace mprun
