#include "record/shard_progress.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/exit_codes.h"
#include "json/json.h"
#include "os/fd.h"
#include "record/journal.h"
#include "record/line_reader.h"
#include "record/result_line.h"

namespace mprun {
namespace {

// Bytes of results that one call reads, about half a second: its caller must notice Ctrl-C in between.
constexpr std::uint64_t kMostAtOnce = std::uint64_t{64} << 20U;

/// Passes each whole line after `*offset` to `take`, moves `*offset` after it, and reads `*most` bytes at most. False:
/// the file was replaced, or was cut, as results are when they are put in order: begin again.
bool read_on(const std::string& path, std::uint64_t* offset, ino_t* inode, std::uint64_t* most,
             const std::function<void(std::string_view)>& take) {
  const Fd file = open_fd(path, O_RDONLY | O_NOFOLLOW);
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return *offset == 0;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (*offset > 0 && (size < *offset || info.st_ino != *inode)) return false;
  *inode = info.st_ino;
  LineReader reader;
  std::string line;
  while (*offset<size&& * most> 0) {
    line.clear();
    if (!reader.copy_line(file.get(), *offset, &line)) break;  // no whole line yet
    *offset += line.size();
    *most -= std::min<std::uint64_t>(*most, line.size());
    take(std::string_view(line).substr(0, line.size() - 1));
  }
  return true;
}

}  // namespace

ShardProgress::ShardProgress(const std::string& run_dir, std::uint64_t shards, std::string batch_job)
    : batch_job_(std::move(batch_job)), files_(shards), states_(shards) {
  for (std::uint64_t i = 0; i < shards; ++i) files_[i].folder = run_dir + "/shards/" + folder_of({i, shards});
}

std::vector<std::string> ShardProgress::update() {
  std::vector<std::string> hangs;
  std::uint64_t most = kMostAtOnce;
  for (std::size_t shard = 0; shard < files_.size(); ++shard) {
    read_journal(shard, &hangs);
    read_results(shard, &most);
  }
  behind_ = most == 0;
  return hangs;
}

void ShardProgress::read_results(std::size_t shard, std::uint64_t* most) {
  State& state = states_[shard];
  const auto take = [&state](std::string_view text) {
    const auto line = split_result_line(text);
    if (!line || line->status == TaskStatus::kCancelled) return;
    ++state.done;
    if (line->status == TaskStatus::kFailed) ++state.failed;
  };
  const std::string path = files_[shard].folder + "/results.jsonl";
  Files& files = files_[shard];
  if (read_on(path, &files.results, &files.results_inode, most, take)) return;
  state.done = state.failed = files.results = 0;
  read_on(path, &files.results, &files.results_inode, most, take);
}

void ShardProgress::read_journal(std::size_t shard, std::vector<std::string>* hangs) {
  const auto take = [&](std::string_view text) {
    const Json line = parse_json(text);
    if (line.is_object()) take_journal(shard, line, hangs);
  };
  const std::string path = files_[shard].folder + "/" + kJournalName;
  Files& files = files_[shard];
  std::uint64_t all = UINT64_MAX;
  if (!read_on(path, &files.journal, &files.journal_inode, &all, take)) files.journal = 0;
}

void ShardProgress::take_journal(std::size_t shard, const Json& line, std::vector<std::string>* hangs) {
  Files& files = files_[shard];
  State& state = states_[shard];
  if (line.contains("journal") || line.contains("session")) files.mine = state.ended = state.stopped = false;
  if (line.contains("place") && line["place"].is_object()) {
    files.mine = line["place"].value("batch_job", "") == batch_job_;
    state.begun = state.begun || files.mine;
    if (files.mine) state.node = line["place"].value("node", "");
  }
  if (!files.mine) return;
  if (line.contains("ended") && line["ended"].is_object()) {
    state.ended = true;
    state.stopped = is_by_signal(line["ended"].value("exit_code", 0));
  }
  if (line.contains("hang") && line["hang"].is_object()) {
    const Json& hang = line["hang"];
    const std::string file = hang.value("file", "");
    hangs->push_back("shard " + folder_of({shard, files_.size()}) + " on " + state.node +
                     " hangs: " + hang.value("verdict", "") + ", cause " + hang.value("cause", "") +
                     (file.empty() ? "" : "\n  " + files.folder + "/" + file));
  }
}

bool ShardProgress::all_ended() const {
  return std::all_of(states_.begin(), states_.end(), [](const State& state) { return state.ended; });
}

bool ShardProgress::any_stopped() const {
  return std::any_of(states_.begin(), states_.end(), [](const State& state) { return state.stopped; });
}

std::uint64_t ShardProgress::done() const {
  std::uint64_t done = 0;
  for (const State& state : states_) done += state.done;
  return done;
}

std::string ShardProgress::line(std::uint64_t total) const {
  std::uint64_t failed = 0;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;
  for (const State& state : states_) {
    failed += state.failed;
    if (!state.begun) ++waiting;
    if (state.ended) ++ended;
  }
  const std::uint64_t most =
      total > 0 ? total : UINT64_MAX;  // two shards may have a result of a task that was taken over
  std::string text =
      std::to_string(std::min(done(), most)) + (total > 0 ? " of " + std::to_string(total) : "") + " tasks";
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  text += "; " + std::to_string(states_.size()) + (states_.size() == 1 ? " shard: " : " shards: ");
  std::string parts;
  const auto add = [&parts](std::uint64_t count, const char* what) {
    if (count > 0) parts += (parts.empty() ? "" : ", ") + std::to_string(count) + what;
  };
  add(waiting, " waiting");
  add(states_.size() - waiting - ended, " running");
  add(ended, " ended");
  return text + parts;
}

}  // namespace mprun
