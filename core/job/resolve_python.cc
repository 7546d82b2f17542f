#include <sys/stat.h>
#include <unistd.h>

#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun::job {

namespace {

bool is_executable(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// The file that a shell would execute for `name`; "" if there is none. An empty entry of PATH, which to a shell is the
/// current directory, is skipped: it is most likely a stray colon.
std::string find_on_path(const Resolving& job, const std::string& name) {
  const std::string* variable = job.variable("PATH");
  const std::string path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : *variable;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string entry = path.substr(begin, end - begin);
    begin = end + 1;
    if (entry.empty()) continue;
    std::string candidate = absolute_path(absolute_path(job.around.current_directory, entry), name);
    if (is_executable(candidate)) return candidate;
  }
  return {};
}

Error cannot_launch(const Resolving& job, const std::string& words) {
  constexpr const char* kCure = "\n  name the interpreter: --python EXE, in the spec \"python\": \"...\"";
  Error error = job.layers.is_set("/python") ? job.layers.error("/python", words + kCure) : usage_error(words + kCure);
  error.fault = Fault::kLaunch;
  return error;
}

Result<std::string> find_python(const Resolving& job) {
  const std::string wanted = job.text("/python");
  if (wanted.find('/') != std::string::npos) {
    std::string path = job.path_from_owner("/python", wanted);
    if (is_executable(path)) return path;
    return cannot_launch(job, "found " + in_quotes(wanted) + ", but there is no executable file " + path);
  }
  if (wanted.empty()) {
    const std::string* venv = job.variable("VIRTUAL_ENV");
    if (venv != nullptr && !venv->empty()) {
      std::string path = absolute_path(absolute_path(job.around.current_directory, *venv), "bin/python");
      if (is_executable(path)) return path;
      return cannot_launch(job, "the active virtual environment has no executable " + path + " (VIRTUAL_ENV is set)");
    }
  }
  const std::string name = wanted.empty() ? "python3" : wanted;
  std::string path = find_on_path(job, name);
  if (!path.empty()) return path;
  return cannot_launch(job, "there is no " + in_quotes(name) + " on PATH");
}

}  // namespace

Result<void> resolve_python(Resolving& job) {
  if (job.spec.kind == JobKind::kCommand || !job.spec.script_is_python) return {};
  Result<std::string> path = find_python(job);
  if (!path) return std::move(path).error();
  job.spec.python = *path;
  job.layers.put("/python", std::move(*path));
  return {};
}

}  // namespace mprun::job
