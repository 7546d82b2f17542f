// ResultsWriter: results.jsonl of a run, one line a task, and the copy that `--results` asks for. A Sink
// in mprun's one thread; owns both files. Lines are written in the order of completion. For `order: input`,
// finish() puts the file in input order, and the copy holds a line back (on disk, not in memory: 8 bytes a task) until
// all earlier tasks are there.
//
// Results are written out at every Pulse, so a killed mprun loses none that arrived earlier; the disk follows as
// JobSpec::durability says. reopen() continues the file of a run that was interrupted.
//
// The caller checks failure() at each pulse and then stops the job, and prints what take_warnings() returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "events/job_event.h"
#include "job/spec.h"
#include "os/file_sync.h"
#include "record/append_file.h"
#include "record/earlier_run.h"
#include "record/line_offsets.h"
#include "record/line_reader.h"

namespace mprun {

struct ResultsOptions {
  std::string path;  ///< of results.jsonl
  Order order = Order::kInput;
  std::string copy;  ///< JobSpec::results: a path, "-" for standard output, empty for none
  Durability durability = Durability::kNone;
  /// Files and directories that must be on disk before the next results: those changed since the last call.
  std::function<std::vector<Fd>()> written_files = {};
  /// Called before lines are written, to write out what must be on file before them.
  std::function<void()> before_writing = {};
  /// Called now and then, in jobs with such files: so many bytes of results.jsonl, and the files they need, are on
  /// disk. Returns the file in which this was recorded, which is synced next, or -1.
  std::function<int(std::uint64_t bytes)> certain = {};
  ShardTasks tasks = {};  ///< the tasks of this run
};

class ResultsWriter : public Sink {
 public:
  /// For Durability::kBatch: results and time that may pass before a sync.
  static constexpr std::uint64_t kMostUnsynced = 1000;
  static constexpr Nanos kSyncEvery = 800 * kNanosPerMilli;

  /// Creates both files, emptied; a file that cannot be written is a kUsage error.
  [[nodiscard]] static Result<std::unique_ptr<ResultsWriter>> open(const ResultsOptions& options);
  /// Continues after the results of earlier sessions, without the lines that do not count.
  [[nodiscard]] static Result<std::unique_ptr<ResultsWriter>> reopen(const ResultsOptions& options,
                                                                     const EarlierResults& earlier);

  /// Appends the line of a TaskEnded; writes out what is buffered at a Pulse; ignores the rest.
  void on_event(const JobEvent& event) override;
  /// Writes out all that is buffered.
  void flush();
  /// Bytes of results.jsonl.
  [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
  /// Brings all results so far, and the files they need, to disk, whatever the durability; false: it failed.
  [[nodiscard]] bool sync();
  /// Ends the copy, skipping tasks that never ran, and puts results.jsonl in the requested order; call it once, last.
  /// On failure the file stays whole, in the order of completion, and take_warnings() says why. `deliver`: wait for the
  /// reader of the copy; else the copy ends where its reader stopped.
  void finish(bool deliver = true);

  /// The first failure of results.jsonl: results are being lost, the job should stop.
  [[nodiscard]] const std::optional<Error>& failure() const { return file_.failure(); }
  /// Warnings since the last call: the copy stopped, the file could not be put in order.
  [[nodiscard]] std::vector<std::string> take_warnings();

 private:
  ResultsWriter(AppendFile file, std::optional<AppendFile> copy, const ResultsOptions& options);
  static Result<std::unique_ptr<ResultsWriter>> make(AppendFile file, const ResultsOptions& options);

  bool write_out();
  void start_sync(bool now);
  bool finish_sync(bool now);
  void sync_files(std::vector<Fd> files, int last, bool now);
  void append_task(const TaskEnded& ended);
  void append_line(const TaskEnded& ended);
  void remember(TaskId task, std::uint64_t offset);
  [[nodiscard]] bool present(std::uint64_t offset) const;
  void feed_copy();
  bool fill_copy();
  void check_copy();
  void end_copy(bool deliver);
  bool copy_ordered(std::uint64_t offset, AppendFile* to);
  [[nodiscard]] std::optional<std::string> rewrite_in_input_order();

  AppendFile file_;
  std::optional<AppendFile> copy_;
  Order order_;
  Durability durability_;
  std::function<std::vector<Fd>()> written_files_;
  std::function<void()> before_writing_;
  std::function<int(std::uint64_t)> certain_;
  std::uint64_t syncing_ = 0;  ///< bytes that will be certain when sync_ is idle; 0: not needed
  bool has_files_ = false;     ///< results so far have needed files
  FileSync sync_;
  std::uint64_t unsynced_ = 0;  ///< results since the last sync began
  Nanos synced_ = 0;            ///< when that sync began
  LineReader reader_;
  ShardTasks tasks_;
  LineOffsets offsets_;            ///< of the lines of tasks_, one after the other; only for Order::kInput
  std::uint64_t next_copied_ = 0;  ///< which of them the copy waits for
  std::uint64_t copied_ = 0;       ///< bytes of the file that the copy has, for Order::kCompletion
  std::uint64_t last_fed_ = 0;     ///< size of the file when the copy was last fed
  bool ending_ = false;            ///< tasks that are absent now never ran
  bool out_of_order_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace mprun
