#include "watch/stacks/python_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "procfs/proc_source.h"
#include "python_program.h"

namespace mprun {
namespace {

/// What `read` finds in a program of this mode.
template <typename Read>
auto read_from(const std::string& mode, const Read& read) {
  PythonProgram program(mode);
  EXPECT_EQ(program.report().at("pid"), program.pid());
  const auto proc = live_proc();
  const auto maps = parse_maps(proc->read(std::to_string(program.pid()) + "/maps").value_or(""));
  return read(proc.get(), program.pid(), maps);
}

std::optional<std::uint64_t> handled_by(const std::string& mode) { return read_from(mode, signals_handled_in_python); }

TEST(PythonSignals, AreHandledByFunctionsOfTheProgram) {
  EXPECT_EQ(handled_by("signals_handled"), 1U << (SIGINT - 1) | 1U << (SIGUSR1 - 1));
  EXPECT_EQ(handled_by("signal_wakes_loop"), 1U << (SIGINT - 1));
}

TEST(PythonSignals, AreNotHandledByWhatPythonItselfDoes) {
  EXPECT_EQ(handled_by("interrupt_raises"), 0U);
  EXPECT_EQ(handled_by("interrupt_cancels"), 0U);
  EXPECT_EQ(handled_by("signal_prints_stacks"), 0U);
}

TEST(PythonSignals, FreeALockByAFunctionThatTheirHandlerCalls) {
  EXPECT_TRUE(read_from("signal_frees_lock", handlers_may_free_locks));
  EXPECT_FALSE(read_from("signals_handled", handlers_may_free_locks));
  EXPECT_FALSE(read_from("interrupt_raises", handlers_may_free_locks));
}

TEST(PythonSignals, OfChildrenMayBeForWorkersOfTorchAlone) {
  EXPECT_TRUE(read_from("workers_watched", only_watches_workers_of_torch));
  EXPECT_FALSE(read_from("workers_watched_too", only_watches_workers_of_torch)) << "another handler runs too";
  EXPECT_FALSE(read_from("signals_handled", only_watches_workers_of_torch));
}

}  // namespace
}  // namespace mprun
