#include "run/short_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/exit_codes.h"
#include "launch/environment.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/uninterrupted.h"

namespace mprun {

Result<ProgramText> run_program_for_text(std::vector<std::string> argv) {
  const Environment environment = own_environment();
  const auto path = environment.find("PATH");
  const std::string name = argv.front();
  bool not_executable = false;
  argv.front() = find_program(name, (path == environment.end() ? "" : path->second + ":") + "/usr/bin:/bin:/usr/sbin",
                              "", &not_executable);
  if (argv.front().empty()) return usage_error("there is no " + name + " on PATH: is this a machine of the cluster?");
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  SpawnPlan plan;
  plan.argv = std::move(argv);
  plan.env = flatten(environment, {});
  plan.fds = {{null_device(), STDIN_FILENO}, {pipe->write.get(), STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  if (pid < 0) return system_error("cannot start " + name, failure.error_number);
  pipe->write.reset();
  auto text = read_all(pipe->read.get());
  siginfo_t info{};
  uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED); });
  if (!text) return text.error();
  return ProgramText{exit_code_of(end_from_info(info)), std::move(*text)};
}

}  // namespace mprun
