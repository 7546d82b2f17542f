// Which process handles the signals that it catches, and which threads such a handler may let continue.
#include "watch/sample/signal_handlers.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "fake_proc.h"
#include "python_program.h"

namespace mprun {
namespace {

SignalHandlers handlers_of(ProcSource* proc, pid_t pid) {
  return signal_handlers(proc, pid, parse_maps(proc->read(std::to_string(pid) + "/maps").value_or("")));
}

TEST(SignalHandlers, StandInTheMemoryOfTheLibrary) {
  auto input = make_pipe();
  auto output = make_pipe();
  ASSERT_TRUE(input && output);
  SpawnPlan plan;
  plan.argv = {"/bin/sh", "-c", "trap 'echo heard' TERM; trap '' HUP; echo ready; read line"};
  plan.env = {"LD_PRELOAD=" MPRUN_PRELOAD_LIBRARY};
  plan.fds = {{input->read.get(), 0}, {output->write.get(), 1}, {2, 2}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0) << failure.stage;
  output->write.reset();
  char c = 0;
  while (read(output->read.get(), &c, 1) == 1 && c != '\n') {
  }

  const auto proc = live_proc();
  const SignalHandlers handlers = handlers_of(proc.get(), pid);
  EXPECT_EQ(handlers.at(SIGTERM).module, std::filesystem::canonical("/bin/sh").string());
  EXPECT_EQ(handlers.at(SIGTERM).installations, 1U);
  EXPECT_EQ(handlers.at(SIGHUP).module, "") << "it is ignored";
  EXPECT_EQ(handlers.at(SIGUSR1).module, "");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(SignalHandlers, AreNotKnownWithoutTheLibrary) {
  FakeProc proc;
  proc.process(10).catches(SIGTERM).thread(10);
  EXPECT_EQ(handlers_of(&proc, 10).at(SIGTERM).address, 0U);
  proc.processes[10].map("r--p", 7, "/usr/lib/mprun/libmprun_preload.so");
  EXPECT_EQ(handlers_of(&proc, 10).at(SIGTERM).address, 0U) << "its memory cannot be read";
}

TEST(SignalHandlers, OfRubysOwnTimerAreKnownAnyway) {
  FakeProc proc;
  proc.process(10).map("r-xp", 7, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2").thread(10);
  const SignalHandlers handlers = handlers_of(&proc, 10);
  const auto none = [](std::uint64_t) { return std::string(); };
  EXPECT_TRUE(releases_no_thread(SIGVTALRM, handlers.at(SIGVTALRM), none));
  EXPECT_FALSE(releases_no_thread(SIGTERM, handlers.at(SIGTERM), none));
}

TEST(SignalHandlers, OfSomeProgramsAreAllTheirOwn) {
  EXPECT_TRUE(is_self_contained("/usr/bin/sort"));
  EXPECT_FALSE(is_self_contained("/usr/bin/sorted"));
  EXPECT_FALSE(is_self_contained("/home/user/bin/sort")) << "it may be another program";
  EXPECT_FALSE(is_self_contained("/usr/bin/python3.11"));
}

// `function`: the one found at the handler's address.
bool is_tame(int signal, const char* module, const char* function = "") {
  return releases_no_thread(signal, {module, 0x1000, 0, 0}, [function](std::uint64_t) { return function; });
}

TEST(SignalHandlers, ReleaseNoThreadWhereTheyAreKnown) {
  const char* const readline = "/usr/lib/python3.11/lib-dynload/readline.cpython-311-x86_64-linux-gnu.so";
  EXPECT_TRUE(is_tame(SIGWINCH, readline));
  EXPECT_FALSE(is_tame(SIGUSR1, readline));
  const char* const torch = "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13";
  EXPECT_TRUE(is_tame(SIGTERM, torch));
  EXPECT_FALSE(is_tame(SIGUSR1, torch));
  EXPECT_TRUE(is_tame(SIGHUP, "/usr/lib/libucs.so.0"));
  EXPECT_TRUE(is_tame(SIGWINCH, "/usr/lib/libreadline.so.8.2"));
  EXPECT_FALSE(is_tame(SIGTERM, "/usr/lib/libreadline.so.8.2"));
  EXPECT_TRUE(is_tame(SIGQUIT, "/usr/lib/x86_64-linux-gnu/libgfortran.so.5.0.0"));
  EXPECT_TRUE(is_tame(SIGHUP, "/usr/bin/sort"));
  EXPECT_FALSE(is_tame(SIGHUP, "/usr/bin/sorted"));
  EXPECT_TRUE(is_tame(SIGINT, "/usr/lib/git-core/git"));
  EXPECT_FALSE(is_tame(SIGINT, "/home/user/git"));
  EXPECT_TRUE(is_tame(SIGTERM, "/usr/bin/node", "node::SignalExit(int, siginfo_t*, void*) (node)"));
  EXPECT_FALSE(is_tame(SIGTERM, "/usr/bin/node", "uv__signal_handler (node)"));
  EXPECT_FALSE(is_tame(SIGTERM, "/usr/bin/node"));
  EXPECT_FALSE(is_tame(SIGTERM, ""));
  EXPECT_TRUE(is_tame(SIGVTALRM, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"));
  EXPECT_FALSE(is_tame(SIGTERM, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"));
}

TEST(SignalHandlers, OfRubyReleaseNoThreadUnlessTheProgramTrapsTheSignal) {
  const auto none = [](std::uint64_t) { return std::string(); };
  const std::string ruby = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2";
  EXPECT_TRUE(releases_no_thread(SIGTERM, {ruby, 0x1000, 1, 0}, none));
  EXPECT_FALSE(releases_no_thread(SIGTERM, {ruby, 0x1000, 2, 0}, none));
}

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

// pcntl_signal() installs the same function again.
TEST(SignalHandlers, OfPhpReleaseNoThreadUnlessTheScriptHandlesTheSignal) {
  constexpr std::uint64_t kAll = bit_of(SIGHUP) | bit_of(SIGINT) | bit_of(SIGQUIT) | bit_of(SIGTERM) | bit_of(SIGUSR1) |
                                 bit_of(SIGUSR2) | bit_of(SIGPROF);
  const auto is_tame = [](int signal, std::uint32_t installations, std::uint64_t signals) {
    return releases_no_thread(signal, {"/usr/bin/php8.2", 0x1000, installations, signals},
                              [](std::uint64_t) { return std::string(); });
  };
  EXPECT_TRUE(is_tame(SIGTERM, 1, kAll));
  EXPECT_FALSE(is_tame(SIGTERM, 2, kAll));
  EXPECT_TRUE(is_tame(SIGPROF, 2, kAll));
  EXPECT_FALSE(is_tame(SIGPROF, 3, kAll));
  EXPECT_FALSE(is_tame(SIGALRM, 1, kAll | bit_of(SIGALRM))) << "only a script handles it";
  EXPECT_FALSE(is_tame(SIGTERM, 1, bit_of(SIGTERM))) << "the script's own, in a PHP that has none from the start";
}

TEST(SignalHandlers, OfInterpretersAndRelaysAreKnown) {
  const auto is_first = [](int signal, const char* module, std::uint32_t installations) {
    return releases_no_thread(signal, {module, 0x1000, installations, 0}, [](std::uint64_t) { return std::string(); });
  };
  EXPECT_TRUE(is_first(SIGINT, "/usr/bin/lua5.4", 1));
  EXPECT_FALSE(is_first(SIGTERM, "/usr/bin/lua5.4", 1));
  EXPECT_FALSE(is_first(SIGINT, "/home/user/lua5.4", 1));
  EXPECT_TRUE(is_first(SIGTERM, "/usr/lib/x86_64-linux-gnu/libexpect.so.5.45.4", 1));
  EXPECT_FALSE(is_first(SIGTERM, "/usr/lib/x86_64-linux-gnu/libexpect.so.5.45.4", 2));
  EXPECT_TRUE(is_tame(SIGPWR, "/usr/lib/x86_64-linux-gnu/libgc.so.1.5.1"));
  EXPECT_FALSE(is_tame(SIGINT, "/usr/lib/x86_64-linux-gnu/libgc.so.1.5.1"));
  EXPECT_TRUE(is_tame(SIGTERM, "/usr/bin/socat"));
}

TEST(SignalHandlers, OfXargsStartMorePrograms) {
  EXPECT_FALSE(is_tame(SIGUSR1, "/usr/bin/xargs"));
  EXPECT_TRUE(is_for_programs_at_work(SIGUSR1, {"/usr/bin/xargs", 0x1000, 1, 0}));
  EXPECT_FALSE(is_for_programs_at_work(SIGTERM, {"/usr/bin/xargs", 0x1000, 1, 0}));
  EXPECT_FALSE(is_for_programs_at_work(SIGUSR1, {"/usr/bin/dash", 0x1000, 1, 0}));
}

TEST(SignalHandlers, KnowPython) {
  for (const char* const program :
       {"/usr/bin/python3.11", "/home/user/venv/bin/python", "/usr/local/bin/python3.13td"}) {
    EXPECT_TRUE(is_python_module(program)) << program;
  }
  EXPECT_FALSE(is_python_module("/home/user/python-tool"));
  EXPECT_FALSE(is_python_module("/home/user/python3-server"));
  EXPECT_TRUE(is_python_module("/opt/lib/libpython3.12.so.1.0"));
  EXPECT_FALSE(is_python_module("/usr/lib/libtorch_python.so.1.13"));
  EXPECT_FALSE(is_python_module(""));
}

}  // namespace
}  // namespace mprun
