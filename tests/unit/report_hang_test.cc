// A hang as people and programs see it: exact texts of made-up hangs, every key of the JSON, the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "json/json.h"
#include "report/hang_report.h"

namespace mprun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Nanos kMoment = 1'767'323'045'678'000'000;  // 2026-01-02T03:04:05.678Z

[[nodiscard]] HungThread blocked(pid_t tid, std::string kind, std::string object, std::vector<pid_t> wakers) {
  HungThread thread;
  thread.tid = tid;
  thread.name = "python";
  thread.state = "blocked for ever";
  thread.wait = {std::move(kind), false, std::move(object), std::move(wakers), {}};
  return thread;
}

/// Pool(workers) whose workers hang in an OpenMP region after fork.
[[nodiscard]] Hang openmp_hang(int workers) {
  Hang hang;
  hang.seconds_since_progress = 0.9;
  hang.join = WaitingJoin{"multiprocessing.pool.Pool.join", 100, 100, "train.py", 23, 2.1};
  hang.cause = {"openmp-after-fork",
                "an OpenMP region was entered in a forked child whose threads stayed in its parent.",
                "mprun --set adapters.openmp=auto -- python train.py"};
  HungProcess main{100, 99, "python train.py", false, {}};
  main.threads.push_back(blocked(100, "child", "child 101", {101}));
  main.threads.back().native = {"wait4 (libc.so.6)", "_PyEval_EvalFrameDefault (python3.11)"};
  main.threads.back().python = {{"/usr/lib/python3.11/multiprocessing/popen_fork.py", 27, "poll"},
                                {"train.py", 23, "<module>"}};
  hang.processes.push_back(main);
  for (pid_t pid = 101; pid < 101 + workers; ++pid) {
    HungProcess worker{pid, 100, "python train.py", true, {}};
    worker.threads.push_back(blocked(pid, "futex", "futex 0x7f" + std::to_string(pid) + "c0", {pid}));
    worker.threads.back().native = {"libgomp.so.1+0x1f823", "GOMP_parallel (libgomp.so.1)",
                                    "at::parallel_for (libtorch_cpu.so.1)", "PyNumber_Add (python3.11)"};
    worker.threads.back().python = {{"train.py", 8, "work"},
                                    {"/usr/lib/python3.11/multiprocessing/pool.py", 125, "worker"}};
    hang.processes.push_back(worker);
    hang.edges.push_back({100, pid, "waitpid"});
  }
  return hang;
}

[[nodiscard]] Hang stalled_hang() {
  Hang hang;
  hang.verdict = HangVerdict::kStalled;
  hang.seconds_since_progress = 60;
  hang.join = WaitingJoin{"multiprocessing.process.Process.join", 7, 7, "stop.py", 9, 61.2};
  hang.cause = {"stopped", "process 8 was stopped by a signal (SIGSTOP).", "kill -CONT 8"};
  hang.processes.push_back({7, 1, "python stop.py", false, {blocked(7, "child", "child 8", {8})}});
  hang.processes.back().threads.back().state = "blocked";
  HungThread stopped;
  stopped.tid = 8;
  stopped.name = "python";
  stopped.state = "stopped";
  hang.processes.push_back({8, 7, "python stop.py", true, {stopped}});
  hang.edges.push_back({7, 8, "waitpid"});
  return hang;
}

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The limits of the text, and that it contains nothing that moves a cursor.
void expect_a_screen(const std::string& text) {
  const auto lines = lines_of(text);
  EXPECT_LE(lines.size(), 24U) << text;
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_LE(lines[i].size(), 100U) << lines[i];
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char c) { return c == '\n' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7F); }));
}

TEST(ReportHang, OpenMpAfterForkInAPool) {
  const std::string text = hang_text(openmp_hang(64));
  EXPECT_EQ(text,
            "mprun: hang proved (deadlock): multiprocessing.pool.Pool.join at train.py:23 has waited 2.1 s and will "
            "never return\n"
            "  pid 100: python train.py\n"
            "      thread 100 \"python\" is blocked for ever: waits for child 101; only 101 could end it\n"
            "        .../python3.11/multiprocessing/popen_fork.py:27 in poll\n"
            "        train.py:23 in <module>\n"
            "    waits (waitpid) for pid 101, forked: python train.py\n"
            "        thread 101 \"python\" is blocked for ever: waits for futex 0x7f101c0; only 101 could end it\n"
            "          GOMP_parallel (libgomp.so.1)\n"
            "          at::parallel_for (libtorch_cpu.so.1)\n"
            "          train.py:8 in work\n"
            "          /usr/lib/python3.11/multiprocessing/pool.py:125 in worker\n"
            "    and 63 more like it: pid 102, 103, 104 and 60 more\n"
            "cause: an OpenMP region was entered in a forked child whose threads stayed in its parent.\n"
            "       (openmp-after-fork)\n"
            "cure:  mprun --set adapters.openmp=auto -- python train.py\n");
  expect_a_screen(text);
}

