#include "record/shard_runs.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "os/fd.h"
#include "record/earlier_run.h"
#include "record/journal.h"
#include "record/line_reader.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

/// The nodes of all sessions.
Result<std::vector<ShardRun::Place>> places_of(const std::string& path) {
  std::vector<ShardRun::Place> places;
  std::string started;
  const auto read = for_each_line(path + "/" + kJournalName, [&](std::string_view line, std::uint64_t) {
    const bool session = line.find(R"("started":)") != line.npos;
    if (!session && line.find(R"("place":)") == line.npos) return;
    const Json json = parse_json(line);
    if (!json.is_object()) return;
    if (json.contains("started")) started = json.value("started", "");
    if (json.contains("place")) places.push_back({started, json["place"].value("node", "")});
  });
  if (!read) return read.error();
  return places;
}

/// nullopt: there is none, or it is not complete.
Result<std::optional<Json>> read_summary(const std::string& path) {
  const Fd file = open_fd(path, O_RDONLY | O_NOFOLLOW);
  if (!file && errno == ENOENT) return std::optional<Json>();
  if (!file) return system_error("cannot read " + path, errno);
  const auto text = read_all(file.get());
  if (!text) return Error{text.error().fault, path + ": " + text.error().message};
  Json json = parse_json(*text);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

std::uint64_t count_of(const Json& summary, const char* name) {
  const Json counts = summary.value("counts", Json::object());
  return counts.contains(name) && counts[name].is_number_unsigned() ? counts[name].get<std::uint64_t>() : 0;
}

/// Why its summary does not cover the whole shard; empty if it does.
std::string unfinished(const std::optional<Json>& summary) {
  if (!summary) return "has not ended: it still runs, or was killed";
  const std::uint64_t missing = count_of(*summary, "not_run") + count_of(*summary, "cancelled");
  const Json& total = summary->value("counts", Json::object()).value("total", Json());
  if (missing == 0 && !total.is_null()) return "";
  const std::uint64_t done = count_of(*summary, "ok") + count_of(*summary, "failed");
  return "ended early, with exit code " + std::to_string(summary->value("exit_code", 0)) + ": " + std::to_string(done) +
         (total.is_null() ? " tasks are done" : " of " + total.dump() + " tasks are done");
}

Result<ShardRun> read_shard(const std::string& path) {
  ShardRun run;
  run.path = path;
  auto spec = read_document(path + "/job.json", path);
  if (!spec) return spec.error();
  const auto shard = spec->value.is_object() ? parse_shard(spec->value.value("shard", "")) : std::nullopt;
  if (!shard) return usage_error(path + "/job.json names no shard");
  run.shard = *shard;
  run.spec = std::move(spec->value);
  std::error_code error;
  if (fs::exists(path + "/" + kJournalName, error)) {
    auto places = places_of(path);
    if (!places) return places.error();
    run.places = std::move(*places);
  }
  if (!run.places.empty()) run.node = run.places.back().node;
  if (error) return system_error("cannot read " + path, error.value());
  auto summary = read_summary(path + "/summary.json");
  if (!summary) return summary.error();
  run.summary = std::move(*summary);
  run.fault = unfinished(run.summary);
  return run;
}

}  // namespace

const std::string& ShardRun::node_at(const std::string& utc) const {
  const auto later =
      std::find_if(places.begin(), places.end(), [&utc](const Place& place) { return place.since > utc; });
  return later == places.begin() ? node : std::prev(later)->node;
}

std::string ShardRun::name() const {
  return "shard " + folder_of(shard) + " of " + std::to_string(shard.count) +
         (node.empty() ? "" : " (on " + node + ")");
}

Result<std::vector<ShardRun>> find_shards(const std::string& run_dir) {
  std::map<std::uint64_t, ShardRun> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(run_dir + "/shards", error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool begun = fs::exists(entry->path() / "job.json", error);
    if (error) break;
    if (!begun) continue;
    auto run = read_shard(entry->path().string());
    if (!run) return run.error();
    if (name != folder_of(run->shard)) return usage_error(run->path + " holds another shard: " + to_string(run->shard));
    if (!found.empty() && found.begin()->second.shard.count != run->shard.count) {
      return usage_error(run_dir + " has shards of different runs: " + to_string(found.begin()->second.shard) +
                         " and " + to_string(run->shard));
    }
    found.emplace(run->shard.index, std::move(*run));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return system_error("cannot read " + run_dir + "/shards", error.value());
  }
  if (found.empty()) return usage_error(run_dir + " has no shards: there is no run in " + run_dir + "/shards");
  const std::uint64_t count = found.begin()->second.shard.count;
  std::vector<ShardRun> all(count);
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto at = found.find(index);
    if (at != found.end()) {
      all[index] = std::move(at->second);
      continue;
    }
    all[index].shard = {index, count};
    all[index].path = run_dir + "/shards/" + folder_of({index, count});
    all[index].fault = "is missing: nothing is in " + all[index].path;
  }
  return all;
}

}  // namespace mprun
