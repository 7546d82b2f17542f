// mprun init: writes a first spec for a script. Python's own parser reads the script (adapters/python/init_spec.py).
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "commands.h"
#include "run/installation.h"
#include "run/resolve_request.h"

namespace mprun {

int init(const CommandLine& line) {
  const auto installation = find_installation();
  if (!installation) return report_error(installation.error());
  CommandLine probe = line;
  probe.layer.value["script"] = installation->bootstrap;  // any script: the spec says which interpreter runs it
  const auto resolved = resolve_request(probe);
  if (!resolved) return report_error(resolved.error());
  const std::string& python = resolved->spec.python;
  const std::string helper = std::filesystem::path(installation->bootstrap).replace_filename("init_spec.py").string();
  execl(python.c_str(), python.c_str(), "-I", "-B", helper.c_str(), line.script.c_str(), nullptr);
  return report_error(usage_error("init: " + python + " cannot be run: " + std::strerror(errno)));
}

}  // namespace mprun
