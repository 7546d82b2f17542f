// TensorFiles: the tensors that tasks return, in tensors/ of the run directory. Workers write the files. This class, in
// mprun's one thread, checks what each result claims, knows which rows are done, and finishes the files at the end of
// the job. Owns the folder's descriptor and a few words for each file and each range of rows.
//
// A row counts as done only if a result arrived and its claims held. All other rows are zeros in the end, whatever a
// dying worker may have left there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "events/job_event.h"
#include "formats/npy_reader.h"
#include "json/json_fwd.h"
#include "os/fd.h"
#include "record/row_set.h"
#include "wire/tensor_claims.h"

namespace mprun {

class TensorFiles : public Sink {
 public:
  /// `tasks`, `rows`: InputSource::total() and rows().
  TensorFiles(const std::string& run_dir, std::optional<std::uint64_t> tasks, std::optional<std::uint64_t> rows);

  /// Why the claims of a task that has returned (TaskReport::tensors) do not hold, human-readable; nullopt: they hold,
  /// and count when an event says that the task ended well. `read`: TaskReport::read; one look at a file serves all
  /// claims that were read before it.
  [[nodiscard]] std::optional<std::string> check(TaskId task, std::string_view input, std::string_view claims,
                                                 Nanos read = monotonic_now());
  void on_event(const JobEvent& event) override;

  /// Counts what a result of an earlier session names (its field "tensors") as done, if it still exists; false if it
  /// does not. Call it before any check().
  [[nodiscard]] bool restore(TaskId task, const Json& tensors);
  /// Gives all restored files the headers that workers expect while a job runs. Also fails if restore() could not look
  /// at a file that may exist: what it holds must not be done again. True: there are tensors, and all that was restored
  /// is on disk.
  [[nodiscard]] Result<bool> go_on();
  /// Of all tensors of tasks that ended well.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The files written by tasks that ended since the last call, and by finish(), to be brought to disk, and the
  /// directories in which they were made.
  [[nodiscard]] std::vector<Fd> take_written();

  /// Gives every gathered file its number of rows and zeros where none was done; removes what dead workers left. Call
  /// it once, when no process writes any more. Returns human-readable warnings.
  [[nodiscard]] std::vector<std::string> finish();
  /// For summary.json: name, file, dtype, shape, rows_done and rows_missing of each gathered file; the number of tasks
  /// with a file of their own. Call it after finish().
  [[nodiscard]] Json to_json() const;

 private:
  /// One NAME.npy, as it was when its first row was claimed.
  struct Gathered {
    NpyHeader header;
    std::string dtype;  ///< as numpy writes it: "<f4"
    std::uint64_t row_bytes = 0;
    ino_t inode = 0;
    std::uint64_t size = 0;  ///< of the file at the last look
    Nanos looked = 0;        ///< the monotonic clock before that look
    RowSet done;
    std::uint64_t rows = 0;  ///< in the end; before that the number its maker was given, 0 if unknown
    bool written = false;    ///< since take_written()
    bool named = false;      ///< take_written() has seen it
  };
  /// What a task that has returned claims.
  struct Pending {
    TaskId task = 0;
    Nanos read = 0;  ///< the monotonic clock when mprun had read it
    std::vector<std::pair<Gathered*, std::pair<std::uint64_t, std::uint64_t>>> rows;  ///< file and range of rows
    bool own_file = false;
    std::uint64_t own_bytes = 0;  ///< of that file
  };

  [[nodiscard]] std::optional<std::string> check_rows(std::string_view input, const TensorClaim& claim);
  [[nodiscard]] std::optional<std::string> check_file(Gathered* gathered, const TensorClaim& claim);
  [[nodiscard]] std::optional<std::string> look_again(std::string_view name, Gathered* gathered);
  void count(const Pending& claimed);
  [[nodiscard]] std::optional<std::string> check_own_file(const std::vector<std::string_view>& names);
  [[nodiscard]] bool open_folder();
  [[nodiscard]] Result<Fd> open_one(const std::string& file, int access);
  void note_error(int error_number);
  [[nodiscard]] Result<Gathered*> find(std::string_view name);
  [[nodiscard]] Result<Gathered> read(const std::string& name);
  void take_folders(std::vector<Fd>* written);
  [[nodiscard]] Result<void> finish_file(const std::string& name, Gathered* gathered);
  [[nodiscard]] std::vector<std::string> names() const;
  void remove_leftovers() const;
  void remove_broken();

  std::string path_;
  Fd folder_;
  std::optional<std::uint64_t> tasks_, rows_;
  std::map<std::string, Gathered, std::less<>> files_;
  std::optional<Pending> pending_;     ///< what is being checked
  std::map<TaskId, Pending> claimed_;  ///< claims that hold, of tasks that have not ended yet
  std::uint64_t own_files_ = 0, bytes_ = 0;
  std::vector<TaskId> own_written_;  ///< tasks with a file of their own, since take_written()
  std::uint64_t ended_ = 0;          ///< one past the last task that ended
  bool named_ = false;               ///< take_written() has seen the folder
  int first_error_ = 0;              ///< errno: files may exist, but could not be looked at
};

/// Whether mprun accepts this name for a tensor: a plain file name of at most 200 bytes that is not hidden.
[[nodiscard]] bool is_tensor_name(std::string_view name);

}  // namespace mprun
