// TreeSnapshot: what the judge may look at in addition to the samples: descriptors, mappings, memory, sockets, locks
// and children of the processes of a tree. Read lazily, each thing once, while the threads stand still (sample.h), so
// that all of it belongs to the same instant. A new one is made for every judgement.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "sync/sync_segment.h"
#include "watch/judge/assumptions.h"
#include "watch/judge/library_waits.h"
#include "watch/sample/sample.h"
#include "watch/sample/signal_handlers.h"
#include "watch/stacks/go_runtime.h"
#include "watch/stacks/jvm.h"
#include "watch/stacks/python_stack.h"

namespace mprun {

class NativeStacks;

/// What a tree of processes shares with those outside it.
struct TreeBoundary {
  /// What a process outside the tree holds too, by identity_of().
  std::set<std::uint64_t> foreign;
  /// Every process of the tree was started below mprun: no process outside can have anything else that they share.
  bool closed = true;
  /// If it is not closed: whether the memory of a file may be mapped outside too. Empty: it may.
  std::function<bool(const Mapping&)> shares_memory;
  /// Why a process may get a timer signal (alarm.h); `tid`: a living thread of it. Empty: none may.
  std::function<std::string(pid_t pid, pid_t tid)> why_alarm_may_come;
  /// The thread that forked a process; nullopt: not known. Empty: not known for any process.
  struct Forker {
    pid_t pid = 0, tid = 0;
  };
  std::function<std::optional<Forker>(pid_t child)> forker_of;
  /// The memory that the processes of a job share by name; nullptr: they have none.
  const SyncSegment* sync = nullptr;
  /// Processes that only fork workers, when mprun asks for that.
  std::set<pid_t> hosts;
  /// mprun will start another process, for work that no process has yet.
  bool may_start = false;
  /// When mprun began, by CLOCK_REALTIME, as file times are: what the tree has made is younger. 0: not known.
  Nanos begun = 0;
  Assumptions assumptions;
};

/// What a descriptor leads to, as one number: the same in all processes that hold it. 0: it has no known identity.
[[nodiscard]] std::uint64_t identity_of(const Descriptor& descriptor);

/// What `processes` hold, by identity_of(). For a tree that mprun started: mprun itself is one of them.
[[nodiscard]] std::set<std::uint64_t> inodes_held_by(ProcSource* proc, const std::vector<pid_t>& processes);

class TreeSnapshot {
 public:
  /// A process of the tree.
  struct Process {
    pid_t pid = 0, parent = 0;
    pid_t speaker = 0;  ///< a living thread to read from: the pid is of no use once the first thread has ended
    std::string name;
    std::uint64_t start_ticks = 0;                          ///< since boot, in clock ticks; 0: not known
    bool moved = false;                                     ///< one of its threads has run between the samples
    bool hidden = false;                                    ///< mprun may not look at it
    bool forked = false;                                    ///< it runs what its parent ran, without an exec
    bool uses_cuda = false;                                 ///< it has the event handler of CUDA's driver
    std::uint64_t caught_signals = 0, ignored_signals = 0;  ///< bit N-1: signal N
    std::vector<pid_t> threads, children;
    std::vector<pid_t> ended_children;    ///< which it has not reaped yet
    std::vector<Descriptor> descriptors;  ///< sorted by number
    /// Why nothing can be proved about it ("catches signal 10"); empty: something can.
    std::string acts_alone;
  };
  enum class End { kRead, kWrite };

  /// `sample` and `proc` must outlive it.
  TreeSnapshot(ProcSource* proc, const Sample* sample, TreeBoundary boundary);

