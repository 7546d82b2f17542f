#include "watch/sample/trace_access.h"

#include <unistd.h>

#include "procfs/process_facts.h"
#include "watch/sample/syscall_table.h"

namespace mprun {

std::optional<AccessProblem> access_problem_here(ProcSource* proc) {
  const auto self = proc->link("self");
  const std::string pid = std::to_string(getpid());
  if (!self) {
    return AccessProblem{
        "/proc is not there, or may not be read: hangs cannot be found, nor can processes that are left",
        "mount it: mount -t proc proc /proc", true};
  }
  if (*self != pid) {
    return AccessProblem{"/proc shows another PID namespace: hangs cannot be found, nor can processes that are left",
                         "mount the one of this namespace: unshare --mount-proc, or mount -t proc proc /proc", true};
  }
  const auto runs = proc->read(pid + "/schedstat");
  if (!proc->read(pid + "/syscall") || !runs || !parse_run_count(*runs)) {
    return AccessProblem{
        "this kernel does not show what threads wait for (/proc/PID/syscall, schedstat): hangs cannot be "
        "found",
        "use a kernel with CONFIG_HAVE_ARCH_TRACEHOOK and CONFIG_SCHED_INFO, outside of a sandbox", true};
  }
  if (!can_prove_here()) {
    return AccessProblem{
        "mprun does not know the system calls of this architecture: no hang can be proved, only reported as "
        "stalled",
        "--stall-seconds sets after how long", false};
  }
  return std::nullopt;
}

AccessProblem access_problem_of(ProcSource* proc, pid_t pid, const std::string& command) {
  const auto text = proc->read(std::to_string(pid) + "/status");
  const auto status = text ? parse_status(*text) : std::nullopt;
  const auto yama = proc->read("sys/kernel/yama/ptrace_scope").value_or("0");
  if (geteuid() == 0) {
    return {"mprun needs the capability CAP_SYS_PTRACE for it", "run it outside of the container", false};
  }
  if (!status || status->uid != geteuid()) {
    return {"it is another user's", "run " + command + " as that user, or as root", false};
  }
  if (yama.substr(0, 1) != "0") {
    return {"kernel.yama.ptrace_scope is " + yama.substr(0, 1),
            "run " + command + " as root" +
                (yama[0] == '3' ? "" : ", or allow it by `sudo sysctl kernel.yama.ptrace_scope=0`"),
            false};
  }
  return {"it has rights of its own (set-user-ID, capabilities) or hides its memory", "run " + command + " as root",
          false};
}

}  // namespace mprun
