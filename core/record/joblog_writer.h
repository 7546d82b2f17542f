// JoblogWriter: joblog.tsv with GNU parallel's nine columns, so that tools made for `parallel --joblog` read it. A Sink
// in mprun's one thread; owns the file. Lines are in the order of completion, as in GNU parallel.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "events/job_event.h"
#include "job/spec.h"
#include "record/append_file.h"

namespace mprun {

/// Appends the text of the column Command for a task; the writer escapes and cuts it.
using CommandText = std::function<void(std::string*, const TaskEnded&)>;

class JoblogWriter : public Sink {
 public:
  /// Longer commands are cut to this many bytes and end with "...".
  static constexpr std::size_t kLongestCommand = std::size_t{4} * 1024;

  /// Creates the file with its header line; kUsage if it cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<JoblogWriter>> open(const std::string& path, CommandText command);

  /// Continues after the whole lines of an earlier session; creates the file if there are none.
  [[nodiscard]] static Result<std::unique_ptr<JoblogWriter>> reopen(const std::string& path, CommandText command);

  /// Appends the line of a TaskEnded; writes out what is buffered at a Pulse; ignores the rest.
  void on_event(const JobEvent& event) override;
  /// Writes out all that is buffered; false if the file has failed, now or before.
  bool flush() { return file_.flush(); }
  /// Also brings it to disk. While the job runs, a power cut may take lines of it that results.jsonl keeps.
  bool sync();
  /// The first failure: lines are missing from joblog.tsv, results are not.
  [[nodiscard]] const std::optional<Error>& failure() const { return file_.failure(); }

 private:
  JoblogWriter(AppendFile file, CommandText command);
  void append_line(const TaskEnded& ended);

  AppendFile file_;
  CommandText command_;
};

/// The Command of a function job: `script.py:function INPUT`; of ranks: `script.py`.
[[nodiscard]] CommandText function_command_text(const JobSpec& spec);

/// Appends a word as a POSIX shell needs it: quoted only if necessary.
void append_shell_word(std::string* out, std::string_view word);

}  // namespace mprun
