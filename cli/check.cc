// mprun check: what would run, and why.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "job/inputs.h"

namespace mprun {

int check_job(const Resolved& resolved) {
  auto inputs = open_inputs(resolved.spec);
  if (!inputs) return report_error(inputs.error());
  std::size_t widest = 0;
  for (const Decision& decision : resolved.decisions) widest = std::max(widest, decision.field.size());
  for (const Decision& decision : resolved.decisions) {
    std::printf("%-*s  %s  (%s)\n", static_cast<int>(widest), decision.field.c_str(), decision.value.c_str(),
                decision.reason.c_str());
  }
  const auto total = (*inputs)->total();
  const char* unit = resolved.spec.kind == JobKind::kRanks ? "ranks" : "tasks";
  std::printf("%-*s  %s\n", static_cast<int>(widest), unit, total ? std::to_string(*total).c_str() : "unknown");
  std::string first;
  if (resolved.spec.kind != JobKind::kRanks && total && (*inputs)->pull(&first) == InputSource::Pull::kItem) {
    std::printf("%-*s  %.200s\n", static_cast<int>(widest), "first input", first.c_str());
  }
  const auto printed = print_text("nothing was launched\n", "the plan");
  return printed ? 0 : report_error(printed.error());
}

}  // namespace mprun
