#include "record/merge.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "base/exit_codes.h"
#include "base/utc_text.h"
#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"
#include "record/append_file.h"
#include "record/atomic_file.h"
#include "record/block_directory.h"
#include "record/earlier_run.h"
#include "record/journal.h"
#include "record/line_reader.h"
#include "record/merge_results.h"
#include "record/merge_tensors.h"
#include "record/run_directory.h"
#include "record/shard_runs.h"
#include "record/summary.h"

namespace mprun {
namespace {

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// A file that gets its name when it is complete.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path, OnDisk when) {
    auto file = AppendFile::create(path + ".tmp", "--output");
    if (!file) return file.error();
    return NewFile(path, std::move(*file), when);
  }
  [[nodiscard]] AppendFile& file() { return file_; }
  Result<void> finish() { return take_name(&file_, path_, when_); }

 private:
  NewFile(std::string path, AppendFile file, OnDisk when)
      : path_(std::move(path)), file_(std::move(file)), when_(when) {}
  std::string path_;
  AppendFile file_;
  OnDisk when_;
};

/// Workers are numbered consecutively from shard to shard, as ranks are.
std::vector<int> first_workers_of(const std::vector<ShardRun>& shards) {
  std::vector<int> first;
  int next = 0;
  for (const ShardRun& shard : shards) {
    first.push_back(next);
    const Json processes = shard.spec.value("processes", Json());
    next += processes.is_number_integer() ? processes.get<int>() : 1;
  }
  return first;
}

/// The node of the task of a joblog line; `host`: where the column Host begins.
const std::string& node_of(const ShardRun& shard, std::string_view line, std::size_t host) {
  if (shard.places.size() < 2) return shard.node;
  return shard.node_at(utc_text(from_seconds(std::strtod(std::string(line.substr(host + 3)).c_str(), nullptr))));
}

// The column Host holds the node, as in GNU parallel.
Result<void> merge_joblogs(const std::vector<ShardRun>& shards, const DoneBlocks* done, const std::string& path,
                           OnDisk when) {
  auto joblog = NewFile::create(path, when);
  if (!joblog) return joblog.error();
  bool head = false;
  for (const ShardRun& shard : shards) {
    const auto read = for_each_line(shard.path + "/joblog.tsv", [&](std::string_view line, std::uint64_t offset) {
      if (offset == 0 && std::exchange(head, true)) return;
      std::uint64_t seq = 0;  // from 1
      std::from_chars(line.data(), line.data() + line.size(), seq);
      if (offset > 0 && done != nullptr &&
          (seq == 0 || seq > done->cutting.tasks || !done->by(shard.shard.index, seq - 1)))
        return;
      const auto host = line.find("\t:\t");
      std::string& out = joblog->file().buffer();
      if (offset == 0 || host == line.npos || shard.node.empty()) {
        out.append(line);
      } else {
        out.append(line.substr(0, host + 1)).append(node_of(shard, line, host)).append(line.substr(host + 2));
      }
      out += '\n';
      joblog->file().end_line();
    });
    if (!read) return read.error();
  }
  return joblog->finish();
}

/// The path of a file, such as that of a hang, relative to the whole run's directory.
std::string below(const ShardRun& shard, const std::string& file) {
  return file.empty() ? "" : "shards/" + folder_of(shard.shard) + "/" + file;
}

void number_worker(Json* object, int first_worker) {
  const int worker = object->value("worker", -1);
  if (worker >= 0) (*object)["worker"] = worker + first_worker;
}

/// The host of every shard is -1 there; stages of hosts that ran at the same time are not to be mixed up.
void number_host(Json* stage, std::uint64_t shard) {
  if (stage->value("worker", 0) == -1) (*stage)["worker"] = -1 - static_cast<std::int64_t>(shard);
}

/// Appends a line of a shard's journal to that of the whole run, if it belongs there.
void append_event(const ShardRun& shard, int first_worker, Json event, AppendFile* out) {
  for (const std::string_view key : {"stage", "process", "retried", "notice", "hang"}) {
    if (!event.contains(key) || !event[key].is_object()) continue;
    Json& fields = event[key];
    number_worker(&fields, first_worker);
    if (key == "stage") number_host(&fields, shard.shard.index);
    if (fields.contains("file")) fields["file"] = below(shard, fields.value("file", ""));
    if (key == "notice") fields["text"] = shard.name() + ": " + fields.value("text", "");
    out->append(line_of(event));
  }
}

Result<void> merge_journals(const std::vector<ShardRun>& shards, const std::vector<int>& first_workers,
                            const Json& summary, const std::string& path, OnDisk when) {
  auto journal = NewFile::create(path, when);
  if (!journal) return journal.error();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto read = for_each_line(shards[i].path + "/" + kJournalName, [&](std::string_view text, std::uint64_t at) {
      Json line = parse_json(text);
      if (!line.is_object()) return;
      if (at == 0 && i == 0) {
        line["started"] = summary.at("started");
        if (line["origin"].contains("options")) line["origin"]["options"].erase("shard");
        journal->file().append(line_of(line));
      } else if (at > 0) {
        append_event(shards[i], first_workers[i], std::move(line), &journal->file());
      }
    });
    if (!read) return read.error();
  }
  const Json ended = {
      {"exit_code", summary.at("exit_code")}, {"seconds", summary.at("seconds")}, {"on_disk", when == OnDisk::kNow}};
  journal->file().append(line_of({{"ended", ended}}));
  return journal->finish();
}

