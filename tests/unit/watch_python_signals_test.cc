#include "watch/stacks/python_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "procfs/proc_source.h"
#include "python_program.h"

namespace mprun {
namespace {

std::optional<std::uint64_t> handled_by(const std::string& mode) {
  PythonProgram program(mode);
  EXPECT_EQ(program.report().at("pid"), program.pid());
  const auto proc = live_proc();
  const auto maps = parse_maps(proc->read(std::to_string(program.pid()) + "/maps").value_or(""));
  return signals_handled_in_python(proc.get(), program.pid(), maps);
}

TEST(PythonSignals, AreHandledByFunctionsOfTheProgram) {
  EXPECT_EQ(handled_by("signals_handled"), 1U << (SIGINT - 1) | 1U << (SIGUSR1 - 1));
  EXPECT_EQ(handled_by("signal_wakes_loop"), 1U << (SIGINT - 1));
}

TEST(PythonSignals, AreNotHandledByWhatPythonItselfDoes) {
  EXPECT_EQ(handled_by("interrupt_raises"), 0U);
  EXPECT_EQ(handled_by("interrupt_cancels"), 0U);
  EXPECT_EQ(handled_by("signal_prints_stacks"), 0U);
}

}  // namespace
}  // namespace mprun
