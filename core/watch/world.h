// World: what the judge may look at beside the samples: descriptors, mappings, memory, sockets, locks and children of
// the processes of a tree. Read lazily, each thing once, while the threads stand still (sample.h), so that all of it
// belongs to the same instant. Made anew for every judgement.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "watch/python_stack.h"
#include "watch/sample.h"

namespace mprun {

/// What a tree of processes shares with those outside of it.
struct Outside {
  /// Pipes and sockets that somebody outside of the tree holds too, by inode.
  std::set<std::uint64_t> foreign;
  /// Where it is not closed: files that somebody outside of the tree has open, by path.
  std::set<std::string> foreign_files;
  /// Every process of the tree was started below mprun: what else they share, nobody outside can have.
  bool closed = true;
  /// Where it is not closed: whether the memory of a file may be mapped outside too. Empty: it may.
  std::function<bool(const Mapping&)> shares_memory;
  /// Processes that have asked for a signal by a clock (alarm, setitimer), which /proc does not show.
  std::set<pid_t> alarms;
};

/// For a tree that mprun started: what mprun itself, and the processes named, hold.
[[nodiscard]] std::set<std::uint64_t> inodes_held_by(ProcSource* proc, const std::vector<pid_t>& processes);

class World {
 public:
  /// A process of the tree.
  struct Process {
    pid_t pid = 0, parent = 0;
    std::string name;
    bool forked = false;  ///< it runs what its parent ran, without an exec
    std::uint64_t caught_signals = 0;
    std::vector<pid_t> threads, children;
    std::vector<Descriptor> descriptors;
    /// Why nothing can be proved of it ("catches signal 10"); empty: something can.
    std::string acts_alone;
  };
  enum class End { kRead, kWrite };

  /// `sample` and `proc` outlive it.
  World(ProcSource* proc, const Sample* sample, Outside around);

  [[nodiscard]] const std::map<pid_t, Process>& processes() const { return processes_; }
  /// nullptr: not of this tree.
  [[nodiscard]] const Process* process(pid_t pid) const;
  [[nodiscard]] const Descriptor* descriptor(pid_t pid, std::int64_t number) const;
  /// Processes of the tree that hold the given end of a pipe, or any descriptor of a socket.
  [[nodiscard]] std::vector<pid_t> pipe_holders(std::uint64_t inode, End end) const;
  [[nodiscard]] std::vector<pid_t> socket_holders(std::uint64_t inode) const;
  [[nodiscard]] bool is_foreign(std::uint64_t inode) const { return around_.foreign.count(inode) != 0; }
  [[nodiscard]] bool is_foreign_file(const std::string& path) const { return around_.foreign_files.count(path) != 0; }
  [[nodiscard]] bool is_closed() const { return around_.closed; }
  /// Of a shared mapping without a name.
  [[nodiscard]] bool is_mapped_outside(const Mapping& mapping) const {
    return !around_.closed && (!around_.shares_memory || around_.shares_memory(mapping));
  }
  /// nullptr: not known as one of AF_UNIX.
  [[nodiscard]] const UnixSocket* unix_socket(std::uint64_t inode);
  [[nodiscard]] const std::vector<Mapping>& maps(pid_t pid);
  /// Processes of the tree that share the address space of `pid`, itself among them.
  [[nodiscard]] std::vector<pid_t> sharing_memory(pid_t pid);
  [[nodiscard]] const std::vector<FileLock>& file_locks();
  /// Of the Python in a process; asked for where a thread seems to wait for one.
  [[nodiscard]] const std::vector<PythonGil>& gils(pid_t pid);
  /// All those that were asked for.
  [[nodiscard]] const std::map<pid_t, std::vector<PythonGil>>& known_gils() const { return gils_; }
  [[nodiscard]] ProcSource* proc() { return proc_; }

  template <typename Word>
  [[nodiscard]] std::optional<Word> word(pid_t pid, std::uint64_t address) {
    Word value{};
    if (!proc_->memory(pid, address, &value, sizeof value)) return std::nullopt;
    return value;
  }

 private:
  void read_process(pid_t pid);
  [[nodiscard]] std::string why_it_acts_alone(const Process& process, const StatusFile& status) const;

  ProcSource* proc_;
  Outside around_;
  std::map<pid_t, Process> processes_;
  std::unordered_map<pid_t, std::vector<Mapping>> maps_;
  std::optional<std::unordered_map<std::uint64_t, UnixSocket>> sockets_;
  std::optional<std::vector<FileLock>> locks_;
  std::map<pid_t, std::vector<PythonGil>> gils_;
};

}  // namespace mprun
