#include "procfs/live_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/fd.h"

namespace mprun {
namespace {

bool read_memory_file(pid_t pid, std::uint64_t address, char* to, std::size_t size) {
  const std::string path = "/proc/" + std::to_string(pid) + "/mem";
  const Fd file = open_fd(path, O_RDONLY | O_NOCTTY);
  return file && pread_all(file.get(), to, size, address) == static_cast<ssize_t>(size);
}

}  // namespace

bool read_live_memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {  // one call moves 2 GiB at most
    char* const rest = static_cast<char*>(to) + done;
    const iovec local{rest, size - done};
    const iovec remote{reinterpret_cast<void*>(address + done), size - done};
    const ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (count < 0 && (errno == EPERM || errno == ENOSYS)) {
      return read_memory_file(pid, address + done, rest, size - done);
    }
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace mprun
