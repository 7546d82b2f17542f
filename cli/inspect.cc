// mprun inspect: one look at a tree of processes, as text, JSON or a graph.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.h"
#include "record/atomic_file.h"
#include "report/hang_report.h"
#include "report/inspect_report.h"

namespace mprun {
namespace {

std::string shown(const CommandLine& line, const Inspection& inspection) {
  if (line.json) return indented(inspect_json(inspection));
  return line.dot ? hang_dot(inspection.hang) : inspect_text(inspection);
}

}  // namespace

int inspect(const CommandLine& line) {
  const auto live = live_proc();
  ProcRecorder recorder(live.get());
  const bool records = !line.record.empty();
  const auto inspection = inspect_process(records ? &recorder : live.get(), line.pid);
  if (records) {
    if (auto written = write_for_option("inspect", line.record, recorder.recording()); !written) {
      return report_error(written.error());
    }
  }
  if (!inspection) return report_error(inspection.error());
  if (std::fputs(shown(line, *inspection).c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return report_error(internal_error("the report could not be written: " + std::string(std::strerror(errno))));
  }
  return 0;
}

}  // namespace mprun
