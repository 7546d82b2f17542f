// The words that mprun knows besides specs, scripts and programs: doctor, init, inspect, merge, report, resume, submit,
// watch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace mprun {

class OptionParser;

/// A command line `mprun OPTIONS WORD REST -- PROGRAM`.
struct Words {
  std::vector<std::string> options;
  std::string word;
  std::vector<std::string> rest;                    ///< with options, too
  std::optional<std::vector<std::string>> program;  ///< empty: there is no --
};

[[nodiscard]] bool is_subcommand(const std::string& word);
/// Reads everything into the parser's line. Empty: go on; else the exit that follows.
[[nodiscard]] std::optional<EarlyExit> parse_subcommand(const Words& words, OptionParser* parser);

/// A spec in a file, or on standard input.
[[nodiscard]] bool is_spec(const std::string& target);
/// `mprun OPTIONS run REST`, where REST names `what`, possibly after options: that becomes the word.
[[nodiscard]] std::optional<EarlyExit> step_over_word(const std::string& what, OptionParser* parser, Words* words);

}  // namespace mprun
