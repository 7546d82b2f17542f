// ProcessHistory: remembers what cannot be seen afterwards about the processes of a tree: which thread forked each of
// them, and how many threads there were; which processes ended, how and when. Gets the preload library's notes
// (adapters/preload/lifecycle_notes.c) and what the watch sees; lives in the supervisor. Owns a pidfd for every process
// that it knows and that has not ended.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "os/fd.h"
#include "procfs/process_facts.h"
#include "procfs/process_ref.h"
#include "watch/hang.h"
#include "wire/notes.h"

namespace mprun {

struct ForkRecord {
  pid_t parent = 0;
  pid_t parent_tid = 0;  ///< the thread that forked
  unsigned threads = 1;  ///< that the parent had
};

/// True if the process is known to have ended badly, and mprun did not bring that about.
[[nodiscard]] bool is_violent(const RecordedDeath& death);

class ProcessHistory {
 public:
  static constexpr std::size_t kMostMembers = 8192, kMostDeaths = 256;

  [[nodiscard]] static Result<ProcessHistory> create(ProcSource* proc);

  /// Readable when a process has ended: then call take_ends().
  [[nodiscard]] int fd() const { return epoll_.get(); }
  void take_ends();

  /// Takes a note. False: it is not meant for the history. A malformed note is ignored.
  bool receive(const AdapterNote& note);
  /// Adds a process that the watch has found: one without the preload library does not report itself.
  void meet(pid_t pid);
  /// mprun now ends the process, or what it has left behind: its end and those of its descendants are no evidence.
  void expect_end(pid_t pid);

  /// False for the history of a tree that mprun has not watched: it knows of no death and no fork.
  [[nodiscard]] bool has_members() const { return !members_.empty() || !deaths_.empty(); }
  /// The last deaths, oldest first. If there are too many, those that ended well are dropped first.
  [[nodiscard]] const std::deque<RecordedDeath>& deaths() const { return deaths_; }
  /// How many children of `parent` ended badly since `when` (wall clock).
  [[nodiscard]] std::size_t violent_deaths(pid_t parent, Nanos when) const;
  /// How many of these ran what the parent runs, and had not executed another program.
  [[nodiscard]] std::size_t violent_deaths_of_forked(pid_t parent, Nanos when) const;
  [[nodiscard]] const ForkRecord* fork_of(pid_t child) const;
  /// True if another process of the tree has sent it SIGTERM and its end is not known yet.
  [[nodiscard]] bool was_sent_sigterm(pid_t pid) const { return sent_sigterm_.count(pid) != 0; }

 private:
  struct Member {
    ProcessRef process;
    pid_t parent = 0;
    std::optional<ForkRecord> fork;
    bool forked = false;  ///< it runs what its parent ran; one just forked may be about to execute another program
    bool met_again = false;
    bool by_mprun = false;              ///< expect_end()
    std::optional<bool> is_forkserver;  ///< of multiprocessing; not asked for as long as it has no child
  };
  ProcessHistory(Fd epoll, ProcSource* proc, std::size_t most_members)
      : epoll_(std::move(epoll)), proc_(proc), most_members_(most_members) {}
  void note_fork(pid_t pid, const ForkRecord& fork);
  /// Who counts as the parent of a child of this process: for a forkserver, the process that has started it.
  [[nodiscard]] pid_t starter_of_children(pid_t parent);
  void note_end(pid_t pid, pid_t reaper, ProcessEnd end);
  [[nodiscard]] RecordedDeath* death_of_one_met(pid_t pid, pid_t parent);
  enum class Followed { kYes, kNo, kGone };
  Followed follow(pid_t pid, Member member);
  void record_end(pid_t pid, pid_t parent, std::optional<ProcessEnd> end, bool forked = false);
  void note_silent(pid_t pid);
  void bury(pid_t pid);
  void bury_if_ended(pid_t pid);

  Fd epoll_;
  ProcSource* proc_;
  std::size_t most_members_;
  std::map<pid_t, Member> members_;
  std::deque<RecordedDeath> deaths_;
  std::set<pid_t> sent_sigterm_;
  std::set<pid_t> silent_dead_;  ///< those of `deaths_` whose fork was not reported
};

}  // namespace mprun
