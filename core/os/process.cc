#include "os/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "os/close_descriptors.h"
#include "os/dead_mans_switch.h"
#include "os/fd.h"
#include "os/memory_policy.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

// Everything the child needs, laid out before the fork: between fork and exec nothing allocates.
struct Prepared {
  const char* file = nullptr;
  std::vector<char*> argv, env;
  const char* directory = nullptr;
  const SpawnPlan* plan = nullptr;
  std::vector<cpu_set_t> cpus;  // one set, as large as it has to be
  NodeMask nodes{};
  int first_free_fd = 3;
  int failures = -1;  // the pipe for failures; exec closes it
  pid_t parent = 0;
};

void add_cpu(int cpu, std::vector<cpu_set_t>* set) {
  const auto index = static_cast<std::size_t>(cpu);
  if (index / CPU_SETSIZE >= set->size()) set->resize(index / CPU_SETSIZE + 1);  // of zeros
  CPU_SET(index % CPU_SETSIZE, &(*set)[index / CPU_SETSIZE]);
}

Prepared prepare(const SpawnPlan& plan, int failures) {
  Prepared ready;
  ready.plan = &plan;
  ready.failures = failures;
  ready.file = (plan.file.empty() ? plan.argv[0] : plan.file).c_str();
  for (const auto& arg : plan.argv) ready.argv.push_back(const_cast<char*>(arg.c_str()));
  ready.argv.push_back(nullptr);
  for (const auto& variable : plan.env) ready.env.push_back(const_cast<char*>(variable.c_str()));
  ready.env.push_back(nullptr);
  if (!plan.directory.empty()) ready.directory = plan.directory.c_str();
  for (const auto& [ours, number] : plan.fds) ready.first_free_fd = std::max(ready.first_free_fd, number + 1);
  for (const int cpu : plan.cpus) add_cpu(cpu, &ready.cpus);
  ready.nodes = node_mask(plan.nodes);
  ready.parent = getpid();
  return ready;
}

// Context: child between vfork and exec. Only async-signal-safe calls; memory may be the parent's.
[[noreturn]] void fail(const Prepared& ready, const char* stage) {
  SpawnFailure failure;
  std::memset(static_cast<void*>(&failure), 0, sizeof failure);  // the padding is written, too
  failure.stage = stage;                                         // a literal: at the same address in the parent
  failure.error_number = errno;
  uninterrupted([&] { return write(ready.failures, &failure, sizeof failure); });
  _exit(127);
}

// Context: child between vfork and exec. Moves `fd` above every number that the child must have.
int move_away(const Prepared& ready, int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, ready.first_free_fd);
  if (moved < 0) fail(ready, "descriptors");
  return moved;
}

// Context: child between vfork and exec.
void move_descriptors(Prepared& ready) {
  ready.failures = move_away(ready, ready.failures);
  std::array<int, 16> safe{};
  std::size_t count = 0;
  for (const auto& [ours, number] : ready.plan->fds) safe[count++] = ours < 0 ? -1 : move_away(ready, ours);
  count = 0;
  for (const auto& [ours, number] : ready.plan->fds) {
    const int from = safe[count++];
    if (from < 0) {
      close(number);
    } else if (dup2(from, number) < 0) {
      fail(ready, "descriptors");
    }
  }
  if (!ready.plan->close_others) return;
  if (dup3(ready.failures, ready.first_free_fd, O_CLOEXEC) < 0 && errno != EINVAL) fail(ready, "descriptors");
  ready.failures = ready.first_free_fd;  // EINVAL: it had that number
  close_from(ready.first_free_fd + 1);
}

// Context: child between vfork and exec. Limits that are set already may exceed what setrlimit allows (fs.nr_open).
bool limit_open_files(const rlimit& wanted) {
  rlimit now{};
  const bool same = getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == wanted.rlim_cur;
  return same || setrlimit(RLIMIT_NOFILE, &wanted) == 0;
}

