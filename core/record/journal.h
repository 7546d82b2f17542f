// Journal: journal.jsonl, which records what another mprun needs to finish the run, apart from its results: what it was
// made from, and what became of processes, attempts, warnings and hangs. A Sink in mprun's one thread; owns the file.
//
//   {"journal":1,"mprun":"0.2.0","started":"..","origin":{..}}                          the first line
//   {"session":2,"started":"..","certain":4096}                                         each mprun that worked on it
//   {"place":{"node":"n1","batch_job":"12"}}                                            of a session of a shard
//   {"certain":4096}                                     so many bytes of results.jsonl, with their tensors, on disk
//   {"stage":{..}}  {"process":{..}}  {"retried":{..}}  {"notice":{..}}  {"hang":{..}}                  as they happen
//   {"ended":{"exit_code":130,"seconds":1.5,"on_disk":true}}                            the end of a session
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "events/job_event.h"
#include "json/json_fwd.h"
#include "record/append_file.h"
#include "record/atomic_file.h"
#include "record/provenance.h"

namespace mprun {

/// The version of run directories that this mprun writes, and the only one it goes on with.
inline constexpr int kJournalVersion = 1;
inline constexpr const char* kJournalName = "journal.jsonl";
/// The stages of one start of a worker or host that are recorded at most, as it may report any number.
inline constexpr int kMostStages = 16;

/// A different text after each start of the machine; empty where the kernel does not say.
[[nodiscard]] std::string boot_id();

class Journal : public Sink {
 public:
  /// Begins the journal of a new run.
  [[nodiscard]] static Result<std::unique_ptr<Journal>> create(const std::string& path, const Provenance& origin);
  /// How a session that continues a run begins.
  struct Session {
    std::uint64_t bytes = 0;             ///< of the journal so far; the rest of the file is cut off
    int number = 0;                      ///< from 2
    std::uint64_t certain = 0;           ///< bytes of results.jsonl that are on disk, with the tensors that they name
    const Provenance* origin = nullptr;  ///< recorded again if it has changed
  };
  [[nodiscard]] static Result<std::unique_ptr<Journal>> reopen(const std::string& path, const Session& session);

  /// Appends events that are not in the results; writes them out at a Pulse.
  void on_event(const JobEvent& event) override;
  /// Records where this session runs: the name of the node, and the batch job if there is one.
  void record_place(const std::string& node, const std::string& batch_job);
  /// Records that so many bytes of results.jsonl, and the tensors that they name, are on disk. Returns the file to sync
  /// next, as only then this record is certain too; -1 after a failure.
  int record_durable(std::uint64_t bytes);
  /// Brings everything so far to disk; see failure().
  void sync();
  /// Writes the last line of a session. kNow: results and tensors are on disk, and so is this line when this returns.
  void end(int exit_code, double seconds, OnDisk when);
  [[nodiscard]] const std::optional<Error>& failure() const { return file_.failure(); }

 private:
  explicit Journal(AppendFile file) : file_(std::move(file)) {}
  void append(const char* key, Json value);
  void record(const WorkerStage& stage);

  AppendFile file_;
  std::map<int, int> stages_left_;  ///< by worker: how many more of its start are recorded
};

}  // namespace mprun
