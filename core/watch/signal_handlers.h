// Who handles the signals that a process catches: by the preload library's table, and whether such a handler may let
// a blocked thread go on. /proc says only which signals are caught.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "procfs/process_facts.h"
#include "wire/signal_handlers.h"

namespace mprun {

/// By signal: the file whose code handles it. "": it is not known.
using HandlerModules = std::array<std::string, MPRUN_SIGNALS>;

/// `maps`: /proc/TID/maps, parsed; `tid`: a living thread of the process.
[[nodiscard]] HandlerModules handler_modules(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps);

/// True of a handler that is known to let nobody go on: it ends the process, or looks at something and returns.
/// `module`: the path of its file.
[[nodiscard]] bool releases_nobody(int signal, std::string_view module);

/// True of CPython's own image: its program, or libpython.
[[nodiscard]] bool is_python_module(std::string_view path);

}  // namespace mprun
