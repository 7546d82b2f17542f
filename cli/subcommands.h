// The subcommands of mprun, and the word that each of them takes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace mprun {

struct SubcommandEntry {
  const char* name;
  Subcommand subcommand;
  const char* word = nullptr;                  ///< what it takes, in help and errors; null: all that follows it
  std::string CommandLine::*target = nullptr;  ///< where its word goes; null: `pids`
  bool required = true;                        ///< that there is a word
};

inline constexpr std::array kSubcommands = {
    SubcommandEntry{"run", Subcommand::kRun},
    SubcommandEntry{"check", Subcommand::kCheck},
    SubcommandEntry{"doctor", Subcommand::kDoctor},
    SubcommandEntry{"explain", Subcommand::kExplain, "ID", &CommandLine::cause, false},
    SubcommandEntry{"help", Subcommand::kHelp, "TOPIC", &CommandLine::topic, false},
    SubcommandEntry{"init", Subcommand::kInit, "SCRIPT.py", &CommandLine::script},
    SubcommandEntry{"inspect", Subcommand::kInspect, "PID", nullptr, false},
    SubcommandEntry{"merge", Subcommand::kMerge, "RUN_DIR", &CommandLine::run_dir},
    SubcommandEntry{"report", Subcommand::kReport, "RUN_DIR", &CommandLine::run_dir},
    SubcommandEntry{"resume", Subcommand::kResume, "RUN_DIR", &CommandLine::run_dir},
    SubcommandEntry{"submit", Subcommand::kSubmit, "JOB.json", &CommandLine::spec_path},
    SubcommandEntry{"watch", Subcommand::kWatch, "PID"},
};

/// Why the command line of a subcommand that was read whole is wrong; nullopt: it is not.
[[nodiscard]] std::optional<EarlyExit> check_subcommand(CommandLine* line);

/// A spec in a file, or on standard input.
[[nodiscard]] bool is_spec(const std::string& target);

}  // namespace mprun