/// The outcome of all shards: the gravest of their exit codes.
int exit_code_of(const std::vector<ShardRun>& shards) {
  int code = kExitOk;
  for (const ShardRun& shard : shards) code = graver_exit_code(code, shard.summary->value("exit_code", 0));
  return code;
}

void add_lists(const ShardRun& shard, int first_worker, Json* summary) {
  const auto all_of = [&shard](const char* key) { return shard.summary->value(key, Json::array()); };
  for (Json process : all_of("processes")) {
    number_worker(&process, first_worker);
    (*summary)["processes"].push_back(std::move(process));
  }
  for (Json notice : all_of("notices")) {
    if ((*summary)["notices"].size() >= kMostNotices) break;
    notice["text"] = shard.name() + ": " + notice.value("text", "");
    (*summary)["notices"].push_back(std::move(notice));
  }
  for (const char* const key : {"hangs", "shared"}) {
    for (Json entry : all_of(key)) {
      entry["file"] = below(shard, entry.value("file", ""));
      (*summary)[key].push_back(std::move(entry));
    }
  }
  const Json exits = shard.summary->value("command_exits", Json::object());
  for (const auto& [end, times] : exits.items()) {
    Json& sum = (*summary)["command_exits"][end];
    sum = (sum.is_null() ? 0 : sum.get<std::uint64_t>()) + times.get<std::uint64_t>();
  }
}

/// The summary of a shard that has written none, from its journal: it was killed, or still runs.
Result<Json> summary_so_far(const ShardRun& shard) {
  Summary summary(JobSpec(), 0);
  const auto sessions = read_journal(shard.path, [&summary](const JobEvent& event) { summary.on_event(event); });
  if (!sessions) return sessions.error();
  summary.go_on({}, *sessions);
  Json json = summary.to_json(0, 0);
  json["sessions"] = sessions->sessions;
  return json;
}

/// The whole summary except for the tensors and the counts that the results show.
Json merge_summaries(const std::vector<ShardRun>& shards, const std::vector<int>& first_workers) {
  Json summary = *shards.front().summary;
  summary.erase("command_exits");
  for (const char* const key : {"processes", "notices", "hangs", "tensors", "shared"}) summary[key] = Json::array();
  std::uint64_t retried = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Json& its = *shards[i].summary;
    summary["started"] = std::min(summary["started"].get<std::string>(), its.at("started").get<std::string>());
    summary["seconds"] = std::max(summary["seconds"].get<double>(), its.at("seconds").get<double>());
    summary["sessions"] = std::max(summary["sessions"].get<int>(), its.at("sessions").get<int>());
    retried += its.at("counts").at("retried").get<std::uint64_t>();
    add_lists(shards[i], first_workers[i], &summary);
  }
  summary["counts"]["retried"] = retried;
  summary["exit_code"] = exit_code_of(shards);
  return summary;
}

void put_counts(const MergedResults& results, Json* summary) {
  Json& counts = (*summary)["counts"];
  const std::uint64_t done = results.ok + results.failed;
  counts["total"] = done;
  counts["ok"] = results.ok;
  counts["failed"] = results.failed;
  counts["cancelled"] = 0;
  counts["not_run"] = 0;
  const double seconds = (*summary)["seconds"].get<double>();
  (*summary)["tasks_per_second"] = seconds > 0 ? static_cast<double>(done) / seconds : 0.0;
}

/// A directory with a journal is a run that can be resumed; this one cannot be while parts of it are missing.
Result<void> remove_journal(const std::string& run_dir, OnDisk when) {
  const std::string path = run_dir + "/" + kJournalName;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("cannot remove " + path, errno);
  const int failed = when == OnDisk::kNow ? sync_directory(run_dir) : 0;
  return failed == 0 ? Result<void>() : system_error("cannot remove " + path, failed);
}

