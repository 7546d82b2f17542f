// OptionParser: reads options, a subcommand and the word that it takes into a CommandLine.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "subcommands.h"

namespace mprun {

class OptionParser {
 public:
  explicit OptionParser(const std::string& current_directory);

  /// Whether words end the options, as is the default, or are refused.
  void stop_at_words(bool stop) { app_.prefix_command(stop); }
  /// Reads what stands before --. Empty: go on; else the exit that follows. Not needed where nothing stands there: to
  /// define all options takes half a millisecond.
  [[nodiscard]] std::optional<EarlyExit> parse(std::vector<std::string> args);
  /// After the last `parse`: what was typed; null: no subcommand.
  [[nodiscard]] const SubcommandEntry* subcommand() const;
  /// After the last `parse`: everything from the first word on that the subcommand does not take.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_.remaining(); }
  /// After the last `parse`: the options that set no field, by their long names ("--quiet").
  [[nodiscard]] std::vector<std::string> given() const;
  /// Call it once all are read: puts what sets a spec field into the layer.
  [[nodiscard]] std::optional<EarlyExit> apply();

  CommandLine line;

 private:
  void define_options();
  void define_subcommands();
  /// An empty text, mostly a shell's variable that is not set, must not mean the default.
  [[nodiscard]] std::optional<EarlyExit> refuse_empty() const;

  CLI::App app_{"mprun"};
  std::vector<std::string> fields_;  ///< of each option that sets a field
  std::vector<std::string> sets_;
  std::string debug_, log_format_, wait_;
  CLI::Option* inspect_wait_ = nullptr;  ///< takes seconds, as --wait of the others does not
};

/// Makes the layer run a script, or a function of it, with these arguments.
void apply_script(const std::string& target, const std::vector<std::string>& args, CommandLine* line);

/// For an invalid command line.
[[nodiscard]] EarlyExit wrong(const std::string& message);

}  // namespace mprun
