#include "os/library_search.h"

#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "os/fd.h"
#include "os/process.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

/// Ours, with the dynamic linker asked to list what it loads instead of running the program.
std::vector<std::string> listing_environment(const std::vector<std::string>& names) {
  std::string preload = "LD_PRELOAD=";
  for (const std::string& name : names) preload += name + " ";
  std::vector<std::string> environment{"LD_TRACE_LOADED_OBJECTS=1", std::move(preload)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("LD_PRELOAD=", 0) != 0) environment.push_back(text);
  }
  return environment;
}

}  // namespace

std::map<std::string, std::string> find_libraries(const std::vector<std::string>& names) {
  std::map<std::string, std::string> found;
  auto pipe = make_pipe();
  if (!pipe) return found;
  SpawnPlan plan;
  plan.argv = {"/proc/self/exe"};  // any program will do: it does not run
  plan.env = listing_environment(names);
  plan.fds = {{null_device(), STDIN_FILENO}, {pipe->write.get(), STDOUT_FILENO}, {null_device(), STDERR_FILENO}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  if (pid < 0) return found;
  pipe->write.reset();
  const auto text = read_all(pipe->read.get());
  uninterrupted([&] { return waitpid(pid, nullptr, 0); });
  std::istringstream lines(text ? *text : std::string());
  for (std::string name, arrow, path, address; lines >> name;) {  // NAME => PATH (ADDRESS), or NAME (ADDRESS)
    for (const std::string& wanted : names) {
      if (name == wanted && lines >> arrow >> path && arrow == "=>") found[name] = path;
    }
  }
  return found;
}

}  // namespace mprun
