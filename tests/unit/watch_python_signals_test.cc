#include "watch/stacks/python_signals.h"

#include <gtest/gtest.h>

#include "procfs/proc_source.h"
#include "python_program.h"

namespace mprun {
namespace {

bool handles_interrupt(const std::string& mode) {
  PythonProgram program(mode);
  EXPECT_EQ(program.report().at("pid"), program.pid());
  const auto proc = live_proc();
  const auto maps = parse_maps(proc->read(std::to_string(program.pid()) + "/maps").value_or(""));
  return handles_interrupt_itself(proc.get(), program.pid(), maps);
}

TEST(PythonSignals, InterruptsAreHandledByProgramsWithAHandlerOfTheirOwn) {
  EXPECT_TRUE(handles_interrupt("interrupt_handled"));
  EXPECT_TRUE(handles_interrupt("interrupt_wakes_loop"));
  EXPECT_FALSE(handles_interrupt("interrupt_raises"));
  EXPECT_FALSE(handles_interrupt("interrupt_cancels"));
}

}  // namespace
}  // namespace mprun
