// The command line: what to run, and the layer of spec fields it sets. Parsed once by main.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/job_request.h"

namespace mprun {

enum class Subcommand {
  kRun,
  kResume,
  kCheck,
  kProgram,
  kDoctor,
  kInspect,
  kReport,
  kInit,
  kMerge,
  kSubmit,
  kExplain,
  kWatch,
  kHelp
};

/// Of `mprun submit`.
struct Submission {
  int nodes = 0;  ///< 0: not given
  std::string partition, time, account;
  std::vector<std::string> sbatch_options;
  bool dry_run = false;
};

/// --wait: a flag of `mprun submit`; with seconds, of `mprun inspect`.
struct WaitOption {
  bool given = false;
  std::optional<double> seconds;
};

struct CommandLine : JobRequest {
  Subcommand subcommand = Subcommand::kRun;
  bool all = false;         ///< of `mprun inspect`: every tree, and no `pids`
  std::string record;       ///< of `mprun inspect`: a file for what it has read
  std::string script;       ///< of `mprun init`: SCRIPT.py[:FUNCTION]
  std::string cause;        ///< of `mprun explain`; empty: all
  std::string topic;        ///< of `mprun help`; empty: all
  std::string html, trace;  ///< of `mprun report`: files to be written
  Submission submission;    ///< of `mprun submit`
  WaitOption wait;          ///< of `mprun submit` and `mprun inspect`
  bool json = false, dot = false;
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
