#include "options.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "job/option_places.h"
#include "option_parser.h"
#include "subcommands.h"

namespace mprun {
namespace {

// A file of that name (spec, script or program) has precedence over a subcommand; a directory never has.
bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error);
}

std::optional<EarlyExit> parse_words(const std::vector<std::string>& args, OptionParser* parser) {
  CommandLine& line = parser->line;
  // Words after -- belong to a program; words after a script belong to the script.
  const auto dashes = std::find(args.begin(), args.end(), "--");
  Words words;
  if (dashes != args.end()) words.program.emplace(dashes + 1, args.end());
  words.options.assign(args.begin(), dashes);
  if (auto exit = parser->parse(words.options)) return exit;
  words.rest = parser->remaining();
  if (words.rest.empty()) {
    if (!words.program) return wrong("nothing to run: name a JOB.json, a SCRIPT.py or -- COMMAND");
    if (words.program->empty()) return wrong("no COMMAND after --");
    line.subcommand = Subcommand::kProgram;
    line.program = *words.program;
    return parser->apply();
  }
  words.options.resize(words.options.size() - words.rest.size());
  words.word = words.rest.front();
  words.rest.erase(words.rest.begin());
  if (words.word.size() > 1 && words.word.front() == '-') return wrong("unknown option " + words.word);
  if (is_subcommand(words.word) && !is_file(words.word)) return parse_subcommand(words, parser);
  if ((words.word == "run" || words.word == "check") && !is_file(words.word)) {
    if (words.word == "check") line.subcommand = Subcommand::kCheck;
    if (auto exit = step_over_word("JOB.json", parser, &words)) return exit;
  }
  if (is_spec(words.word)) {
    line.spec_path = words.word;
    words.options.insert(words.options.end(), words.rest.begin(), words.rest.end());
    parser->stop_at_words(false);
    if (auto exit = parser->parse(words.options)) return exit;
    if (words.program) return wrong("a COMMAND after -- and a job spec cannot be combined");
    return parser->apply();
  }
  if (auto exit = parser->parse(words.options)) return exit;
  if (auto exit = parser->apply()) return exit;
  words.rest.insert(words.rest.end(), dashes, args.end());
  apply_script(words.word, words.rest, &line);
  return std::nullopt;
}

Place place_of(const CommandLine& line) {
  switch (line.subcommand) {
    case Subcommand::kRun:
      return line.resume ? kRunWithResumePlace : kRunPlace;
    case Subcommand::kResume:
      return kResumePlace;
    case Subcommand::kCheck:
      return kCheckPlace;
    case Subcommand::kProgram:
      return kProgramPlace;
    case Subcommand::kDoctor:
      if (!line.program.empty()) return kDoctorProgramPlace;
      return line.layer.value.contains("script") ? kDoctorScriptPlace : kDoctorPlace;
    case Subcommand::kInspect:
      return kInspectPlace;
    case Subcommand::kReport:
      return kReportPlace;
    case Subcommand::kInit:
      return kInitPlace;
    case Subcommand::kMerge:
      return kMergePlace;
    case Subcommand::kSubmit:
      return kSubmitPlace;
    case Subcommand::kExplain:
      return kExplainPlace;
    case Subcommand::kWatch:
      return kWatchPlace;
  }
  return kRunPlace;
}

// resolve() checks whether a field has an effect on the job's kind.
std::optional<EarlyExit> refuse_without_effect(const OptionParser& parser) {
  const Place here = place_of(parser.line);
  std::vector<std::pair<std::string, std::string>> given;  // name or pointer, and the option as it was typed
  for (const std::string& name : parser.given()) given.emplace_back(name, name);
  given.insert(given.end(), parser.line.layer.origins.begin(), parser.line.layer.origins.end());
  for (const auto& [option, typed] : given) {
    const Places places = places_of(option);
    if ((places & here) == 0) return wrong(typed + " " + only_valid_with(places & ~kKindPlaces));
  }
  return std::nullopt;
}

}  // namespace

ParsedCommandLine parse_command_line(const std::vector<std::string>& args, const std::string& current_directory) {
  OptionParser parser(current_directory);
  if (auto exit = parse_words(args, &parser)) return *exit;
  if (auto exit = refuse_without_effect(parser)) return *exit;
  return std::move(parser.line);
}

}  // namespace mprun
