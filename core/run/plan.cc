#include "run/plan.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "job/redact.h"
#include "json/json.h"
#include "record/block_directory.h"
#include "record/earlier_run.h"
#include "record/journal.h"
#include "record/run_directory.h"
#include "run/resolve_request.h"
#include "run/version.h"

namespace mprun {
namespace {

constexpr std::size_t kMostShown = 10;

/// "/processes: 2 -> 4", a line each.
void add_differences(const Json& then, const Json& now, std::vector<std::string>* changes) {
  const bool may_move = now.contains("shard") && now.contains("inputs");  // to a node with more CPUs, or fewer
  const auto brief = [](const Json& value) {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  };
  for (const Json& step : Json::diff(then, now)) {
    const auto path = step.at("path").get<std::string>();
    if (path == "/output/dir" || path == "/output/results" || path == "/output/metrics") continue;  // where, not what
    if (path == "/progress" || path == "/view") continue;
    if (path == "/processes" && may_move) continue;
    const Json::json_pointer at(path);
    const std::string before = then.contains(at) ? brief(then.at(at)) : "nothing";
    const std::string after = now.contains(at) ? brief(now.at(at)) : "nothing";
    std::string change = "the spec: " + path;
    change.append(" was ").append(before).append(" and is ").append(after);
    changes->push_back(std::move(change));
  }
}

Error changes_error(const std::string& run_dir, const std::vector<std::string>& changes) {
  std::string text = "the run in " + run_dir + " was made from something else than what is there now:";
  for (std::size_t i = 0; i < changes.size() && i < kMostShown; ++i) text += "\n  " + changes[i];
  if (changes.size() > kMostShown) text += "\n  and " + std::to_string(changes.size() - kMostShown) + " more";
  return usage_error(text +
                     "\n  undo that; or go on with what is there now, and keep the results so far: --accept-changes");
}

/// Changes that cannot be avoided, whatever the files say.
void add_losses(const JobSpec& spec, const EarlierSessions& earlier, std::vector<std::string>* changes) {
  if (earlier.origin.reads_stdin) {
    changes->emplace_back("the inputs came from standard input: they have to be piped in once more, all of them");
  }
  if (!spec.shared.empty()) {
    changes->emplace_back("the shared tensors: they begin again with what they held before the run");
  }
}

/// The current spec, if it differs from the recorded one. nullopt: it does not, or cannot be found any more.
Result<std::optional<Resolved>> changed_spec(const JobRequest& request, const EarlierSessions& earlier) {
  const Provenance& origin = earlier.origin;
  if (origin.spec_path.empty() || access(origin.spec_path.c_str(), R_OK) != 0) return std::optional<Resolved>();
  auto spec = read_document(origin.spec_path, origin.directory);
  if (!spec) return spec.error();
  if (digest_of(spec->text) == origin.spec_digest) return std::optional<Resolved>();
  JobRequest then;
  then.spec_path = origin.spec_path;
  then.layer = {"the command line of then", origin.directory, "", origin.options, {}, true};
  then.layer.value.merge_patch(request.layer.value);
  auto resolved = resolve_request(then);
  if (!resolved) return resolved.error();
  return std::optional(std::move(*resolved));
}

std::string absolute(const std::string& path) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.string();
}

Provenance trace_provenance(const JobRequest& request, const JobSpec& spec, const std::string& spec_path) {
  std::string text;
  const bool readable = !spec_path.empty() && spec_path != "-";
  if (readable) {
    if (auto document = read_document(spec_path, current_directory())) text = std::move(document->text);
  }
  Provenance origin = provenance_of(spec, readable ? absolute(spec_path) : "", text);
  origin.mprun = version();
  origin.directory = current_directory();
  origin.options = request.layer.value;
  job::redact_env(spec.redact, &origin.options);
  return origin;
}

/// Takes the secrets that job.json does not keep from the spec that the run was made from.
void take_secrets(const Provenance& origin, Json* recorded) {
  if (!recorded->contains("env") || origin.spec_path.empty() || access(origin.spec_path.c_str(), R_OK) != 0) return;
  const auto spec = read_document(origin.spec_path, origin.directory);
  if (!spec || !spec->value.contains("env")) return;
  for (auto& [name, value] : (*recorded)["env"].items()) {
    const bool is_redacted = value.is_string() && value.get_ref<const std::string&>() == job::kRedacted;
    if (is_redacted && spec->value["env"].contains(name)) value = spec->value["env"][name];
  }
}

Result<Plan> plan_to_go_on(const JobRequest& request, const std::string& run_dir, std::optional<Resolved> given) {
  const auto earlier = read_journal(run_dir, [](const JobEvent&) {});
  if (!earlier) return earlier.error();
  auto recorded = read_document(run_dir + "/job.json", run_dir);
  if (!recorded) return recorded.error();
  const Json then = recorded->value;
  std::vector<std::string> changes;
  if (!given) {
    auto changed = changed_spec(request, *earlier);
    if (!changed) return changed.error();
    given = std::move(*changed);
  }
  Plan plan;
  if (given) {
    add_differences(then, given->merged, &changes);
    plan.resolved = std::move(*given);
  } else {
    take_secrets(earlier->origin, &recorded->value);
    auto resolved = resolve_recorded(std::move(*recorded), request);
    if (!resolved) return resolved.error();
    plan.resolved = std::move(*resolved);
  }
  plan.resolved.spec.output_dir = run_dir;
  plan.resolved.spec.name = earlier->origin.job;
  plan.goes_on = true;
  plan.certain = certain_bytes(*earlier);
  const std::string spec_path = request.continues_run ? earlier->origin.spec_path : request.spec_path;
  plan.origin = trace_provenance(request, plan.resolved.spec, spec_path);
  for (std::string& change : changed_files(earlier->origin, plan.origin)) changes.push_back(std::move(change));
  add_losses(plan.resolved.spec, *earlier, &changes);
  plan.changed = !changes.empty();
  if (plan.changed && !request.accept_changes) return changes_error(run_dir, changes);
  return plan;
}

Result<Plan> plan_to_resume(const JobRequest& request) {
  const std::string run_dir = absolute(request.run_dir);
  if (auto found = RunDirectory::find(run_dir); !found) return found.error();
  auto recorded = read_document(run_dir + "/job.json", run_dir);
  const auto unborn = RunDirectory::remove_unstarted(run_dir);
  if (!unborn) return unborn.error();
  if (!*unborn) return plan_to_go_on(request, run_dir, std::nullopt);
  if (!recorded) return usage_error("the run in " + run_dir + " was killed before it began; run the job again");
  auto resolved = resolve_recorded(std::move(*recorded), request);
  if (!resolved) return resolved.error();
  Plan plan;
  plan.resolved = std::move(*resolved);
  plan.resolved.spec.output_dir = run_dir;
  plan.origin = trace_provenance(request, plan.resolved.spec, "");
  return plan;
}

/// A later merge of the shards must not replace a run that exists already.
Result<void> check_directory_of_shards(const JobSpec& spec) {
  if (!spec.shard) return {};
  const std::filesystem::path all = std::filesystem::path(spec.output_dir).parent_path().parent_path();
  std::error_code error;
  if (spec.balance == Balance::kStatic && std::filesystem::exists(all / kBlocksName, error)) {
    return usage_error("the shards of the run in " + all.string() +
                       " claim their tasks while they run: use --balance dynamic, or another directory (--output)");
  }
  if (!std::filesystem::exists(all / kJournalName, error) || std::filesystem::exists(all / "shards", error)) return {};
  return usage_error(all.string() + " holds a run that is not one of shards; choose another directory with --output");
}

}  // namespace

