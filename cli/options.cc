#include "options.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "option_parser.h"
#include "subcommands.h"

namespace mprun {
namespace {

// A file of that name, spec, script or program, is meant before a subcommand; a directory never.
bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error);
}

std::optional<EarlyExit> parse_words(const std::vector<std::string>& args, OptionParser* parser) {
  CommandLine& line = parser->line;
  // What stands behind -- is a program's; what stands behind a script is the script's.
  const auto dashes = std::find(args.begin(), args.end(), "--");
  Words words;
  if (dashes != args.end()) words.program.emplace(dashes + 1, args.end());
  words.options.assign(args.begin(), dashes);
  if (auto exit = parser->parse(words.options)) return exit;
  words.rest = parser->remaining();
  if (words.rest.empty()) {
    if (!words.program) return wrong("nothing to run: name a JOB.json, a SCRIPT.py or -- COMMAND");
    if (words.program->empty()) return wrong("no COMMAND behind --");
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
    if (words.program) return wrong("a COMMAND behind -- and a job spec do not go together");
    return parser->apply();
  }
  if (auto exit = parser->parse(words.options)) return exit;
  if (auto exit = parser->apply()) return exit;
  words.rest.insert(words.rest.end(), dashes, args.end());
  apply_script(words.word, words.rest, &line);
  return std::nullopt;
}

// Options that the subcommand does not have.
std::optional<EarlyExit> check_meanings(const CommandLine& line) {
  if (line.json && line.subcommand != Subcommand::kDoctor) {
    return wrong("--json has a meaning for mprun doctor and mprun inspect only");
  }
  const bool resumes = line.subcommand == Subcommand::kResume || line.subcommand == Subcommand::kSubmit || line.resume;
  if (line.resume && line.subcommand != Subcommand::kRun) return wrong("--resume has a meaning for a job only");
  if (line.retry_failed && !resumes) return wrong("--retry-failed has a meaning for a run that is resumed only");
  if (line.accept_changes && !resumes) return wrong("--accept-changes has a meaning for a run that is resumed only");
  if (line.dot) return wrong("--dot has a meaning for mprun inspect only");
  const bool is_job = line.subcommand == Subcommand::kRun || line.subcommand == Subcommand::kResume;
  if (!line.junit.empty() && !is_job && line.subcommand != Subcommand::kReport) {
    return wrong("--junit has a meaning for a job and for mprun report only");
  }
  if (line.subcommand != Subcommand::kReport) {
    for (const auto& [name, file] : {std::pair{"--html", &line.html}, {"--trace", &line.trace}}) {
      if (!file->empty()) return wrong(std::string(name) + " has a meaning for mprun report only");
    }
  }
  const Submission& submission = line.submission;
  if (line.subcommand != Subcommand::kSubmit &&
      (submission.nodes != 0 || submission.wait || submission.dry_run || !submission.partition.empty() ||
       !submission.time.empty() || !submission.account.empty() || !submission.sbatch_options.empty())) {
    return wrong(
        "--nodes, --partition, --time, --account, --sbatch-option, --wait and --dry-run have a meaning for "
        "mprun submit only");
  }
  if (!line.record.empty()) return wrong("--record has a meaning for mprun inspect only");
  return std::nullopt;
}

}  // namespace

ParsedCommandLine parse_command_line(const std::vector<std::string>& args, const std::string& current_directory) {
  OptionParser parser(current_directory);
  if (auto exit = parse_words(args, &parser)) return *exit;
  if (parser.line.subcommand != Subcommand::kInspect) {
    if (auto exit = check_meanings(parser.line)) return *exit;
  }
  return std::move(parser.line);
}

}  // namespace mprun