TEST(ReportHang, ColorsShowWhereCauseAndCureAre) {
  EXPECT_EQ(colored_hang_text("mprun: hang\n  cause: pid 7\ncause: a lock: held\n       (id)\ncure:  free it\n"),
            "\x1b[1mmprun: hang\x1b[0m\n  cause: pid 7\n\x1b[31mcause\x1b[0m: a lock: held\n       (id)\n"
            "\x1b[32mcure\x1b[0m:  free it\n");
  EXPECT_EQ(colored_hang_text("one line"), "\x1b[1mone line\x1b[0m");
}

TEST(ReportHang, AWorkerThatDied) {
  Hang hang;
  hang.seconds_since_progress = 0.5;
  hang.join = WaitingJoin{"multiprocessing.pool.Pool.join", 100, 100, "", 0, 12.6};
  hang.cause = {"worker-died", "worker 101 was killed by signal 9 while it ran a task, and Pool never notices.", ""};
  hang.processes.push_back({100, 1, "python pool.py", false, {blocked(100, "futex", "", {})}});
  for (pid_t pid = 101; pid < 106; ++pid) hang.deaths.push_back({pid, 1, {0, 9}, pid != 102, kMoment});
  EXPECT_EQ(
      hang_text(hang),
      "mprun: hang proved (deadlock): multiprocessing.pool.Pool.join in process 100 has waited 13 s and will never "
      "return\n"
      "  pid 100: python pool.py\n"
      "      thread 100 \"python\" is blocked for ever: waits (futex)\n"
      "  dead: pid 101, signal 9 (Killed), at 2026-01-02T03:04:05.678Z\n"
      "  dead: pid 102, cause of death unknown, at 2026-01-02T03:04:05.678Z\n"
      "  dead: pid 103, signal 9 (Killed), at 2026-01-02T03:04:05.678Z\n"
      "  and 2 more deaths\n"
      "cause: worker 101 was killed by signal 9 while it ran a task, and Pool never notices. (worker-died)\n");
}

TEST(ReportHang, StalledClaimsNoProof) {
  const std::string text = hang_text(stalled_hang());
  EXPECT_EQ(text,
            "mprun: stalled: nothing has moved for 60 s, but a timer or the outside could still act\n"
            "  multiprocessing.process.Process.join at stop.py:9 has waited 61 s\n"
            "  pid 7: python stop.py\n"
            "      thread 7 \"python\" is blocked: waits for child 8; only 8 could end it\n"
            "    waits (waitpid) for pid 8, forked: python stop.py\n"
            "        thread 8 \"python\" is stopped\n"
            "cause: process 8 was stopped by a signal (SIGSTOP). (stopped)\n"
            "cure:  kill -CONT 8\n");
  EXPECT_THAT(text, Not(HasSubstr("never")));
  Hang respawning = stalled_hang();
  respawning.cause.id = "respawn-loop";
  EXPECT_THAT(hang_text(respawning), HasSubstr("what is waited for does not come, though threads still run"));
}

TEST(ReportHang, APartialDeadlockOfACycle) {
  Hang hang;
  hang.verdict = HangVerdict::kPartialDeadlock;
  hang.seconds_since_progress = 3;
  hang.cause.explanation = "";
  hang.processes.push_back({11, 1, "./left", false, {blocked(11, "pipe-read", "pipe 4711", {12})}});
  hang.processes.back().threads.push_back(hang.processes.back().threads.back());
  hang.processes.back().threads.back().tid = 13;
  hang.processes.back().threads.back().state = "running";
  hang.processes.back().threads.back().wait = {};
  hang.processes.push_back({12, 1, "./right", false, {blocked(12, "pipe-read", "", {})}});
  hang.processes.back().threads.back().wait.timed = true;
  hang.processes.back().threads.back().native = {"read (libc.so.6)", "right+0x12", "main (right)"};
  hang.edges = {{11, 12, "pipe 4711"}, {12, 11, "pipe 4712"}};
  EXPECT_EQ(hang_text(hang),
            "mprun: hang proved (partial-deadlock): process 11 (./left) with 1 more has not moved for 3.0 s and never "
            "will\n"
            "  this is so for the processes below, while others still run\n"
            "  pid 11: ./left\n"
            "      thread 11 \"python\" is blocked for ever: waits for pipe 4711; only 12 could end it\n"
            "      thread 13 \"python\" is running\n"
            "    waits (pipe 4711) for pid 12: ./right\n"
            "        thread 12 \"python\" is blocked for ever: waits (pipe-read), for a limited time\n"
            "          read (libc.so.6)\n"
            "          main (right)\n"
            "cause: not known (unknown)\n");
}

