#include "record/journal.h"

#include <fcntl.h>

#include <utility>

#include "base/utc_text.h"
#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"

namespace mprun {
namespace {

[[nodiscard]] Json process_json(const WorkerEnded& ended) {
  Json process{{"pid", ended.pid},           {"worker", ended.worker},
               {"role", ended.role},         {"exit_code", ended.end.exit_code},
               {"signal", ended.end.signal}, {"expected", ended.expected},
               {"at", to_seconds(ended.at)}};
  if (!ended.cpus.empty()) process["cpus"] = ended.cpus;
  return process;
}

}  // namespace

std::string boot_id() {
  const Fd file = open_fd("/proc/sys/kernel/random/boot_id", O_RDONLY);
  const auto text = file ? read_all(file.get()) : Result<std::string>(std::string());
  return text ? text->substr(0, text->find('\n')) : "";
}

Result<std::unique_ptr<Journal>> Journal::create(const std::string& path, const Provenance& origin) {
  Result<AppendFile> file = AppendFile::create(path, "--output");
  if (!file) return std::move(file).error();
  std::unique_ptr<Journal> journal(new Journal(std::move(*file)));
  const Json first = {{"journal", kJournalVersion},
                      {"mprun", origin.mprun},
                      {"started", utc_text(wall_now())},
                      {"boot", boot_id()},
                      {"origin", to_json(origin)}};
  journal->file_.append(first.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  journal->file_.flush();
  if (journal->failure()) return *journal->failure();
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::reopen(const std::string& path, const Session& session) {
  Result<AppendFile> file = AppendFile::reopen(path, session.bytes, "--output");
  if (!file) return std::move(file).error();
  std::unique_ptr<Journal> journal(new Journal(std::move(*file)));
  Json line = {{"session", session.number}, {"started", utc_text(wall_now())}, {"boot", boot_id()}};
  if (session.certain > 0) line["certain"] = session.certain;
  if (session.origin != nullptr) line["origin"] = to_json(*session.origin);
  journal->file_.append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  journal->file_.flush();
  if (journal->failure()) return *journal->failure();
  return journal;
}

void Journal::on_event(const JobEvent& event) {
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) {
    append("process", process_json(*ended));
  } else if (const auto* stage = std::get_if<WorkerStage>(&event)) {
    record(*stage);
  } else if (const auto* retried = std::get_if<TaskRetried>(&event)) {
    append("retried", {{"task", retried->task},
                       {"attempt", retried->attempt},
                       {"worker", retried->worker},
                       {"start", to_seconds(retried->start)},
                       {"seconds", to_seconds(retried->duration)},
                       {"reason", retried->reason}});
  } else if (const auto* hang = std::get_if<HangFound>(&event)) {
    append("hang", {{"verdict", hang->verdict}, {"cause", hang->cause}, {"file", hang->file}});
  } else if (const auto* notice = std::get_if<Notice>(&event)) {
    const bool error = notice->kind == Notice::Kind::kError;
    if (!error && notice->kind != Notice::Kind::kWarning) return;
    append("notice", {{"kind", error ? "error" : "warning"}, {"text", notice->text}});
  } else if (std::holds_alternative<Pulse>(event)) {
    file_.flush();
  }
}

void Journal::record_place(const std::string& node, const std::string& batch_job) {
  append("place", {{"node", node}, {"batch_job", batch_job}});
  file_.flush();
}

int Journal::record_durable(std::uint64_t bytes) {
  append("certain", bytes);
  return file_.flush() ? file_.fd() : -1;
}

void Journal::sync() {
  if (!file_.flush()) return;
  if (const int failed = sync_now(file_.fd()); failed != 0) file_.fail(failed);
}

void Journal::end(int exit_code, double seconds, OnDisk when) {
  append("ended", {{"exit_code", exit_code}, {"seconds", seconds}, {"on_disk", when == OnDisk::kNow}});
  if (when == OnDisk::kNow) {
    sync();
  } else {
    file_.flush();
  }
}

// The last one is kept for the end of the start: a stage without an end would last for as long as the process.
void Journal::record(const WorkerStage& stage) {
  if (stage.first) stages_left_[stage.worker] = kMostStages;
  const auto left = stages_left_.find(stage.worker);
  const int needed = stage.text.empty() ? 1 : 2;
  if (left == stages_left_.end() || left->second < needed) return;
  --left->second;
  append("stage",
         {{"worker", stage.worker}, {"text", stage.text}, {"at", to_seconds(stage.at)}, {"first", stage.first}});
}

void Journal::append(const char* key, Json value) {
  file_.append(Json{{key, std::move(value)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace mprun
