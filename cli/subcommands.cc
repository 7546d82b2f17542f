#include "subcommands.h"

#include "option_parser.h"

namespace mprun {
namespace {

std::optional<EarlyExit> check_inspect(const CommandLine& line) {
  if (line.all && !line.pids.empty()) return wrong("inspect: --all and a PID do not go together");
  if (!line.all && line.pids.empty()) return wrong("inspect: name the PID of a process, or give --all");
  if (line.pids.size() > 1) return wrong("inspect: found two PIDs, allowed: one, or --all");
  if (line.json && line.dot) return wrong("inspect: --json and --dot do not go together");
  if (line.all && line.dot) return wrong("inspect: --all and --dot do not go together");
  if (line.all && !line.record.empty()) return wrong("inspect: --all and --record do not go together");
  if (line.wait.given && !line.wait.seconds) return wrong("inspect: --wait needs seconds, for example --wait 5");
  return std::nullopt;
}

std::optional<EarlyExit> check_submit(CommandLine* line) {
  if (line->wait.seconds) return wrong("submit: --wait takes no seconds; only `mprun inspect` does");
  if (line->spec_path == "-" || !is_spec(line->spec_path)) {
    return wrong("submit: found " + line->spec_path + ", allowed: a JOB.json, which all nodes can read");
  }
  if (line->submission.nodes < 1 || line->submission.nodes > 100'000) {
    return wrong("submit: say how many nodes it shall have, from 1 to 100000: --nodes N");
  }
  for (std::string& option : line->submission.sbatch_options) {
    if (option.empty() || option.find('\n') != std::string::npos) return wrong("--sbatch-option: found no option");
    if (option.front() != '-') option.insert(0, "--");
  }
  return std::nullopt;
}

}  // namespace

bool is_spec(const std::string& target) { return target == "-" || target.ends_with(".json"); }

std::optional<EarlyExit> check_subcommand(CommandLine* line) {
  if (line->subcommand == Subcommand::kInspect) return check_inspect(*line);
  if (line->subcommand == Subcommand::kSubmit) return check_submit(line);
  return std::nullopt;
}

}  // namespace mprun
