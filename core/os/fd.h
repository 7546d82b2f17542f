// Fd: the owner of one file descriptor; pipes, socket pairs and memory files made CLOEXEC from birth.
// Used by every module that touches the system. Move-only; closes what it owns.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace mprun {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// The two ends of a pipe.
struct Pipe {
  Fd read;
  Fd write;
};

/// A connected pair of stream sockets.
struct SocketPair {
  Fd ours;
  Fd theirs;
};

[[nodiscard]] Result<Pipe> make_pipe();
[[nodiscard]] Result<SocketPair> make_socket_pair();

/// Sends `fd` over a connected socket, with one byte. A descriptor in transit stays open. False with errno.
[[nodiscard]] bool send_descriptor(int socket, int fd);

/// The mode of a folder that only its owner may read.
inline constexpr mode_t kPrivateFolder = 0700;

/// open(2) and openat(2) with O_CLOEXEC, repeated while a signal interrupts them. Empty on failure, with errno.
[[nodiscard]] Fd open_fd(const std::string& path, int flags, unsigned mode = 0666);
[[nodiscard]] Fd open_fd_at(int folder, const std::string& path, int flags, unsigned mode = 0666);

/// /dev/null, for reading and writing; opened once, for all.
[[nodiscard]] int null_device();

/// open(2) with O_CLOEXEC; `flags` and `mode` as there. The error names the path.
[[nodiscard]] Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0666);

/// Why a file must not be replaced as a whole, by rename(2), which would put a plain file in the place of a device or a
/// pipe: "is a directory", "is no regular file". Empty if it may be, or is not there.
[[nodiscard]] std::string why_not_replaced(const std::string& path);

void set_nonblocking(int fd);

/// Reads a blocking file descriptor to its end; on failure errno is that of read().
[[nodiscard]] Result<std::string> read_all(int fd);

/// Writes all of `data` to a blocking file descriptor.
[[nodiscard]] Result<void> write_all(int fd, std::string_view data);

/// Calls pread(2) until `size` bytes are read or the file ends; returns the number of bytes, or -1 with errno.
[[nodiscard]] ssize_t pread_all(int fd, void* to, std::size_t size, std::uint64_t at);

/// pwrite(2) of all `size` bytes; false with errno.
[[nodiscard]] bool pwrite_all(int fd, const void* from, std::size_t size, std::uint64_t at);

/// An internal error with the text of errno: "what: No such file or directory".
[[nodiscard]] Error system_error(const std::string& what, int error_number);

}  // namespace mprun