TEST(ReportHang, AnOrphanedLockIsOfThreads) {
  Hang hang;
  hang.verdict = HangVerdict::kOrphanedLock;
  hang.seconds_since_progress = 3;
  hang.cause = {"lock-cycle", "threads wait for each other's locks", "take them in the same order"};
  hang.processes.push_back({11, 1, "./server", false, {blocked(12, "mutex", "mutex 0x5 of thread 13", {13})}});
  EXPECT_EQ(hang_text(hang),
            "mprun: hang proved (orphaned-lock): thread 12 of process 11 (./server) can never move again\n"
            "  this is so for the threads below; others of the process still run\n"
            "  pid 11: ./server\n"
            "      thread 12 \"python\" is blocked for ever: waits for mutex 0x5 of thread 13; only 13 could end it\n"
            "cause: threads wait for each other's locks (lock-cycle)\n"
            "cure:  take them in the same order\n");
  hang.processes[0].threads.push_back(blocked(13, "mutex", "mutex 0x6 of thread 12", {12}));
  EXPECT_THAT(hang_text(hang), HasSubstr("2 threads of process 11 (./server) can never move again"));
  hang.join = WaitingJoin{"pthread_join", 11, 11, "", 0, 3.0};
  EXPECT_THAT(hang_text(hang), StartsWith("mprun: hang proved (orphaned-lock): pthread_join in process 11 has waited"));
}

TEST(ReportHang, OverdueClaimsNoProof) {
  Hang hang;
  hang.verdict = HangVerdict::kOverdue;
  hang.limit = PassedLimit{"task 3", 30, 5, 6};
  hang.join = WaitingJoin{"concurrent.futures.Future.result", 5, 6, "job.py", 3, 30.0};
  hang.cause = {"external-wait", "thread 6 waits for a server.", "look at what it talks to"};
  hang.deaths.resize(1);  // mean nothing here
  EXPECT_EQ(hang_text(hang),
            "mprun: overdue: \"task 3\" has taken longer than its 30 s\n"
            "  it is in concurrent.futures.Future.result at job.py:3\n"
            "cause: thread 6 waits for a server. (external-wait)\n"
            "cure:  look at what it talks to\n");
  EXPECT_EQ(hang_json(hang)["limit"], Json::parse(R"({"label": "task 3", "seconds": 30.0})"));
  hang.join->call = "timer";
  EXPECT_THAT(hang_text(hang), HasSubstr("\n  it is at job.py:3\n"));
  hang.join.reset();
  hang.limit->label.clear();
  hang.processes.push_back({5, 1, "python job.py", false, {}});
  EXPECT_THAT(hang_text(hang),
              StartsWith("mprun: overdue: process 5 (python job.py) has taken longer than its 30 s\n"));
}

TEST(ReportHang, SaysWhyThereAreNoPythonFrames) {
  Hang hang = openmp_hang(1);
  EXPECT_THAT(hang_text(hang), Not(HasSubstr("no Python frames")));
  EXPECT_FALSE(hang_json(hang)["processes"][1].contains("python_unread"));
  hang.processes[1].python_unread = "Python 3.16 is not known to mprun";
  EXPECT_THAT(hang_text(hang), HasSubstr("\n        no Python frames: Python 3.16 is not known to mprun\n"));
  EXPECT_EQ(hang_json(hang)["processes"][1]["python_unread"], "Python 3.16 is not known to mprun");
}

TEST(ReportHang, WhatDiffersIsNotPutTogether) {
  Hang hang = openmp_hang(3);
  hang.processes[2].threads[0].python[0].line = 9;
  const std::string text = hang_text(hang);
  EXPECT_THAT(text, HasSubstr("for pid 102, forked"));
  EXPECT_THAT(text, HasSubstr("train.py:9 in work"));
  EXPECT_THAT(text, HasSubstr("    and 1 more like it: pid 103\n"));
}

