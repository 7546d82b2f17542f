// mprun submit: hands a job to Slurm, one mprun on each node; with --wait follows it to its end and joins the shards.
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <variant>

#include "cluster/batch_script.h"
#include "commands.h"
#include "job/inputs.h"
#include "job/redact.h"
#include "json/json.h"
#include "record/atomic_file.h"
#include "record/run_directory.h"
#include "record/shard_runs.h"
#include "run/job_tasks.h"
#include "run/resolve_request.h"
#include "run/short_program.h"
#include "run/wait_for_shards.h"

namespace mprun {
namespace {

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "mprun";
}

/// The mprun command that each node runs: all that this command line sets, in one form.
std::vector<std::string> command_on_nodes(const CommandLine& line, const std::string& run_dir) {
  std::vector<std::string> words = {own_path()};
  if (line.quiet) words.emplace_back("-q");
  if (line.verbose) words.emplace_back("-v");
  if (line.explain) words.emplace_back("--explain");
  if (line.log_events) words.insert(words.end(), {"-d", "events"});
  if (!line.log_level.empty()) words.insert(words.end(), {"--log-level", line.log_level});
  if (line.log_format == LogFormat::kJson) words.insert(words.end(), {"--log-format", "json"});
  if (line.resume || line.retry_failed || line.accept_changes) words.emplace_back("--resume");
  if (line.retry_failed) words.emplace_back("--retry-failed");
  if (line.accept_changes) words.emplace_back("--accept-changes");
  for (const auto& [pointer, origin] : line.layer.origins) {
    if (pointer == "/output/dir") continue;
    std::string key = pointer.substr(1);
    for (char& c : key) c = c == '/' ? '.' : c;
    words.emplace_back("--set");
    words.push_back(key + "=" + line.layer.value.at(Json::json_pointer(pointer)).dump());
  }
  // In a step of one task Slurm says nothing of shards.
  if (line.submission.nodes == 1) words.insert(words.end(), {"--shard", "1/1"});
  std::error_code error;
  words.insert(words.end(), {"--output", run_dir, std::filesystem::absolute(line.spec_path, error).string()});
  return words;
}

BatchJob batch_job(const CommandLine& line, const JobSpec& spec, const std::string& run_dir) {
  const Submission& asked = line.submission;
  BatchJob job;
  job.name = spec.name;
  job.nodes = asked.nodes;
  job.run_dir = run_dir;
  job.working_directory = current_directory();
  job.command = command_on_nodes(line, run_dir);
  job.partition = asked.partition;
  job.time = asked.time;
  job.account = asked.account;
  job.options = asked.sbatch_options;
  job.end_together = spec.kind == JobKind::kRanks;
  job.outlives_nodes = spec.balance == Balance::kDynamic;
  return job;
}

/// Refuses what no shard on a node could use: each would end with that error, hours later.
Result<void> check_for_nodes(const CommandLine& line, const JobSpec& spec) {
  if (spec.shard && spec.allocation.shard_source.empty()) {
    return usage_error(line.spec_path + ": /shard: every node gets a shard of its own; take \"shard\" out of the spec");
  }
  if (!spec.results.empty() && spec.results != "-") {
    const bool typed = line.layer.value.contains(Json::json_pointer("/output/results"));
    return usage_error((typed ? "--results" : line.spec_path + ": /output/results") +
                       ": several shards cannot write one file; `mprun merge DIR` joins their results");
  }
  const auto* lines = std::get_if<LinesInput>(&spec.inputs);
  const auto* jsonl = std::get_if<JsonlInput>(&spec.inputs);
  if ((lines != nullptr && lines->path == "-") || (jsonl != nullptr && jsonl->path == "-")) {
    return usage_error(spec.inputs_place + "no node has this standard input; put the inputs into a file");
  }
  return {};
}

/// Refuses secrets on the command line, which would stand in the batch script.
Result<void> check_secrets(const CommandLine& line, const JobSpec& spec) {
  const auto env = line.layer.value.find("env");
  if (env == line.layer.value.end()) return {};
  for (const auto& [name, value] : env->items()) {
    if (!job::is_redacted(spec.redact, name) || value == job::kRedacted) continue;
    std::string message = "--set env." + name + "=***: it is a secret, and the batch script would show it\n";
    message.append("  write it into the spec, or set ").append(name).append(" in the environment and give --set 'env.");
    message.append(name).append("=\"").append(job::kRedacted).append("\"'");
    return usage_error(message);
  }
  return {};
}

/// An existing run continues with as many shards as it was begun with.
Result<void> check_shards(const std::string& run_dir, int nodes) {
  std::error_code error;
  if (run_dir.empty() || !std::filesystem::exists(run_dir + "/shards", error)) return {};
  const auto shards = find_shards(run_dir);
  if (!shards || shards->size() == static_cast<std::size_t>(nodes)) return {};
  return usage_error("the run in " + run_dir + " has " + std::to_string(shards->size()) +
                     " shards: go on with --nodes " + std::to_string(shards->size()) +
                     ", or choose another directory with --output");
}

int join(const CommandLine& line, const std::string& run_dir) {
  CommandLine joined = line;
  joined.run_dir = run_dir;
  return merge(joined);
}

}  // namespace

int submit(const CommandLine& line) {
  auto resolved = resolve_request(line);
  if (!resolved) return report_error(resolved.error());
  JobSpec& spec = resolved->spec;
  if (auto fits = check_for_nodes(line, spec); !fits) return report_error(fits.error());
  if (auto kept = check_secrets(line, spec); !kept) return report_error(kept.error());
  const auto inputs = open_inputs(spec);
  if (!inputs) return report_error(inputs.error());
  if (auto fits = check_balance(spec, (*inputs)->total()); !fits) return report_error(fits.error());
  const auto nodes = static_cast<std::uint64_t>(line.submission.nodes);
  if (auto fits = check_shards(spec.output_dir, line.submission.nodes); !fits) return report_error(fits.error());
  if (line.submission.dry_run) {
    const std::string shown = current_directory() + "/runs/" + spec.name + "/<timestamp>";
    const std::string script = batch_script(batch_job(line, spec, spec.output_dir.empty() ? shown : spec.output_dir));
    const auto printed = print_text(script, "the script");
    return printed ? 0 : report_error(printed.error());
  }
  const auto run_dir = RunDirectory::create_for_shards(spec);
  if (!run_dir) return report_error(run_dir.error());
  const std::string script = *run_dir + "/submit.sh";
  if (auto written = write_atomically(script, batch_script(batch_job(line, spec, *run_dir)), OnDisk::kLater);
      !written) {
    return report_error(written.error());
  }
  const auto sent = run_program_for_text({"sbatch", "--parsable", script});
  if (!sent) return report_error(sent.error());
  if (sent->exit_code != 0) return report_error(launch_error("sbatch has refused the job; its script is " + script));
  const std::string number = sent->out.substr(0, sent->out.find_first_of(";\n"));
  std::printf("%s\n", number.c_str());
  std::fflush(stdout);
  if (!line.quiet) std::fprintf(stderr, "mprun: job %s; results will be below %s\n", number.c_str(), run_dir->c_str());
  if (!line.wait.given) return 0;
  const std::uint64_t tasks = spec.kind == JobKind::kRanks ? nodes * static_cast<std::uint64_t>(spec.processes)
                                                           : (*inputs)->total().value_or(0);
  const int stopped = wait_for_shards({number, *run_dir, nodes, tasks, line.quiet});
  return stopped != 0 ? stopped : join(line, *run_dir);
}

}  // namespace mprun
