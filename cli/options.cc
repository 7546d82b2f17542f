#include "options.h"

#include <algorithm>
#include <utility>

#include "job/option_places.h"
#include "option_parser.h"

namespace mprun {
namespace {

/// The words before -- and, if there is one, those after it, which belong to a program.
struct Arguments {
  std::vector<std::string> words;
  std::optional<std::vector<std::string>> program;
};

Arguments split(const std::vector<std::string>& args) {
  const auto dashes = std::find(args.begin(), args.end(), "--");
  Arguments given;
  given.words.assign(args.begin(), dashes);
  if (dashes != args.end()) given.program.emplace(dashes + 1, args.end());
  return given;
}

std::optional<EarlyExit> use_program(const Arguments& given, OptionParser* parser) {
  if (given.program->empty()) return wrong("no COMMAND after --");
  parser->line.program = *given.program;
  return parser->apply();
}

// Words after a script belong to the script, those after -- too.
std::optional<EarlyExit> use_script(const Arguments& given, std::vector<std::string> rest, OptionParser* parser) {
  if (auto exit = parser->apply()) return exit;
  const std::string script = rest.front();
  rest.erase(rest.begin());
  if (given.program) {
    rest.emplace_back("--");
    rest.insert(rest.end(), given.program->begin(), given.program->end());
  }
  apply_script(script, rest, &parser->line);
  return std::nullopt;
}

// What follows a spec are options.
std::optional<EarlyExit> use_spec(Arguments given, const std::vector<std::string>& rest, OptionParser* parser) {
  parser->line.spec_path = rest.front();
  given.words.erase(given.words.end() - static_cast<std::ptrdiff_t>(rest.size()));
  parser->stop_at_words(false);
  if (auto exit = parser->parse(given.words)) return exit;
  if (given.program) return wrong("a COMMAND after -- and a job spec cannot be combined");
  return parser->apply();
}

std::optional<EarlyExit> use_doctor(const Arguments& given, const std::vector<std::string>& rest,
                                    OptionParser* parser) {
  if (rest.empty()) return given.program ? use_program(given, parser) : parser->apply();
  if (!rest.front().ends_with(".py")) {
    return wrong("doctor: found " + rest.front() + ", allowed: nothing, a SCRIPT.py, or -- COMMAND [ARGS...]");
  }
  return use_script(given, rest, parser);
}

std::optional<EarlyExit> use_word(const SubcommandEntry& entry, const Arguments& given,
                                  const std::vector<std::string>& rest, OptionParser* parser) {
  if (given.program || !rest.empty()) {
    return wrong(std::string(entry.name) + ": found " + (rest.empty() ? "--" : rest.front()) +
                 ", allowed: options and " + entry.word);
  }
  if (auto exit = parser->apply()) return exit;
  parser->line.continues_run = entry.subcommand == Subcommand::kResume;
  return check_subcommand(&parser->line);
}

std::optional<EarlyExit> parse_words(const Arguments& given, OptionParser* parser) {
  if (!given.words.empty() || !given.program) {
    if (auto exit = parser->parse(given.words)) return exit;
  }
  const SubcommandEntry* entry = parser->subcommand();
  if (entry != nullptr) parser->line.subcommand = entry->subcommand;
  const std::vector<std::string> rest = parser->remaining();
  if (!rest.empty() && rest.front().size() > 1 && rest.front().front() == '-') {
    return wrong("unknown option " + rest.front());
  }
  if (entry != nullptr && entry->word != nullptr) return use_word(*entry, given, rest, parser);
  if (parser->line.subcommand == Subcommand::kDoctor) return use_doctor(given, rest, parser);
  if (!rest.empty()) return is_spec(rest.front()) ? use_spec(given, rest, parser) : use_script(given, rest, parser);
  if (entry != nullptr) return wrong("`mprun " + std::string(entry->name) + "` needs a JOB.json");
  if (!given.program) return wrong("nothing to run: name a JOB.json, a SCRIPT.py or -- COMMAND");
  parser->line.subcommand = Subcommand::kProgram;
  return use_program(given, parser);
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
    case Subcommand::kHelp:
      return kHelpPlace;
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
  if (auto exit = parse_words(split(args), &parser)) return *exit;
  if (auto exit = refuse_without_effect(parser)) return *exit;
  return std::move(parser.line);
}

}  // namespace mprun
