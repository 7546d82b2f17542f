// What a shell waits for. That bash waits for a command, only its stack tells: bash_beside_monitor in tests/hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::UnorderedElementsAre;

/// 10 waits for any child: 11 sleeps, and 12, which was started later, waits for a lock that no thread can release.
FakeProc shell_with_two_children(const std::string& program) {
  FakeProc proc;
  TreeProcess& shell = proc.process(10);
  shell.exe = program;
  shell.catches(SIGCHLD).thread(10).waits_for_child(-1);
  proc.process(11, 10).thread(11).sleeps();
  proc.process(12, 10).thread(12).waits_on(0x5000);
  return proc;
}

TEST(WaitOfShell, IsForTheYoungestChild) {
  FakeProc proc = shell_with_two_children("/usr/bin/dash");
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{12, 0}));
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[11].started = 7;
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}))
      << "it was started later, though its number is lower";
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(WaitOfShell, IsForAnyChildIfTheYoungestIsNotKnown) {
  FakeProc proc = shell_with_two_children("/usr/bin/dash");
  proc.process(32000, 10).thread(32000).waits_on(0x5000);
  EXPECT_EQ(judged(&proc).waits.at(10).wakers.size(), 3U) << "started in the same moment, and numbers may begin again";
  proc.processes[32000].started = 1;
  EXPECT_EQ(judged(&proc).waits.at(10).wakers.size(), 1U);
}

TEST(WaitOfShell, IsForAnyChildWhenOneHasJustEnded) {
  FakeProc proc = shell_with_two_children("/usr/bin/dash");
  proc.process(13, 10).thread(13).state = 'Z';
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "that was the command";
}

TEST(WaitOfShell, IsForAnyChildUnderJobControl) {
  FakeProc proc = shell_with_two_children("/usr/bin/dash");
  proc.processes[12].group = 12;
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "fg may wait for the older one";
}

TEST(WaitOfShell, IsForAnyChildOfProgramsThatAreNotKnown) {
  for (const char* program : {"/usr/bin/zsh", "/usr/bin/make"}) {
    FakeProc proc = shell_with_two_children(program);
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << program;
  }
  FakeProc proc = shell_with_two_children("/usr/bin/bash");
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it may run its builtin `wait`: its stack does not show that it does not";
}

TEST(WaitOfShell, ForOneChildIsNotEndedByItsHandlerForOthers) {
  FakeProc proc = shell_with_two_children("/usr/bin/dash");
  proc.processes[10].threads[10].waits_for_child(12);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[10].exe = "/usr/bin/program";
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

}  // namespace
}  // namespace mprun
