// mprun inspect: looks at a tree of processes, or at all of the machine, as text, JSON or a graph.
#include <unistd.h>

#include <cstring>

#include "base/exit_codes.h"
#include "commands.h"
#include "json/json.h"
#include "procfs/process_table.h"
#include "record/atomic_file.h"
#include "report/hang_report.h"
#include "report/inspect_report.h"

namespace mprun {
namespace {

std::string shown(const CommandLine& line, const Inspection& inspection) {
  if (line.json) return indented(inspect_json(inspection));
  return line.dot ? hang_dot(inspection.hang) : inspect_text(inspection);
}

Result<void> print(const std::string& text) { return print_text(text, "the report"); }

Result<Inspection> look(const CommandLine& line, ProcSource* proc, pid_t pid) {
  return inspect_patiently(proc, pid, from_seconds(line.wait.seconds.value_or(0)));
}

int code_of(const Inspection& inspection) { return is_proved_hang(inspection.hang) ? kExitStuck : kExitOk; }

// A tree that has ended meanwhile, or lets nobody look, is left out.
int inspect_all(const CommandLine& line) {
  const auto proc = live_proc();
  Json reports = Json::array();
  int code = kExitMayNotLook;
  for (const pid_t root : tree_roots(proc.get())) {
    const auto inspection = look(line, proc.get(), root);
    if (!inspection) continue;
    if (code != kExitStuck) code = code_of(*inspection);
    if (line.json) {
      reports.push_back(inspect_json(*inspection));
    } else if (auto printed = print(inspect_line(*inspection)); !printed) {
      return report_error(printed.error());
    }
  }
  if (line.json) {
    if (auto printed = print(indented(reports)); !printed) return report_error(printed.error());
  }
  return code == kExitMayNotLook ? report_error(access_error("inspect: there is no process that may be looked into"))
                                 : code;
}

}  // namespace

int inspect(const CommandLine& line) {
  if (line.all) return inspect_all(line);
  const auto live = live_proc();
  ProcRecorder recorder(live.get());
  const bool records = !line.record.empty();
  const auto inspection = look(line, records ? &recorder : live.get(), line.pids.front());
  if (records) {
    if (auto written = write_for_option("inspect", line.record, recorder.recording()); !written) {
      return report_error(written.error());
    }
  }
  if (!inspection) return report_error(inspection.error());
  if (auto printed = print(shown(line, *inspection)); !printed) return report_error(printed.error());
  return code_of(*inspection);
}

}  // namespace mprun
