// Why no thread makes progress, rule by rule: a tree in which the rule fires, and a similar one in which it must not.
#include <gtest/gtest.h>

#include <csignal>

#include "cause_evidence.h"

namespace mprun {
namespace {

TEST(StallCauses, AreUnknownWhereAllSleep) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "unknown");
  EXPECT_FALSE(cause.explanation.empty());
}

TEST(StallCauses, NameWhatMayNotBeInspected) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 77, O_RDONLY).thread(kParent).reads(3);
  TreeProcess& child = evidence.proc.process(kChild, kParent).pipe(4, 77, O_WRONLY);
  child.thread(kChild).waits_on(0x5000);
  child.readable = false;
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "unknown") << "the pipe is the tree's own";
  EXPECT_NE(cause.explanation.find("may not look at process " + std::to_string(kChild) + " (program): "),
            std::string::npos)
      << cause.explanation;
  EXPECT_FALSE(cause.fix.empty());
}

TEST(StallCauses, NameWhatElseCannotBeSeen) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).open(3, "/tmp/lock").thread(kParent).call(SYS_flock, {3});
  evidence.proc.process(kChild, kParent).open(3, "/tmp/lock").thread(kChild).waits_on(0x5000);
  evidence.proc.hides_others = true;
  evidence.proc.tells_children = false;
  EXPECT_EQ(evidence.of_stall().explanation, "nothing can be proved: the processes of others are hidden");
}

TEST(StallCauses, NameADatabaseThatTheProcessHasLocked) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).open(3, "/tmp/a.db", O_RDWR, "ino:\t46\n").thread(kParent).sleeps();
  evidence.native[kParent] = {"clock_nanosleep (libc.so.6)", "sqlite3_step (libsqlite3.so.0.8.6)"};
  const std::string lock = "1: POSIX  ADVISORY  WRITE " + std::to_string(kParent) + " fe:00:46 ";
  evidence.proc.locks = lock + "1073741825 1073741825\n";
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_NE(cause.explanation.find("the database /tmp/a.db, which its own process has"), std::string::npos)
      << cause.explanation;
  evidence.proc.locks = lock + "120 120\n";
  EXPECT_EQ(evidence.of_stall().id, "lock-cycle") << "of the write-ahead log";
  evidence.proc.locks = lock + "1073741826 1073742335\n";
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "it only reads";
  evidence.proc.locks = "1: POSIX  ADVISORY  WRITE 77 fe:00:46 1073741825 1073741825\n";
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "another process has it";
  evidence.proc.locks = lock + "1073741825 1073741825\n";
  evidence.native.clear();
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "it sleeps elsewhere";
}

TEST(StallCauses, NameALoopThatLooksInVain) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  evidence.python[kParent] = {{"/usr/lib/python3.11/threading.py", 3, "wait"}, {"/home/anna/train.py", 7, "poll"}};
  evidence.wakeups = {{kParent, 0.0}};
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "it sleeps, perhaps for long";
  evidence.wakeups = {{kParent, 19.8}};
  HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "polls-in-vain");
  EXPECT_NE(cause.explanation.find("wakes up 20 times a second in poll at /home/anna/train.py:7"), std::string::npos)
      << cause.explanation;
  evidence.wakeups = {{kParent, 0.2}};
  evidence.ended(kChild, kParent, 1 << 8);
  cause = evidence.of_stall();
  EXPECT_NE(cause.explanation.find("wakes up every 5 s"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.explanation.find("process 5000020, which it had started, ended with exit code 1"), std::string::npos)
      << cause.explanation;
  evidence.python.clear();
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "nothing shows where it is";
  evidence.native[kParent] = {"clock_nanosleep (libc.so.6)", "wait_for_it (program)"};
  cause = evidence.of_stall();
  EXPECT_NE(cause.explanation.find("in wait_for_it (program)"), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.explanation.find("what it decides in between is not seen"), std::string::npos) << cause.explanation;
}

TEST(StallCauses, DoNotSayThatAThreadWaitsThatRuns) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).running = true;
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "unknown");
  EXPECT_EQ(cause.explanation.find("wait"), std::string::npos) << cause.explanation;
}

TEST(StallCauses, NameWhatActsAlone) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).catches(SIGUSR1).thread(kParent).waits_on(0x5000);
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "unknown");
  EXPECT_NE(cause.explanation.find("which catches signal 10"), std::string::npos) << cause.explanation;
}

TEST(StallCauses, NameWhatWasStopped) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(kChild);
  TreeThread& child = evidence.proc.process(kChild, kParent).thread(kChild).sleeps();
  for (const char state : {'T', 't'}) {
    child.state = state;
    const HangCause cause = evidence.of_stall();
    EXPECT_EQ(cause.id, "stopped");
    EXPECT_EQ(cause.fix, "kill -CONT " + std::to_string(kChild));
  }
  child.state = 'S';
  EXPECT_EQ(evidence.of_stall().id, "unknown");
}

