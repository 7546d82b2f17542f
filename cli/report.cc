// mprun report: what happened in a run, as a text on stdout or as files for other tools.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.h"
#include "record/atomic_file.h"
#include "report/run_report.h"

namespace mprun {
namespace {

Result<void> write_for_others(const std::string& path, const std::string& text, const char* option) {
  if (path.empty()) return {};
  const auto written = write_atomically(path, text);
  if (written) return {};
  const std::string& message = written.error().message;
  return usage_error(std::string("report: ") + option + ": " + message.substr(0, message.find(';')));
}

}  // namespace

int report(const CommandLine& line) {
  const auto run = read_run(line.run_dir);
  if (!run) return report_error(run.error());
  const bool for_others = !line.trace.empty() || !line.junit.empty();
  if (!line.trace.empty()) {
    if (auto done = write_for_others(line.trace, run_trace(*run), "--trace"); !done) return report_error(done.error());
  }
  if (!line.junit.empty()) {
    if (auto done = write_for_others(line.junit, run_junit(*run), "--junit"); !done) return report_error(done.error());
  }
  if (for_others) return 0;
  if (std::fputs(run_text(*run).c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return report_error(internal_error("the report could not be written: " + std::string(std::strerror(errno))));
  }
  return 0;
}

}  // namespace mprun