  [[nodiscard]] const std::map<pid_t, Process>& processes() const { return processes_; }
  /// All threads of these processes, as they were sampled.
  [[nodiscard]] const std::vector<ThreadSample>& threads() const { return sample_->threads; }
  /// nullptr: not of this tree.
  [[nodiscard]] const Process* process(pid_t pid) const;
  [[nodiscard]] const Descriptor* descriptor(pid_t pid, std::int64_t number) const;
  /// Processes of the tree that hold the given end of a pipe, or any descriptor of a socket.
  [[nodiscard]] std::vector<pid_t> pipe_holders(std::uint64_t inode, End end) const;
  [[nodiscard]] std::vector<pid_t> socket_holders(std::uint64_t inode) const;
  /// Processes of the tree that hold an eventfd with this id; nullopt: with any id.
  [[nodiscard]] std::vector<pid_t> eventfd_holders(std::optional<std::uint64_t> id) const;
  /// Processes of the tree that hold the master of /dev/pts/N; none if a process outside holds it too.
  [[nodiscard]] std::vector<pid_t> terminal_masters(std::uint32_t terminal) const;
  [[nodiscard]] std::vector<pid_t> everybody() const;
  /// All processes except the hosts of a job, which only fork workers when mprun asks for one.
  [[nodiscard]] std::vector<pid_t> all_but_hosts() const;
  [[nodiscard]] bool may_start() const { return boundary_.may_start; }
  /// The processes of the same program: forked from it, or its workers of multiprocessing, or which may be that.
  [[nodiscard]] std::vector<pid_t> relatives_of(pid_t pid) const;
  /// Its parent, or, of a child of a forkserver of multiprocessing, the process that has started that.
  [[nodiscard]] pid_t starter_of(const Process& process);
  [[nodiscard]] std::vector<pid_t> started_by(pid_t pid);
  [[nodiscard]] bool is_forkserver(const Process& process);
  /// Its parent, itself, and all processes that were started after it or, for what can be seen, at the same time.
  [[nodiscard]] std::vector<pid_t> parent_and_younger(pid_t pid) const;
  /// The children whose end may let threads of the process go on, by its handler for that. tree_snapshot_signals.cc.
  [[nodiscard]] std::vector<pid_t> children_that_signal(const Process& process);
  [[nodiscard]] bool is_foreign(const Descriptor& descriptor) const { return is_foreign(identity_of(descriptor)); }
  [[nodiscard]] bool is_foreign(std::uint64_t identity) const { return boundary_.foreign.count(identity) != 0; }
  [[nodiscard]] bool is_closed() const { return boundary_.closed; }
  /// Makes foreign what a process outside holds too, since the tree has passed it on (SCM_RIGHTS). True if there is any
  /// that was not known. Reads the descriptors of all processes, once. tree_snapshot_outside.cc.
  [[nodiscard]] bool find_holders_outside();
  /// Whether a process outside holds a timerfd of the tree, as far as find_holders_outside() has seen.
  [[nodiscard]] bool has_timer_outside() const { return has_timer_outside_; }
  [[nodiscard]] std::optional<TreeBoundary::Forker> forker_of(pid_t child) const {
    return boundary_.forker_of ? boundary_.forker_of(child) : std::nullopt;
  }
  /// Why it is not certain which process of the tree holds what; empty: all of it is known.
  [[nodiscard]] const std::string& blind_spot() const { return blind_spot_; }
  struct Sharers {
    std::vector<pid_t> processes;  ///< of the tree: those that have the memory, or can get at it
    std::string why_live;          ///< why others have it, or why that is not known; empty: no others have it
    std::string why_reachable;     ///< why others may yet open it; empty: they cannot
  };
  /// The sharers of a shared mapping of `pid`. tree_snapshot_outside.cc.
  [[nodiscard]] Sharers sharers_of(pid_t pid, const Mapping& mapping);
  /// Whether a process outside may have memory or a pipe in common with this one, besides its standard streams.
  /// tree_snapshot_outside.cc.
  [[nodiscard]] bool may_share_with_outside(pid_t pid);
  /// The named object of a job that is waited for at the address; nullopt: there is none. tree_snapshot_outside.cc.
  [[nodiscard]] std::optional<SyncWord> sync_word(const Mapping& mapping, std::uint64_t address) const;
  /// The processes that could change such a word, unless it is a lock's. tree_snapshot_outside.cc.
  [[nodiscard]] Sharers sharers_of_sync() const;
  /// The tree's age: what is no older was made when it was there already; 0: not known. tree_snapshot_outside.cc.
  [[nodiscard]] Nanos age() const;
  /// The process of the tree that has the thread; 0: none.
  [[nodiscard]] pid_t process_of_thread(pid_t tid) const;
  /// Whether a thread of `pid` traces a process, and so learns of its stops and end. tree_snapshot_outside.cc.
  [[nodiscard]] bool is_tracer(pid_t pid);
  /// Whether a process outside the tree has the file open that `descriptor` leads to, as far as can be seen.
  /// tree_snapshot_outside.cc.
  [[nodiscard]] bool is_open_outside(const Descriptor& descriptor);
  /// Whether `pid` is a living process outside the tree. tree_snapshot_outside.cc.
  [[nodiscard]] bool lives_outside(pid_t pid) const;
  /// The TCP sockets that `pid` may have. wait_descriptor.cc.
  [[nodiscard]] const std::vector<TcpSocket>& tcp_sockets(pid_t pid);
  /// nullptr: not known as one of AF_UNIX.
  [[nodiscard]] const UnixSocket* unix_socket(std::uint64_t inode);
  /// Empty: not known.
  [[nodiscard]] const std::vector<Mapping>& maps(pid_t pid);
  /// Processes of the tree that share the address space of `pid`, itself among them.
  [[nodiscard]] std::vector<pid_t> sharing_memory(pid_t pid);
  [[nodiscard]] const std::vector<FileLock>& file_locks();
  /// The Python stacks of a process; read if a thread seems to wait for a GIL, or in a library that polls.
  [[nodiscard]] const PythonStacks& python(pid_t pid);
  /// nullptr: it is no thread of Python's, or was not read.
  [[nodiscard]] const PythonThread* python_thread(pid_t pid, pid_t tid);
  /// The C stack of a blocked thread, innermost first (NativeStack); the first one of a process costs some
  /// milliseconds.
  [[nodiscard]] std::vector<std::string> native_frames(const ThreadSample& thread);
  /// What a process does in torch.distributed.
  [[nodiscard]] RankPhase rank_phase(pid_t pid);
  /// The Java virtual machine of a process; nullptr: it has none, or that shows nothing.
  [[nodiscard]] const Jvm* jvm(pid_t pid);
  /// The runtime of a Go program; nullptr: it is none, or that shows nothing.
  [[nodiscard]] const GoRuntime* go(pid_t pid);
  /// The GILs that threads were found to wait for, by gils().
  [[nodiscard]] const std::map<pid_t, std::vector<PythonGil>>& known_gils() const { return gils_; }
  [[nodiscard]] const std::vector<PythonGil>& gils(pid_t pid);
  [[nodiscard]] ProcSource* proc() { return proc_; }
  [[nodiscard]] const Assumptions& assumptions() const { return boundary_.assumptions; }
  /// Records that one of the assumptions was needed, in words ("process 12 may be continued").
  void assume(std::string what);
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }
  [[nodiscard]] bool assumes_no_signal() const { return assumes_no_signal_; }
  /// The same, for an object that clients outside may well use: a server that has nothing to do looks the same.
  void assume_no_client(std::string what) {
    assumes_no_client_ = true;
    assume(std::move(what));
  }
  [[nodiscard]] bool assumes_no_client() const { return assumes_no_client_; }
  /// The same, for a thread that wakes up now and then: a program that idles may show so that it is alive.
  void assume_beat(std::string what) {
    assumes_beat_ = true;
    assume(std::move(what));
  }
  [[nodiscard]] bool assumes_beat() const { return assumes_beat_; }
  /// The same, for a time limit: a program that does something now and then looks the same.
  void assume_no_limit(std::string what) {
    assumes_no_limit_ = true;
    assume(std::move(what));
  }
  [[nodiscard]] bool assumes_no_limit() const { return assumes_no_limit_; }
  /// The same, for a runtime that wakes up to look around, which lets no thread of the program go on as a rule.
  void assume_idle_runtime(std::string what);
  [[nodiscard]] bool assumes_only_idle_runtimes() const { return assumed_.size() == idle_runtimes_; }
  /// Whether nothing is assumed but that timers whose handlers do nothing release no thread.
  [[nodiscard]] bool assumes_only_timers() const { return assumed_.size() == tame_timers_; }