/// `done`: which shards have done the blocks, if blocks were claimed; else nullptr.
Result<MergedRun> join(const std::string& run_dir, const std::vector<ShardRun>& shards, const DoneBlocks* done) {
  const auto path = [&run_dir](const char* name) { return run_dir + "/" + name; };
  const std::vector<int> first_workers = first_workers_of(shards);
  const OnDisk when = shards.front().spec.value("durability", "") == "none" ? OnDisk::kLater : OnDisk::kNow;
  MergedRun run;
  run.shards = shards.size();
  if (auto removed = remove_journal(run_dir, when); !removed) return removed.error();
  auto tensors = MergedTensors::begin(run_dir, shards);
  if (!tensors) return tensors.error();
  auto results = NewFile::create(path("results.jsonl"), when);
  if (!results) return results.error();
  const auto merged =
      merge_results(shards, first_workers, done, &results->file(),
                    [&](std::size_t shard, std::string_view text, const ResultLine& line) -> Result<void> {
                      const auto named = tensors_of(text, line);
                      if (!named || !named->is_array()) return {};
                      return tensors->take(shard, line.task, *named);
                    });
  if (!merged) return merged.error();
  if (merged->missing) {
    run.unfinished.push_back("no shard has a result of task " + std::to_string(*merged->missing) +
                             ": they were not made from the same inputs");
    return run;
  }
  auto finished = tensors->finish(when);
  if (!finished) return finished.error();
  run.warnings = std::move(*finished);
  Json summary = merge_summaries(shards, first_workers);
  put_counts(*merged, &summary);
  summary["tensors"] = tensors->to_json();
  if (done != nullptr) summary["exit_code"] = merged->failed > 0 ? 1 : 0;  // all is done, however a shard ended
  Json spec = shards.front().spec;
  spec.erase("shard");
  if (auto written = write_atomically(path("job.json"), indented(spec), when); !written) return written.error();
  if (auto put = merge_joblogs(shards, done, path("joblog.tsv"), when); !put) return put.error();
  if (auto put = results->finish(); !put) return put.error();
  if (auto put = merge_journals(shards, first_workers, summary, path(kJournalName), when); !put) return put.error();
  if (auto written = write_atomically(path("summary.json"), indented(summary), when); !written) return written.error();
  run.counts.total = merged->ok + merged->failed;
  run.counts.ok = merged->ok;
  run.counts.failed = merged->failed;
  run.counts.retried = summary["counts"]["retried"].get<std::uint64_t>();
  run.seconds = summary["seconds"].get<double>();
  run.exit_code = summary["exit_code"].get<int>();
  return run;
}

/// A line for each reason why blocks are not done.
std::vector<std::string> unfinished_blocks(const std::vector<ShardRun>& shards, const DoneBlocks& done) {
  std::vector<std::string> lines;
  const auto tasks = [](std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " task is" : " tasks are");
  };
  if (done.free > 0) lines.push_back(tasks(done.free) + " not begun by any shard");
  for (const auto& [shard, count] : done.held) {
    const std::string name = shard < shards.size() ? shards[shard].name() : "another run";
    lines.push_back(tasks(count) + " in the hands of " + name + ", which still runs, was stopped or killed");
  }
  return lines;
}

/// If all blocks are done, a shard may be missing or have failed: that is a warning, not an error.
Result<void> leave_out_missing(const DoneBlocks& done, std::vector<ShardRun>* shards,
                               std::vector<std::string>* warnings) {
  if (shards->size() != done.cutting.shards) {
    return usage_error("the blocks are those of " + std::to_string(done.cutting.shards) + " shards, and there are " +
                       std::to_string(shards->size()));
  }
  const auto real = std::find_if(shards->begin(), shards->end(), [](const ShardRun& shard) { return shard.summary; });
  if (real == shards->end()) return usage_error("no shard has ended: all still run, or were killed; start one again");
  const Json base = *real->summary;
  for (ShardRun& shard : *shards) {
    if (shard.fault.empty() || shard.spec.is_null()) continue;
    warnings->push_back(shard.name() + " " + shard.fault + "; all its tasks are done nevertheless");
    if (shard.summary) continue;
    auto so_far = summary_so_far(shard);
    if (!so_far) return so_far.error();
    shard.summary = base;
    shard.summary->update(*so_far);
  }
  shards->erase(
      std::remove_if(shards->begin(), shards->end(), [](const ShardRun& shard) { return shard.spec.is_null(); }),
      shards->end());
  return {};
}

}  // namespace

Result<MergedRun> merge_shards(const std::string& run_dir) {
  auto shards = find_shards(run_dir);
  if (!shards) return shards.error();
  const auto blocks = BlockDirectory::find(run_dir);
  if (!blocks) return blocks.error();
  try {
    MergedRun run;
    std::optional<DoneBlocks> done;
    if (*blocks) {
      auto found = (*blocks)->look_at_all();
      if (!found) return found.error();
      done = std::move(*found);
      run.unfinished = unfinished_blocks(*shards, *done);
    } else {
      for (const ShardRun& shard : *shards) {
        if (!shard.fault.empty()) run.unfinished.push_back(shard.name() + " " + shard.fault);
      }
    }
    if (!run.unfinished.empty()) return run;
    std::vector<std::string> warnings;
    if (done) {
      if (auto fits = leave_out_missing(*done, &*shards, &warnings); !fits) return fits.error();
    }
    const auto directory = RunDirectory::reopen(run_dir);  // locked as long as this takes
    if (!directory) return directory.error();
    auto joined = join(run_dir, *shards, done ? &*done : nullptr);
    if (joined) joined->warnings.insert(joined->warnings.begin(), warnings.begin(), warnings.end());
    return joined;
  } catch (const Json::exception& error) {
    return internal_error("a shard's summary.json was not written by this mprun: " + std::string(error.what()));
  }
}

}  // namespace mprun
