// mprun report: what happened in a run, as a text on stdout, as a page or as files for other tools.
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>

#include "commands.h"
#include "record/atomic_file.h"
#include "record/run_details.h"
#include "report/run_page.h"
#include "report/run_report.h"

namespace mprun {

int report(const CommandLine& line) {
  const auto run = read_run(line.run_dir);
  if (!run) return report_error(run.error());
  struct File {
    const char* option;
    const std::string& path;
    std::function<std::string()> text;
  };
  const std::array files{
      File{"--html", line.html, [&run] { return run_page(*run, read_details(*run), built_in_page_parts()); }},
      File{"--trace", line.trace, [&run] { return run_trace(*run); }},
      File{"--junit", line.junit, [&run] { return run_junit(*run); }},
  };
  bool in_files = false;
  for (const File& file : files) {
    if (file.path.empty()) continue;
    in_files = true;
    if (auto done = write_for_option(file.option, file.path, file.text()); !done) return report_error(done.error());
  }
  if (in_files) return 0;
  const auto printed = print_text(run_text(*run), "the report");
  return printed ? 0 : report_error(printed.error());
}

}  // namespace mprun
