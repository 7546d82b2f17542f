#include "machine.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "commands.h"
#include "job/allocators.h"
#include "launch/environment.h"
#include "os/fd.h"
#include "os/library_search.h"
#include "os/process.h"
#include "os/uninterrupted.h"
#include "procfs/process_ref.h"
#include "run/resolve_request.h"
#include "run/version.h"

namespace mprun {
namespace {

constexpr Nanos kPythonSeconds = 20 * kNanosPerSecond;
constexpr int kOldestMinor = 11;  // as adapters/python/bootstrap.py has it

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Reads until the end, or until kPythonSeconds have passed.
std::string read_for_a_while(int fd) {
  std::string text;
  const Nanos end = monotonic_now() + kPythonSeconds;
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const Nanos left = end - monotonic_now();
    const int patience = static_cast<int>(left / 1000000) + 1;
    if (left <= 0 || uninterrupted([&] { return poll(&wait, 1, patience); }) < 0) return text;
    std::array<char, 256> part{};
    if (wait.revents == 0) continue;
    const ssize_t size = uninterrupted([&] { return read(fd, part.data(), part.size()); });
    if (size <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
}

// Prints a version, and how the name of an extension for a free-threaded Python ends; runs in any version.
constexpr const char* kAskPython = R"(
import sys
print('%d.%d.%d' % sys.version_info[:3])
if 't' in getattr(sys, 'abiflags', ''):
    import importlib.machinery
    print(importlib.machinery.EXTENSION_SUFFIXES[0])
)";

struct PythonAnswer {
  std::string version;           ///< "3.11.2"; "": the interpreter does not say
  std::string extension_suffix;  ///< ".cpython-314t-x86_64-linux-gnu.so"; "": it is not free-threaded
};

PythonAnswer ask_python(const std::string& python) {
  auto pipe = make_pipe();
  if (!pipe) return {};
  SpawnPlan plan;
  plan.argv = {python, "-I", "-S", "-c", kAskPython};
  plan.env = flatten(own_environment(), {});
  plan.fds = {{pipe->write.get(), 1}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  pipe->write.reset();
  if (pid < 0) return {};
  const std::string text = read_for_a_while(pipe->read.get());
  ProcessRef::of_child(pid).signal(SIGKILL);
  uninterrupted([&] { return waitpid(pid, nullptr, 0); });
  std::istringstream lines(text);
  PythonAnswer answer;
  std::getline(lines, answer.version);
  std::getline(lines, answer.extension_suffix);
  return answer;
}

MachineFeature examine_python(const CommandLine& line, const Installation& installation) {
  MachineFeature feature{"python", false, true, "", "runs Python jobs"};
  CommandLine probe = line;
  probe.layer.value["script"] = installation.bootstrap;  // any script: the spec says which interpreter runs it
  const auto resolved = resolve_request(probe);
  if (!resolved) {
    feature.value = resolved.error().message.substr(0, resolved.error().message.find('\n'));
    return feature;
  }
  const auto [version, suffix] = ask_python(resolved->spec.python);
  feature.value = resolved->spec.python + " (" + (version.empty() ? "does not run" : version) + ")";
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return feature;
  feature.ok = major > 3 || (major == 3 && minor >= kOldestMinor);
  if (!feature.ok) feature.use = "too old: mprun's workers need 3." + std::to_string(kOldestMinor) + " or later";
  std::error_code error;
  const auto extension = std::filesystem::path(installation.bootstrap).parent_path() / "mprun" / ("_mprun" + suffix);
  if (feature.ok && !suffix.empty() && !std::filesystem::exists(extension, error)) {
    feature.ok = false;
    feature.use = "free-threaded: build mprun with -DMPRUN_FREE_THREADED_PYTHONS=" + resolved->spec.python;
  }
  return feature;
}

// Asks the loader itself, as for LD_PRELOAD.
MachineFeature examine_libomp() {
  MachineFeature feature{"libomp", false, false, "not installed",
                         "may be put in the place of a libgomp that makes trouble"};
  for (const char* name : {"libomp.so.5", "libomp.so", "libiomp5.so"}) {
    void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) continue;
    link_map* map = nullptr;
    feature.ok = true;
    feature.value = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : name;
    return feature;  // and stays loaded: libomp does not unload well
  }
  return feature;
}

MachineFeature examine_allocators() {
  const auto found = find_libraries(allocator_libraries());
  std::string names = "system", missing;
  for (const Allocator& allocator : allocators()) {
    if (!path_of(allocator, found).empty()) {
      names += ", " + allocator.name;
    } else {
      missing += (missing.empty() ? "; not installed: " : ", ") + allocator.name + " (" + allocator.package + ")";
    }
  }
  return {"allocators", true, false, names, "what \"allocator\" can be" + missing};
}

MachineFeature examine_call(const char* name, bool needed, const char* use, long result) {
  const int failure = errno;
  const bool ok = result >= 0;
  return {name, ok, needed, ok ? "yes" : std::string("no: ") + std::strerror(failure), use};
}

long try_pidfd_open() {
  const long fd = syscall(SYS_pidfd_open, getpid(), 0);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd;
}

long try_memfd() {
  const int fd = memfd_create("mprun-doctor", MFD_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd;
}

long try_process_vm_readv() {
  int from = 1, to = 0;
  const iovec local{&to, sizeof to}, remote{&from, sizeof from};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

MachineFeature examine_ptrace_scope() {
  MachineFeature feature{"ptrace_scope", true, false, first_line("/proc/sys/kernel/yama/ptrace_scope"), ""};
  const std::string& scope = feature.value;
  if (scope.empty()) {
    feature.value = "none";
    feature.use = "Yama is not there: any process of yours may be looked into";
  } else if (scope == "0") {
    feature.use = "any process of yours may be looked into";
  } else if (scope == "1") {
    feature.use = "processes that mprun started may be looked into";
  } else {
    feature.ok = false;
    feature.use = "only root may look into processes";
    feature.limit =
        "hangs are not proved, since only root may look into processes: `sysctl "
        "kernel.yama.ptrace_scope=1` lets mprun";
  }
  return feature;
}

}  // namespace

std::vector<MachineFeature> examine_machine(const CommandLine& line, const Installation& installation) {
  utsname system{};
  uname(&system);
  const auto& adapters = installation.adapters;
  const std::string syscall_line = first_line("/proc/self/syscall");
  std::vector<MachineFeature> features{
      {"mprun", true, true, version_and_commit(), ""},
      examine_python(line, installation),
      {"preload library", true, true, adapters.preload, "makes fork() safe"},
      {"sitecustomize", true, true, adapters.site, "makes fork() safe: the part that is Python"},
      examine_libomp(),
      examine_allocators(),
      {"kernel", true, true, system.release, ""},
  };
  features.push_back(examine_call(
      "pidfd_open", true, "fork and forkserver need it: a host sends a pidfd of each worker", try_pidfd_open()));
  features.push_back(examine_call("close_range", true, "keeps descriptors from new processes",
                                  syscall(__NR_close_range, ~0U, ~0U, 0)));
  features.push_back(examine_call("memfd_create", true, "the claim table that workers share", try_memfd()));
  int subreaper = 0;
  features.push_back(examine_call("child subreaper", true, "no process of a job gets away",
                                  prctl(PR_GET_CHILD_SUBREAPER, &subreaper)));
  features.push_back({"/proc/self/syscall", !syscall_line.empty(), false, syscall_line.empty() ? "no" : "yes",
                      "shows which threads wait and which work",
                      syscall_line.empty()
                          ? "hangs are not proved, since the kernel does not show what threads wait for: "
                            "time limits (--task-timeout, --stall-seconds) still end them"
                          : ""});
  features.push_back(examine_call("process_vm_readv", false, "looks into processes that hang", try_process_vm_readv()));
  features.push_back(examine_ptrace_scope());
  for (MachineFeature& limit : examine_limits()) features.push_back(std::move(limit));
  return features;
}

}  // namespace mprun
