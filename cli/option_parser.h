// OptionParser: reads options into a CommandLine. Made for one command line; its parts may be read one after the other.
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

  /// Whether words end the options, as they do from the start, or are refused.
  void stop_at_words(bool stop) { app_.prefix_command(stop); }
  /// Reads options; what comes with it is told by `remaining`. Empty: go on; else the exit that follows.
  [[nodiscard]] std::optional<EarlyExit> parse(std::vector<std::string> args);
  /// Of the last `parse`: from the first word on that is no option.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_.remaining(); }
  /// Of the last `parse`, which has read all: the options that set no field, by their long names ("--quiet").
  [[nodiscard]] std::vector<std::string> given() const;
  /// Once all are read: puts what sets a spec field into the layer.
  [[nodiscard]] std::optional<EarlyExit> apply();

  CommandLine line;

 private:
  void define();

  CLI::App app_{"mprun"};
  std::vector<std::string> fields_;  ///< of each option that sets a field
  std::vector<std::string> sets_;
  std::string debug_;
};

/// The layer runs a script or a function of it with these arguments.
void apply_script(const std::string& target, const std::vector<std::string>& args, CommandLine* line);

/// For a command line that cannot be meant so.
[[nodiscard]] EarlyExit wrong(const std::string& message);

}  // namespace mprun
