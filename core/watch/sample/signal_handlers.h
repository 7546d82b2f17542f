// Which functions handle the signals that a process catches, by the preload library's table, and whether such a handler
// may let a blocked thread go on. /proc shows only which signals are caught.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "procfs/process_facts.h"
#include "wire/signal_handlers.h"

namespace mprun {

struct SignalHandler {
  std::string module;  ///< the path of the file that has its code; empty: it is not known
  std::uint64_t address = 0;
  std::uint32_t installations = 0;  ///< how often one was installed for the signal; 0: not known
  std::uint64_t signals = 0;        ///< all that this function handles; bit N-1: signal N
};
/// By signal.
using SignalHandlers = std::array<SignalHandler, MPRUN_SIGNALS>;

/// `maps`: /proc/TID/maps, parsed; `tid`: a living thread of the process.
[[nodiscard]] SignalHandlers signal_handlers(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps);

/// True for a program (its path) whose handlers are known, by its source, to let no thread go on: all that it has are
/// its own.
[[nodiscard]] bool is_self_contained(std::string_view program);

/// True for a handler that is known to let no thread go on: it ends the process, or looks at something and returns.
/// `name` gives the function at its address ("node::SignalExit(int, ...) (node)"), if its module has others.
[[nodiscard]] bool releases_no_thread(int signal, const SignalHandler& handler,
                                      const std::function<std::string(std::uint64_t)>& name);

/// True for a handler that may let a thread go on, but is not meant to end a wait: it only changes how the program
/// works (xargs starts more programs at the same time).
[[nodiscard]] bool is_for_programs_at_work(int signal, const SignalHandler& handler);

/// True for the handler by which a Java virtual machine begins to end: shutdown hooks, if the program has any, run then
/// (jvm_only_ends() in jvm.h).
[[nodiscard]] bool ends_jvm(int signal, const SignalHandler& handler);

/// True for bash's handler of a signal for which the script has a `trap`, or what may be that. `handler`: bash's.
[[nodiscard]] bool is_trap_of_bash(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps,
                                   const SignalHandler& handler);

/// True for CPython's own image: its program, or libpython.
[[nodiscard]] bool is_python_module(std::string_view path);

/// True for the program of a shell.
[[nodiscard]] bool is_shell(std::string_view program);

}  // namespace mprun