TEST(ReportHang, MuchIsCutToAScreen) {
  Hang hang = openmp_hang(200);
  for (HungProcess& process : hang.processes)
    process.command += std::string(2, static_cast<char>('a' + process.pid % 26));
  const std::string text = hang_text(hang);
  expect_a_screen(text);
  EXPECT_EQ(lines_of(text).size(), 24U);
  EXPECT_THAT(text, HasSubstr("more lines; the JSON report has all of it\ncause: "));

  Hang chain;  // each waits for the next
  for (pid_t pid = 1; pid <= 5000; ++pid) {
    chain.processes.push_back({pid, pid - 1, "link", true, {blocked(pid, "child", "", {pid + 1})}});
    chain.edges.push_back({pid, pid + 1, "waitpid"});
  }
  expect_a_screen(hang_text(chain));
  expect_a_screen(hang_text(Hang{}));
}

TEST(ReportHang, HostileNamesAreHarmless) {
  const std::string evil = "\x1b[31m\"]; x\\\n\r\xff\xc2\x9b<b>" + std::string(5000, 'w');
  Hang hang = openmp_hang(2);
  hang.join->call = hang.join->file = evil;
  hang.cause = {evil, evil, evil};
  for (HungProcess& process : hang.processes) {
    process.command = evil;
    for (HungThread& thread : process.threads) {
      thread.name = thread.state = thread.wait.kind = thread.wait.object = evil;
      thread.native = {evil};
      thread.python = {{evil, -1, evil}};
    }
  }
  for (WaitEdge& edge : hang.edges) edge.why = evil;
  hang.edges.push_back({100, 100, evil});
  hang.edges.push_back({100, 4242, evil});
  hang.processes.push_back(hang.processes.back());
  expect_a_screen(hang_text(hang));
  EXPECT_LT(lines_of(hang_text(hang)).front().size(), 300U);

  const std::string json = hang_json(hang).dump();  // throws if a text is not UTF-8
  EXPECT_THAT(Json::parse(json)["cause"]["id"].get<std::string>(), StartsWith("\x1b[31m\"]; x\\\n\r\xef\xbf\xbd"));
  const std::string dot = hang_dot(hang);
  EXPECT_THAT(dot, HasSubstr("?[31m\\\"]; x\\\\"));
  EXPECT_THAT(dot, Not(HasSubstr("\x1b")));
}

TEST(ReportHang, JsonHasEveryKeyOfTheContract) {
  Hang hang = openmp_hang(1);
  hang.deaths = {{3, 1, {0, 9}, true, kMoment}, {4, 1, {7, 0}, true, kMoment}, {5, 1, {}, false, kMoment}};
  hang.cannot_return = {100, 101};
  hang.processes[1].threads[0].native_approximate = true;
  EXPECT_EQ(hang_json(hang), Json::parse(R"json({
    "version": 1, "verdict": "deadlock", "seconds_since_progress": 0.9,
    "join": {"call": "multiprocessing.pool.Pool.join", "pid": 100, "tid": 100, "file": "train.py", "line": 23,
             "waiting_seconds": 2.1},
    "cause": {"id": "openmp-after-fork",
              "explanation": "an OpenMP region was entered in a forked child whose threads stayed in its parent.",
              "fix": "mprun --set adapters.openmp=auto -- python train.py"},
    "processes": [
      {"pid": 100, "ppid": 99, "command": "python train.py", "origin": "exec", "threads": [
        {"tid": 100, "name": "python", "state": "blocked for ever",
         "wait": {"kind": "child", "timed": false, "object": "child 101", "wakers": [101]},
         "python": [{"file": "/usr/lib/python3.11/multiprocessing/popen_fork.py", "line": 27, "function": "poll"},
                    {"file": "train.py", "line": 23, "function": "<module>"}],
         "native": ["wait4 (libc.so.6)", "_PyEval_EvalFrameDefault (python3.11)"]}]},
      {"pid": 101, "ppid": 100, "command": "python train.py", "origin": "fork", "threads": [
        {"tid": 101, "name": "python", "state": "blocked for ever",
         "wait": {"kind": "futex", "timed": false, "object": "futex 0x7f101c0", "wakers": [101]},
         "python": [{"file": "train.py", "line": 8, "function": "work"},
                    {"file": "/usr/lib/python3.11/multiprocessing/pool.py", "line": 125, "function": "worker"}],
         "native": ["libgomp.so.1+0x1f823", "GOMP_parallel (libgomp.so.1)", "at::parallel_for (libtorch_cpu.so.1)",
                    "PyNumber_Add (python3.11)", "... (outer frames may be missing)"]}]}],
    "edges": [{"from": 100, "to": 101, "why": "waitpid"}],
    "deaths": [{"pid": 3, "signal": 9, "at": "2026-01-02T03:04:05.678Z"},
               {"pid": 4, "exit_code": 7, "at": "2026-01-02T03:04:05.678Z"},
               {"pid": 5, "at": "2026-01-02T03:04:05.678Z"}],
    "cannot_return": [100, 101]})json"));
}