  /// Reads memory of a process of the tree; false if not all of it can be read.
  [[nodiscard]] bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size);
  template <typename Word>
  [[nodiscard]] std::optional<Word> word(pid_t pid, std::uint64_t address) {
    Word value{};
    if (!memory(pid, address, &value, sizeof value)) return std::nullopt;
    return value;
  }

 private:
  struct Holder {
    pid_t pid;
    std::uint64_t flags;
  };
  void read_process(Process* process);
  void index_descriptors(const Process& process);
  void find_blind_spot();
  [[nodiscard]] std::string why_tree_is_not_whole();
  void find_shared_memory();
  void find_sharers_outside(pid_t pid, const Mapping& mapping, bool* has_name, Sharers* sharers);
  [[nodiscard]] bool waits_for_work_of_ranks(pid_t pid);
  [[nodiscard]] bool is_mapped_outside(const Mapping& mapping);
  [[nodiscard]] bool is_timer_of_tree(pid_t holder, int number);
  [[nodiscard]] bool has_own_descriptors(const Process& process, pid_t tid) const;
  [[nodiscard]] bool expects_interrupt(const Process& process, const SignalHandler& handler);
  [[nodiscard]] std::uint64_t interpreters_own(const Process& process, const StatusFile& status,
                                               const SignalHandlers& handlers);
  [[nodiscard]] std::uint64_t without_effect(const Process& process);
  [[nodiscard]] bool may_be_worker(const Process& process) const;
  [[nodiscard]] pid_t program_of(pid_t pid) const;
  struct Release {
    std::string why;              ///< a signal may let a thread go on; empty: none may
    bool may_be_awaited = false;  ///< by a program that idles until it comes
  };
  [[nodiscard]] Release release_by_signals(const Process& process, const StatusFile& status);
  [[nodiscard]] bool are_tame(const Process& process, const std::vector<int>& signals);
  [[nodiscard]] std::string why_it_acts_alone(Process* process, const StatusFile& status);

  ProcSource* proc_;
  const Sample* sample_;
  TreeBoundary boundary_;
  std::vector<std::string> assumed_;
  bool assumes_no_signal_ = false, assumes_no_client_ = false, assumes_no_limit_ = false, assumes_beat_ = false;
  std::size_t tame_timers_ = 0, idle_runtimes_ = 0;
  std::map<pid_t, Process> processes_;
  std::string blind_spot_;
  std::unordered_map<std::uint64_t, std::vector<Holder>> holders_;  ///< by identity_of()
  std::unordered_map<pid_t, std::vector<Mapping>> maps_;
  std::map<pid_t, std::vector<pid_t>> sharing_memory_;                               ///< empty: not read yet
  std::optional<std::set<std::pair<std::uint64_t, std::uint64_t>>> mapped_outside_;  ///< devices and inodes
  std::map<std::uint64_t, bool> open_outside_;                                       ///< by identity_of()
  bool knows_holders_outside_ = false, has_timer_outside_ = false;
  std::optional<std::set<pid_t>> tracers_;
  std::optional<std::unordered_map<std::uint64_t, UnixSocket>> sockets_;
  std::map<std::string, std::vector<TcpSocket>> tcp_;  ///< by network namespace
  std::optional<std::vector<FileLock>> locks_;
  std::map<pid_t, PythonStacks> python_;
  std::map<pid_t, std::shared_ptr<NativeStacks>> native_;
  std::map<pid_t, RankPhase> rank_phases_;
  std::map<pid_t, bool> forkservers_;
  std::map<pid_t, std::optional<Jvm>> jvms_;
  std::map<pid_t, std::optional<GoRuntime>> go_;
  std::map<pid_t, std::vector<PythonGil>> gils_;
};

}  // namespace mprun
