// What may let a process go on without any thread of its tree: a signal that it catches, a timer, a tracer.
#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "watch/judge/tree_snapshot.h"
#include "watch/sample/signal_handlers.h"
#include "watch/stacks/native_stack.h"
#include "watch/stacks/python_signals.h"

namespace mprun {
namespace {

constexpr std::string_view kOfGo = "runtime.";  // so begin the names of functions of Go's runtime

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

constexpr std::uint64_t bits_of(std::initializer_list<int> signals) {
  std::uint64_t set = 0;
  for (const int signal : signals) set |= bit_of(signal);
  return set;
}

// Signals whose handlers do not make a blocked process one that wakes up by itself: the end of a child, which counts as
// a process that can wake it; faults; those of glibc (32, 33). A handler for a request to end is not among them: a
// process that waits until asked to end is idle.
constexpr std::uint64_t kFaults = bits_of({SIGSEGV, SIGBUS, SIGFPE, SIGILL});
constexpr std::uint64_t kExpected = kFaults | bits_of({SIGCHLD, 32, 33});

// Those that mostly come from the process itself. But others may send them too: systemd sends SIGABRT to a service that
// does not report in time.
constexpr std::uint64_t kOfCrashes = bits_of({SIGABRT, SIGTRAP, SIGSYS, SIGPIPE});

// Whether the handler of a signal is the one that reports crashes, as of faulthandler or glog: it handles faults too,
// after which no thread goes on.
bool reports_crashes(int signal, const SignalHandler& handler, const StatusFile& status) {
  if ((kOfCrashes & bit_of(signal)) == 0) return false;
  return handler.address != 0 ? (handler.signals & bit_of(SIGSEGV)) != 0 : (status.caught & kFaults) == kFaults;
}

int lowest_signal(std::uint64_t set) {
  int signal = 1;
  while ((set & 1) == 0) {
    set >>= 1;
    ++signal;
  }
  return signal;
}

}  // namespace

// CPython catches SIGINT in every program, to raise KeyboardInterrupt, and a shell does while a command runs: it says
// nothing about them, unless it is a trap.
bool TreeSnapshot::expects_interrupt(const Process& process, const SignalHandler& handler) {
  const std::string program = proc_->link(std::to_string(process.speaker) + "/exe").value_or("");
  const auto& mapped = maps(process.pid);
  if (is_shell(program)) {
    const bool is_bash = handler.address != 0 && program.ends_with("/bash");  // others have one function for all
    return !is_bash || !is_trap_of_bash(proc_, process.speaker, mapped, handler);
  }
  return is_python_module(program) || std::any_of(mapped.begin(), mapped.end(), [](const Mapping& mapping) {
           return is_python_module(mapping.path);
         });
}

// The signals whose handlers are an interpreter's own: no function in Python runs. Besides SIGINT's, CPython itself has
// only those of faulthandler, which print stacks.
std::uint64_t TreeSnapshot::interpreters_own(const Process& process, const StatusFile& status,
                                             const SignalHandlers& handlers) {
  const auto in_python = signals_handled_in_python(proc_, process.speaker, maps(process.pid));
  std::uint64_t own = 0;
  for (std::uint64_t rest = status.caught & ~in_python.value_or(0); rest != 0; rest &= rest - 1) {
    const int signal = lowest_signal(rest);
    const SignalHandler& handler = handlers.at(static_cast<std::size_t>(signal));
    const bool is_of_python = in_python && is_python_module(handler.module);
    const bool may_be = !in_python || handler.address == 0;  // not another library's
    const bool is_interrupt = signal == SIGINT && (is_of_python || may_be) && expects_interrupt(process, handler);
    if (is_of_python || is_interrupt) own |= bit_of(signal);
  }
  return own;
}

// The signals that do nothing to a process: those it ignores, and those that all its threads block. A thread that is in
// a handler blocks its signal as a rule. A thread that waits for a blocked signal is live by its own wait.
std::uint64_t TreeSnapshot::without_effect(const Process& process) {
  std::uint64_t blocked = ~std::uint64_t{0};
  for (const pid_t tid : process.threads) {
    const auto text = proc_->read(std::to_string(process.pid) + "/task/" + std::to_string(tid) + "/status");
    const auto status = text ? parse_status(*text) : std::nullopt;
    blocked &= status ? status->blocked : 0;
  }
  return process.ignored_signals | blocked;
}

// A signal from outside may come at any time: what counts is whether its handler could let a thread go on.
TreeSnapshot::Release TreeSnapshot::release_by_signals(const Process& process, const StatusFile& status) {
  Release release;
  std::uint64_t unexpected = status.caught & ~kExpected;
  if (unexpected == 0) return release;
  unexpected &= ~without_effect(process);
  if (unexpected == 0) return release;
  const SignalHandlers handlers = signal_handlers(proc_, process.speaker, maps(process.pid));
  unexpected &= ~interpreters_own(process, status, handlers);
  if (unexpected == 0) return release;
  const bool are_known =
      std::any_of(handlers.begin(), handlers.end(), [](const auto& one) { return one.address != 0; });
  if (!are_known && is_self_contained(proc_->link(std::to_string(process.speaker) + "/exe").value_or(""))) {
    return release;
  }
  std::unique_ptr<NativeStacks> symbols;  // costs some milliseconds
  const auto name = [&](std::uint64_t address) {
    if (!symbols) symbols = std::make_unique<NativeStacks>(process.pid);
    return symbols->function_at(address);
  };
  const GoRuntime* const runtime = go(process.pid);
  for (; unexpected != 0; unexpected &= unexpected - 1) {
    const int signal = lowest_signal(unexpected);
    const SignalHandler& handler = handlers.at(static_cast<std::size_t>(signal));
    if (reports_crashes(signal, handler, status) || releases_no_thread(signal, handler, name)) continue;
    // Go's own handler: by default, such a signal ends the program, or lets goroutines take turns. With cgo, libc
    // installs it.
    const bool is_of_go =
        runtime != nullptr && (handler.address == 0 || name(handler.address).compare(0, kOfGo.size(), kOfGo) == 0);
    if (is_of_go && (runtime->awaited & bit_of(signal)) == 0) continue;
    if (ends_jvm(signal, handler) && jvm_only_ends(proc_, process.speaker, maps(process.pid))) continue;
    const bool at_work = is_for_programs_at_work(signal, handler);
    if (at_work && !release.why.empty()) continue;
    const std::string& module = handler.module;
    release.why = "catches signal " + std::to_string(signal) +
                  (module.empty() ? "" : " (by " + module.substr(module.rfind('/') + 1) + ")");
    release.may_be_awaited = !at_work;
    if (!at_work) break;
  }
  return release;
}

std::vector<pid_t> TreeSnapshot::children_that_signal(const Process& process) {
  if ((process.caught_signals & bit_of(SIGCHLD)) == 0) return {};
  std::vector<pid_t> workers;
  for (const pid_t child : process.children) {
    const Process* const known = this->process(child);
    if (known == nullptr || may_be_worker(*known)) workers.push_back(child);
  }
  if (workers.size() == process.children.size()) return workers;
  return only_watches_workers_of_torch(proc_, process.speaker, maps(process.pid)) ? workers : process.children;
}

// Such a signal only interrupts a call, which begins again.
bool TreeSnapshot::are_tame(const Process& process, const std::vector<int>& signals) {
  const SignalHandlers handlers = signal_handlers(proc_, process.speaker, maps(process.pid));
  return std::all_of(signals.begin(), signals.end(), [&](int signal) {
    const auto index = static_cast<std::size_t>(signal);
    return index < handlers.size() &&
           releases_no_thread(signal, handlers.at(index), [](std::uint64_t) { return std::string(); });
  });
}

std::string TreeSnapshot::why_it_acts_alone(Process* process, const StatusFile& status) {
  if (status.tracer != 0) return "is traced by process " + std::to_string(status.tracer);
  // Its numbers for threads and children mean other ones here.
  if (status.namespaces > 1) return "is in a PID namespace of its own";
  if (Release release = release_by_signals(*process, status); !release.why.empty()) {
    const bool may_assume = boundary_.assumptions.handlers_release_no_thread;
    if (!may_assume || handlers_may_free_locks(proc_, process->speaker, maps(process->pid))) {
      return std::move(release.why);
    }
    assumes_no_signal_ = assumes_no_signal_ || release.may_be_awaited;
    assume("process " + std::to_string(process->pid) + " " + release.why + ", whose handler may let it go on");
  }
  auto timers = signals_of_timers(proc_, process->speaker);
  if (!timers) return "may have a POSIX timer";
  std::string alarm = boundary_.why_alarm_may_come ? boundary_.why_alarm_may_come(process->pid, process->speaker) : "";
  if (!timers->empty() || !alarm.empty()) {
    const std::uint64_t idle = without_effect(*process);
    std::erase_if(*timers, [idle](int signal) { return signal > 0 && (idle & bit_of(signal)) != 0; });
    if ((idle & bit_of(SIGALRM)) != 0) alarm.clear();
  }
  if (!timers->empty()) {
    if (!boundary_.assumptions.handlers_release_no_thread || !are_tame(*process, *timers)) return "has a POSIX timer";
    assume("process " + std::to_string(process->pid) + " has a POSIX timer, which may let it go on");
    ++tame_timers_;
  }
  for (const Descriptor& descriptor : process->descriptors) {
    if (descriptor.kind == Descriptor::Kind::kIoUring && descriptor.armed) return "uses io_uring";
    if (descriptor.kind == Descriptor::Kind::kUserfaultfd) return "uses userfaultfd";
  }
  return alarm;
}

}  // namespace mprun