TEST(ReportHang, JsonHasNullForWhatIsNotKnown) {
  Hang hang = stalled_hang();
  hang.join->file.clear();
  const Json json = hang_json(hang);
  EXPECT_EQ(json["join"]["file"], nullptr);
  EXPECT_EQ(json["join"]["line"], nullptr);
  EXPECT_EQ(json["processes"][1]["threads"][0]["wait"], nullptr);
  EXPECT_EQ(hang_json(Hang{})["join"], nullptr);
  EXPECT_EQ(hang_json(Hang{})["processes"], Json::array());
}

TEST(ReportHang, ShowsWhatStillRunsAndUntilWhen) {
  Hang hang;
  hang.verdict = HangVerdict::kPartialDeadlock;
  hang.processes.push_back({11, 10, "./left", false, {blocked(11, "futex", "", {11})}});
  EXPECT_FALSE(hang_json(hang).contains("still_runs"));
  StillRunning copes{10, 10, "python collect.py", "subprocess.Popen.communicate", "/home/anna/collect.py", 9, "", 5.72};
  copes.why = "a wait with a time limit";
  hang.still_running = {copes, {20, 21, "./server", "", "", 0, "it waits for a signal", -1}};
  EXPECT_THAT(hang_text(hang), HasSubstr("  the program still runs: pid 10 is in subprocess.Popen.communicate at "
                                         "/home/anna/collect.py:9 until\n                          5.7 s from now\n"));
  EXPECT_THAT(hang_text(hang),
              HasSubstr("the program still runs: pid 20 (./server) can go on: it waits for a signal\n"));
  const Json json = hang_json(hang)["still_runs"];
  EXPECT_EQ(json[0], Json::parse(R"({"pid": 10, "tid": 10, "call": "subprocess.Popen.communicate",
      "file": "/home/anna/collect.py", "line": 9, "why": "a wait with a time limit", "ends_in_seconds": 5.72})"));
  EXPECT_EQ(json[1], Json::parse(R"({"pid": 20, "tid": 21, "call": null, "file": null, "line": null,
      "why": "it waits for a signal", "ends_in_seconds": null})"));
  hang.still_running[0].ends_in = 0.03;  // it sleeps between two looks
  EXPECT_THAT(hang_text(hang), HasSubstr("is in subprocess.Popen.communicate at /home/anna/collect.py:9\n"));
}

TEST(ReportHang, VerdictsAreNamedAsInTheContract) {
  EXPECT_STREQ(to_string(HangVerdict::kDeadlock), "deadlock");
  EXPECT_STREQ(to_string(HangVerdict::kPartialDeadlock), "partial-deadlock");
  EXPECT_STREQ(to_string(HangVerdict::kOrphanedLock), "orphaned-lock");
  EXPECT_STREQ(to_string(HangVerdict::kStalled), "stalled");
  EXPECT_STREQ(to_string(HangVerdict::kOverdue), "overdue");
}

TEST(ReportHang, TheGraphIsOneNodeAProcess) {
  Hang hang = stalled_hang();
  hang.deaths.push_back({9, 1, {3, 0}, true, kMoment});
  EXPECT_EQ(hang_dot(hang),
            "digraph hang {\n"
            "  label=\"stalled\";\n"
            "  node [shape=box];\n"
            "  \"7\" [label=\"pid 7\\npython stop.py\\nwaits for child 8; only 8 could end it\"];\n"
            "  \"8\" [label=\"pid 8, forked\\npython stop.py\\nis stopped\"];\n"
            "  \"9\" [label=\"pid 9\\ndead: exit code 3\", style=dashed];\n"
            "  \"7\" -> \"8\" [label=\"waitpid\"];\n"
            "}\n");
  EXPECT_THAT(hang_dot(openmp_hang(1)),
              HasSubstr("GOMP_parallel (libgomp.so.1)\\ntrain.py:8 in work\", style=bold];\n"));
}

}  // namespace
}  // namespace mprun