TEST(StallCauses, NameWorkersThatDieAgainAndAgain) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  for (int i = 0; i < 9; ++i) evidence.ended(kChild + i, kParent, 1 << 8);
  EXPECT_EQ(evidence.of_stall().id, "unknown") << "that was before the stall, and may be well";
  evidence.ended(kChild + 10, kParent, SIGSEGV);
  evidence.ended(kChild + 11, kParent, 0);
  evidence.ended(kChild + 12, kThird, SIGKILL);  // another process's child
  evidence.respawner = kParent;
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "respawn-loop");
  EXPECT_NE(cause.explanation.find("process " + std::to_string(kChild + 10) + ", with signal 11"), std::string::npos)
      << cause.explanation;
}

class IgnoredTermination : public testing::Test {
 protected:
  IgnoredTermination() {
    evidence_.proc.process(kParent).thread(kParent).waits_for_child(evidence_.alive);
    child().catches(SIGTERM).thread(evidence_.alive).sleeps();
    evidence_.forked(evidence_.alive, kParent, 1);
    evidence_.receive(kParent, "term\t" + std::to_string(evidence_.alive));
  }
  TreeProcess& child() { return evidence_.proc.process(evidence_.alive, kParent); }
  CauseEvidence evidence_;
};

TEST_F(IgnoredTermination, IsReportedWithWhatEndsIt) {
  const HangCause caught = evidence_.of_stall();
  EXPECT_EQ(caught.id, "ignores-termination");
  EXPECT_EQ(caught.fix.find("kill -KILL " + std::to_string(evidence_.alive)), 0U);
  EXPECT_NE(caught.explanation.find("catches SIGTERM"), std::string::npos);
  child().ignored = std::uint64_t{1} << (SIGTERM - 1);
  EXPECT_NE(evidence_.of_stall().explanation.find("ignores SIGTERM"), std::string::npos);
}

TEST_F(IgnoredTermination, IsNoneWhereTheSignalWouldEndIt) {
  child().caught = child().ignored = 0;
  EXPECT_EQ(evidence_.of_stall().id, "unknown");
}

TEST_F(IgnoredTermination, IsNoneWhereNoProcessWaitsForItsEnd) {
  evidence_.proc.processes[kParent].threads[kParent].sleeps();
  EXPECT_EQ(evidence_.of_stall().id, "unknown");
}

TEST(StallCauses, DoNotBlameAHandlerThatWasNotAsked) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).waits_for_child(evidence.alive);
  evidence.proc.process(evidence.alive, kParent).catches(SIGTERM).thread(evidence.alive).sleeps();
  evidence.forked(evidence.alive, kParent, 1);
  EXPECT_EQ(evidence.of_stall().id, "unknown");
}

TEST(StallCauses, NameWhatIsOutside) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).socket(3, 900).thread(kParent).reads(3);
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "external-wait");
  EXPECT_NE(cause.explanation.find("a network connection"), std::string::npos) << cause.explanation;
  evidence.proc.processes[kParent].threads[kParent].sleeps();
  EXPECT_EQ(evidence.of_stall().id, "unknown");
}

TEST(StallCauses, DoNotTakeTheTreesOwnPipeForTheOutside) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).pipe(3, 70, O_RDONLY).thread(kParent).reads(3);
  evidence.proc.process(kChild, kParent).pipe(4, 70, O_WRONLY).thread(kChild).sleeps();
  EXPECT_EQ(evidence.of_stall().id, "unknown");
  evidence.proc.processes[kParent].catches(SIGTERM);  // now it could end by itself, but not from outside
  EXPECT_EQ(evidence.of_stall().id, "unknown");
  evidence.proc.processes[kParent].socket(3, 900);  // instead of the pipe
  EXPECT_EQ(evidence.of_stall().id, "external-wait");
}

TEST(StallCauses, NameAPoolThatHasLostItsHelper) {
  CauseEvidence evidence;
  evidence.proc.process(kParent).thread(kParent).sleeps();
  EXPECT_EQ(evidence.of_stall().id, "unknown");
  evidence.lost_helper = kParent;
  const HangCause cause = evidence.of_stall();
  EXPECT_EQ(cause.id, "pool-helper-lost");
  EXPECT_NE(cause.explanation.find("process " + std::to_string(kParent)), std::string::npos) << cause.explanation;
  EXPECT_NE(cause.fix.find("unpickled"), std::string::npos) << cause.fix;
}

TEST(StallCauses, ExplainWhyAThreadIsLate) {
  CauseEvidence evidence;
  TreeThread& thread = evidence.proc.process(kParent).thread(kParent).sleeps();
  evidence.proc.process(kChild, kParent).socket(3, 900).thread(kChild).reads(3);
  evidence.late = kParent;
  HangCause cause = evidence.of_late();
  EXPECT_EQ(cause.id, "unknown") << "the other one waits for the outside";
  EXPECT_NE(cause.explanation.find("which may end by itself"), std::string::npos) << cause.explanation;
  EXPECT_EQ(cause.fix, "look at the line it is at, or give it more time");
  evidence.late = kThird;
  EXPECT_EQ(evidence.of_late().explanation, "the thread is not there any more");
  evidence.late = kChild;
  EXPECT_EQ(evidence.of_late().id, "external-wait");
  evidence.late = kParent;
  thread.state = 'T';
  cause = evidence.of_late();
  EXPECT_EQ(cause.id, "stopped");
  EXPECT_EQ(cause.fix, "kill -CONT " + std::to_string(kParent));
}

}  // namespace
}  // namespace mprun
