// ProcSource: everything that mprun learns about watched processes comes through here: the files of /proc, their
// memory, the sockets that connect them. Three kinds: the live system, a recording that repeats answers of the live
// system, and a recorder that makes such a recording while it is used. So a real hang can be judged again in a test.
// Nothing here changes or disturbs a watched process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace mprun {

/// One socket of AF_UNIX, as the kernel knows it (sock_diag(7)).
struct UnixSocket {
  std::uint64_t inode = 0;  ///< as in "socket:[INODE]"
  std::uint64_t peer = 0;   ///< of the connected socket; until the connection is accepted, of the listener; 0: none
  bool listening = false;
  std::string name;          ///< the path it is bound to; empty: none, or an abstract one
  bool datagram = false;     ///< else a stream, or packets in sequence
  std::uint32_t unread = 0;  ///< bytes that it has received and the program has not read; of a listener: connections
  bool operator==(const UnixSocket&) const = default;
};

/// A FIFO of the file system, by how long ago it and its folder were made.
struct NamedPipe {
  Nanos age = 0, folder_age = 0;
  bool folder_is_private = false;  ///< ours, and closed to all other users
};

class ProcSource {
 public:
  virtual ~ProcSource() = default;

  /// The content of a file, by its path below /proc ("12/task/13/syscall"); nullopt if it cannot be read as a whole.
  [[nodiscard]] virtual std::optional<std::string> read(const std::string& path) = 0;
  /// The target of a symbolic link ("12/fd/3", "12/exe").
  [[nodiscard]] virtual std::optional<std::string> link(const std::string& path) = 0;
  /// The names in a folder, "." and ".." left out, sorted; numbers by their value. nullopt where it cannot be read.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> list(const std::string& path) = 0;
  /// Copies `size` bytes at `address` of the process; false if not all of them can be read: `to` holds anything then.
  [[nodiscard]] virtual bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) = 0;
  /// All sockets of AF_UNIX in our network namespace; nullopt where the kernel does not list them.
  [[nodiscard]] virtual std::optional<std::vector<UnixSocket>> unix_sockets() = 0;
  /// After which time reading or writing this socket ends by itself (the shortest of SO_RCVTIMEO, SO_SNDTIMEO and
  /// TCP_USER_TIMEOUT), or reading this slave of a pseudo-terminal (VTIME of termios(3)); 0: never; nullopt: not known,
  /// or it is neither. Holds a copy of the descriptor (pidfd_getfd) during the call. A recording only says whether
  /// there is a limit: its answer is 1.
  [[nodiscard]] virtual std::optional<Nanos> time_limit(pid_t pid, int fd) = 0;
  /// Whether two processes have one address space (kcmp, address_spaces.h); nullopt: not known.
  [[nodiscard]] virtual std::optional<bool> same_memory(pid_t one, pid_t other) = 0;
  /// Whether two threads have one table of descriptors (kcmp); nullopt: not known.
  [[nodiscard]] virtual std::optional<bool> same_files(pid_t /*one*/, pid_t /*other*/) { return std::nullopt; }
  /// Whether two descriptors are of one open file (kcmp); nullopt: not known. Recordings keep none.
  [[nodiscard]] virtual std::optional<bool> same_file(pid_t /*one*/, int /*fd*/, pid_t /*other*/, int /*other_fd*/) {
    return std::nullopt;
  }
  /// The names of files in `folder`, as `pid` sees it, that have this inode number; nullopt: not known.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> names_of(pid_t /*pid*/, const std::string& /*folder*/,
                                                                         std::uint64_t /*inode*/) {
    return std::nullopt;
  }
  /// The FIFO that `path` is, as `pid` sees it; nullopt: it is none, or not known. Recordings keep none.
  [[nodiscard]] virtual std::optional<NamedPipe> named_pipe(pid_t /*pid*/, const std::string& /*path*/) {
    return std::nullopt;
  }
  /// The process that last changed a semaphore of a System V set of our IPC namespace, perhaps ended since; 0: none
  /// that can be seen here; nullopt: not known. Recordings keep none.
  [[nodiscard]] virtual std::optional<pid_t> semaphore_user(int /*set*/, unsigned /*number*/) { return std::nullopt; }
  /// Whether `folder`, as `pid` sees it, is ours and closed to all other users; nullopt: not known.
  [[nodiscard]] virtual std::optional<bool> is_private_folder(pid_t /*pid*/, const std::string& /*folder*/) {
    return std::nullopt;
  }
};

/// The live system. `root` stands for /proc.
[[nodiscard]] std::unique_ptr<ProcSource> live_proc(const std::string& root = "/proc");

/// Passes every question on and keeps the answers.
class ProcRecorder : public ProcSource {
 public:
  explicit ProcRecorder(ProcSource* asked);
  ~ProcRecorder() override;
  std::optional<std::string> read(const std::string& path) override;
  std::optional<std::string> link(const std::string& path) override;
  std::optional<std::vector<std::string>> list(const std::string& path) override;
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override;
  std::optional<std::vector<UnixSocket>> unix_sockets() override;
  std::optional<Nanos> time_limit(pid_t pid, int fd) override;
  std::optional<bool> same_memory(pid_t one, pid_t other) override;
  std::optional<bool> same_files(pid_t one, pid_t other) override;
  std::optional<std::vector<std::string>> names_of(pid_t pid, const std::string& folder, std::uint64_t inode) override;
  std::optional<bool> is_private_folder(pid_t pid, const std::string& folder) override;

  /// The recording: text, a line or block for every question. Where a question was asked more than once with different
  /// answers, they are answered in that order, the last one from then on.
  [[nodiscard]] std::string recording() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Answers as recorded; what was never asked cannot be read. Errors: `recording` makes no sense.
[[nodiscard]] Result<std::unique_ptr<ProcSource>> recorded_proc(std::string_view recording);

}  // namespace mprun