// Context: child between vfork and exec. Does not return.
[[noreturn]] void become_program(Prepared& ready) {
  const SpawnPlan& plan = *ready.plan;
  prctl(PR_SET_PDEATHSIG, plan.inheritance.parent_death_signal);
  if (plan.dies_with >= 0) die_with(plan.dies_with);
  if (getppid() != ready.parent) _exit(127);  // the parent died before the lines above took effect
  if (plan.process_group) {
    if (setpgid(0, *plan.process_group) != 0) fail(ready, "process group");
  } else if (plan.new_session && setsid() < 0) {
    fail(ready, "session");
  }
  const std::size_t cpu_bytes = ready.cpus.size() * sizeof(cpu_set_t);
  if (cpu_bytes > 0 && sched_setaffinity(0, cpu_bytes, ready.cpus.data()) != 0) fail(ready, "binding");
  if (!plan.nodes.empty() && !bind_memory(ready.nodes)) fail(ready, "membind");
  if (plan.inheritance.subreaper != 0) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (ready.directory != nullptr && chdir(ready.directory) != 0) fail(ready, "working directory");
  move_descriptors(ready);
  if (plan.open_files && !limit_open_files(*plan.open_files)) fail(ready, "limit of open files");
  if (!take_on(plan.inheritance.signals)) fail(ready, "signals");
  execve(ready.file, ready.argv.data(), ready.env.data());
  fail(ready, "exec");
}

// Waits for the exec. True: the child reported a failure instead, or its report cannot be read.
bool read_failure(int fd, SpawnFailure* failure) {
  std::size_t had = 0;
  ssize_t size = 0;
  do {
    size = uninterrupted([&] { return read(fd, reinterpret_cast<char*>(failure) + had, sizeof *failure - had); });
    if (size > 0) had += static_cast<std::size_t>(size);
  } while (size > 0);
  if (size < 0) *failure = {"pipe", errno};
  return size < 0 || had > 0;
}

}  // namespace

pid_t spawn_process(const SpawnPlan& plan, SpawnFailure* failure) {
  if (plan.fds.size() > 16) {
    *failure = {"descriptors", E2BIG};
    return -1;
  }
  auto report = make_pipe();
  if (!report) {
    *failure = {"pipe", errno};
    return -1;
  }
  Prepared ready = prepare(plan, report->write.get());
  *failure = {};
  // vfork: the child borrows this memory until it execs, so no page table is copied. Nothing here relies on
  // that: valgrind and ThreadSanitizer make it a fork, so the child's errors come by a pipe.
  const pid_t pid = vfork();            // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) become_program(ready);  // NOLINT(clang-analyzer-unix.Vfork)
  if (pid < 0) {
    *failure = {"fork", errno};
    return -1;
  }
  report->write.reset();
  if (!read_failure(report->read.get(), failure)) return pid;
  kill(pid, SIGKILL);  // it is ending, unless we could not read its report
  uninterrupted([&] { return waitpid(pid, nullptr, 0); });
  return -1;
}

std::string find_program(const std::string& name, const std::string& path, const std::string& directory,
                         bool* not_executable) {
  *not_executable = false;
  const auto usable = [&](const std::string& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
      *not_executable = *not_executable || errno == EACCES;
      return false;
    }
    if (S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0) return true;
    *not_executable = true;
    return false;
  };
  if (name.find('/') != std::string::npos) {
    const std::string file = name[0] == '/' || directory.empty() ? name : directory + "/" + name;
    return usable(file) ? file : "";
  }
  std::string_view rest = path.empty() ? std::string_view("/usr/local/bin:/usr/bin:/bin") : std::string_view(path);
  while (!name.empty()) {
    const auto colon = rest.find(':');
    std::string file(rest.substr(0, colon));
    const bool is_folder = !file.empty();
    file.append("/").append(name);
    if (is_folder && usable(file)) return file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return "";
}

void become_subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

rlimit limits_of(int resource) {
  rlimit limits{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(static_cast<__rlimit_resource_t>(resource), &limits);
  return limits;
}

std::optional<rlimit> raise_open_files() {
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return std::nullopt;
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

}  // namespace mprun