Result<Plan> make_plan(const JobRequest& request) {
  if (request.continues_run) return plan_to_resume(request);
  auto resolved = resolve_request(request);
  if (!resolved) return resolved.error();
  if (!resolved->spec.shard && request.layer.value.value("balance", "static") == "dynamic") {
    return usage_error(
        "--balance dynamic shares tasks between several mprun, and nothing says which this one is\n"
        "  use --shard I/N, srun, a job array, or mprun submit");
  }
  if (auto fits = check_directory_of_shards(resolved->spec); !fits) return fits.error();
  const std::string& run_dir = resolved->spec.output_dir;
  if (request.resume && run_dir.empty()) {
    return usage_error("--resume needs the run directory by name: --output DIR\n  or use `mprun resume RUN_DIR`");
  }
  std::error_code error;
  const bool goes_on = request.resume || resolved->spec.goes_on;
  if (goes_on && std::filesystem::exists(run_dir, error) && !std::filesystem::is_empty(run_dir, error)) {
    const std::string path = absolute(run_dir);
    const auto unborn = RunDirectory::remove_unstarted(path);
    if (!unborn) return unborn.error();
    if (!*unborn) return plan_to_go_on(request, path, std::move(*resolved));
  }
  Plan plan;
  plan.origin = trace_provenance(request, resolved->spec, request.spec_path);
  plan.resolved = std::move(*resolved);
  return plan;
}

}  // namespace mprun
