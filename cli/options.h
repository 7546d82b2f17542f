// The command line: what to run, and the layer of spec fields it sets. Parsed once by main.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "json/document.h"

namespace mprun {

enum class Subcommand { kRun, kResume, kCheck, kProgram, kDoctor, kInspect, kReport, kInit, kMerge, kSubmit, kExplain };

/// Of `mprun submit`.
struct Submission {
  int nodes = 0;  ///< 0: not given
  std::string partition, time, account;
  std::vector<std::string> sbatch_options;
  bool wait = false, dry_run = false;
};

struct CommandLine {
  Subcommand subcommand = Subcommand::kRun;
  std::string spec_path;             ///< JOB.json, "-" for standard input; empty: the layer has the script and the rest
  std::vector<std::string> program;  ///< of `mprun -- COMMAND` and `mprun doctor -- COMMAND`
  pid_t pid = 0;                     ///< of `mprun inspect`
  std::string record;                ///< of `mprun inspect`: a file for what it has read
  Document layer;                    ///< what the options set
  std::string run_dir;               ///< of `mprun resume`, `mprun report` and `mprun merge`
  std::string script;                ///< of `mprun init`: SCRIPT.py[:FUNCTION]
  std::string cause;                 ///< of `mprun explain`; empty: all
  std::string html, trace, junit;    ///< of `mprun report`, `junit` of a job, too: files to be written
  Submission submission;             ///< of `mprun submit`
  bool resume = false;               ///< continue the run in the run directory if there is one
  bool retry_failed = false, accept_changes = false;  ///< of a resumed run
  bool quiet = false, verbose = false, explain = false, summary_json = false, json = false, dot = false;
  bool log_events = false;  ///< -d events
};

/// What ends mprun before it begins: --help, --version, or an invalid command line.
struct EarlyExit {
  int exit_code = 0;
  std::string text;  ///< for stdout if the code is 0, else for stderr
};

using ParsedCommandLine = std::variant<CommandLine, EarlyExit>;

[[nodiscard]] ParsedCommandLine parse_command_line(const std::vector<std::string>& args,
                                                   const std::string& current_directory);

}  // namespace mprun
