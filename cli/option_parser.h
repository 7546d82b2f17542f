// OptionParser: reads options into a CommandLine. Made for one command line, whose parts may be read one after the
// other.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace mprun {

class OptionParser {
 public:
  explicit OptionParser(const std::string& current_directory);

  /// Whether words end the options, as is the default, or are refused.
  void stop_at_words(bool stop) { app_.prefix_command(stop); }
  /// Reads options; `remaining` returns what follows them. Empty: go on; else the exit that follows.
  [[nodiscard]] std::optional<EarlyExit> parse(std::vector<std::string> args);
  /// After the last `parse`: everything from the first word that is not an option.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_.remaining(); }
  /// After the last `parse`, which has read all: the options that set no field, by their long names ("--quiet").
  [[nodiscard]] std::vector<std::string> given() const;
  /// Call it once all are read: puts what sets a spec field into the layer.
  [[nodiscard]] std::optional<EarlyExit> apply();

  CommandLine line;

 private:
  void define();

  CLI::App app_{"mprun"};
  std::vector<std::string> fields_;  ///< of each option that sets a field
  std::vector<std::string> sets_;
  std::string debug_, wait_;
};

/// Makes the layer run a script, or a function of it, with these arguments.
void apply_script(const std::string& target, const std::vector<std::string>& args, CommandLine* line);

/// For an invalid command line.
[[nodiscard]] EarlyExit wrong(const std::string& message);

}  // namespace mprun
