#include "watch/sample/signal_handlers.h"

#include <algorithm>
#include <csignal>
#include <initializer_list>

#include "watch/sample/preload_library.h"
#include "wire/alarms.h"

namespace mprun {
namespace {

constexpr std::size_t kMostOfLibrary = std::size_t{1} << 20U;  // read of its tables
constexpr int kWakeupOfJava = 62;  // SIGRTMAX - 2, by which it interrupts a thread whose file is closed

/// Signals, as a set of bits; kAny: all that the handler is installed for.
using Signals = std::uint64_t;
constexpr Signals kAny = ~Signals{0};
constexpr Signals signals(std::initializer_list<int> numbers) {
  Signals set = 0;
  for (const int number : numbers) set |= Signals{1} << (number - 1);
  return set;
}

/// A handler that lets no waiting thread go on, by its source.
struct TameHandler {
  std::string_view file;  ///< the name of a program's file, or a prefix of one up to ".so", or up to its version
  Signals signals;
  std::string_view function;  ///< a prefix of its name; empty: no other handler is in the file
  const char* what;
  std::uint32_t most = 0;  ///< a later installation for the same signal is the program's own; 0: none is
  Signals all = 0;         ///< the function handles all of these
};
// From the start, PHP has one function for these (zend_sigs in Zend/zend_signal.c), unless it was built without it.
constexpr Signals kOfPhp = signals({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2});
constexpr Signals kAllOfPhp = kOfPhp | signals({SIGPROF});
constexpr const char* kPhp =
    "PHP's Zend/zend_signal.c: ends the process; the script's pcntl_signal() installs it again";
constexpr const char* kPhpTimer = "the same for the limit of the script's time, which is set at the start: an error";
/// Not SIGCHLD: socat goes on when a program that it has started ends.
constexpr Signals kOfSocat =
    signals({SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGTERM, SIGUSR1});
constexpr const char* kLua = "lua.c: an error when the call has returned, as Ctrl-C raises in Python";
constexpr std::array kTameHandlers = {
    TameHandler{"libtorch_python.so", signals({SIGTERM}), "",
                "torch/csrc/DataLoader.cpp: a worker exits; or the signal is sent again, by default"},
    TameHandler{"libtorch_python.cpython", signals({SIGTERM}), "", "the same, as wheels call it"},
    TameHandler{"libucs.so", kAny, "",
                "UCX's src/ucs/debug/debug.c: prints a backtrace, or changes the level of its log"},
    TameHandler{"libreadline.so", signals({SIGWINCH}), "", "GNU readline's signals.c: redraws the line"},
    TameHandler{"readline.cpython", signals({SIGWINCH}), "",
                "CPython's Modules/readline.c: notes that the window's size has changed"},
    TameHandler{"node", signals({SIGINT}), "node::SignalExit", "Node.js's src/node.cc: ends the process"},
    TameHandler{"node", signals({SIGTERM}), "node::SignalExit", "the same"},
    TameHandler{"node", signals({SIGUSR1}),
                "node::inspector::", "src/inspector_agent.cc: starts the debugger's server"},
    TameHandler{"libnode.so", kAny, "", "the same, as Debian builds it, with a program's own handlers in libuv"},
    TameHandler{"libruby-3.", signals({SIGVTALRM}), "",
                "Ruby's thread_pthread.c: does nothing, and a program may not trap this signal (signal.c)"},
    TameHandler{"libruby.so.3.", signals({SIGVTALRM}), "", "the same, as Ruby's own build calls it"},
    TameHandler{
        "libruby-3.", kAny, "",
        "Ruby's signal.c: raises SignalException in the main thread; it is installed at the start, and again by "
        "the program's trap()",
        1},
    TameHandler{"libruby.so.3.", kAny, "", "the same", 1},
    TameHandler{"libgfortran.so", kAny, "", "GCC's libgfortran/runtime/compile_options.c: prints a backtrace and ends"},
    TameHandler{"libjvm.so", signals({SIGQUIT}), "",
                "HotSpot's src/hotspot/os/posix/signals_posix.cpp: prints all stacks"},
    TameHandler{"libjvm.so", signals({SIGUSR2}), "",
                "the same file: suspends a thread to look at its stack, and resumes it"},
    TameHandler{"libjvm.so", signals({SIGXFSZ}), "", "the same file: does nothing"},
    TameHandler{"libnet.so", signals({kWakeupOfJava}), "",
                "src/java.base/linux/native/libnet/linux_close.c: does nothing"},
    TameHandler{"libnio.so", signals({kWakeupOfJava}), "",
                "src/java.base/unix/native/libnio/ch/NativeThread.c: does nothing"},
    TameHandler{"php", kOfPhp, "", kPhp, 1, kAllOfPhp},
    TameHandler{"php7.", kOfPhp, "", kPhp, 1, kAllOfPhp},
    TameHandler{"php8.", kOfPhp, "", kPhp, 1, kAllOfPhp},
    TameHandler{"php", signals({SIGPROF}), "", kPhpTimer, 2, kAllOfPhp},
    TameHandler{"php7.", signals({SIGPROF}), "", kPhpTimer, 2, kAllOfPhp},
    TameHandler{"php8.", signals({SIGPROF}), "", kPhpTimer, 2, kAllOfPhp},
    TameHandler{"libgc.so", signals({SIGPWR, SIGXCPU}), "",
                "bdwgc's pthread_stop_world.c: suspends a thread for a collection of Guile's garbage, and resumes it"},
    TameHandler{"lua", signals({SIGINT}), "", kLua, 1},
    TameHandler{"lua5.", signals({SIGINT}), "", kLua, 1},
    TameHandler{"libexpect.so", signals({SIGINT, SIGTERM}), "",
                "Expect's exp_main_sub.c: ends, unless the script's trap installs it again", 1},
    TameHandler{"socat", kOfSocat, "", "socat.c: ends, or prints how far it is"},
    TameHandler{"bash", kAny, "termsig_sighandler", "GNU bash's sig.c: ends the shell"},
    TameHandler{"sort", kAny, "", "coreutils' src/sort.c: removes temporary files and ends"},
    TameHandler{"dd", kAny, "", "coreutils' src/dd.c: ends, or prints how far it is"},
    TameHandler{"gzip", kAny, "", "gzip.c: removes its output and ends"},
    TameHandler{"xz", kAny, "", "XZ Utils' src/xz/signals.c: ends; or mytime.c: prints how far it is"},
    TameHandler{"bzip2", kAny, "", "bzip2.c: removes its output and ends"},
    TameHandler{"make", kAny, "fatal_error_signal", "GNU make's commands.c: ends its children and itself"},
    TameHandler{"make", signals({SIGUSR1}), "", "main.c: prints more, or no longer"},
    TameHandler{"git", kAny, "", "tempfile.c and others: removes files and ends"},
};

/// Handlers that change how a program works, and are not meant to end its waits.
constexpr std::array kTuningHandlers = {
    TameHandler{"xargs", signals({SIGUSR1, SIGUSR2}), "",
                "findutils' xargs.c: more programs at the same time, or fewer"},
};

/// Where a file with the name of a program of the table is that program. Elsewhere, anybody may have named it so.
constexpr std::array<std::string_view, 5> kSystemFolders{"/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/lib/git-core/",
                                                         "/usr/libexec/git-core/"};

/// Programs that run no code but their own, all of whose handlers are in the table.
constexpr std::array<std::string_view, 6> kSelfContained{"sort", "dd", "gzip", "xz", "bzip2", "make"};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_of_system(std::string_view path) {
  const std::string_view folder = path.substr(0, path.size() - name_of(path).size());
  return std::find(kSystemFolders.begin(), kSystemFolders.end(), folder) != kSystemFolders.end();
}

bool is_file_of(const TameHandler& row, std::string_view path) {
  const std::string_view name = name_of(path);
  const bool is_prefix = row.file.find('.') != std::string_view::npos;
  if (is_prefix ? !name.starts_with(row.file) : name != row.file) return false;
  const bool is_library = row.file.starts_with("lib") || row.file.ends_with(".cpython");
  const bool is_known_by_more = is_library || !row.function.empty() || row.all != 0;
  return is_known_by_more || is_of_system(path);
}

// `name`: as in releases_no_thread().
bool is_row_of(const TameHandler& row, int signal, const SignalHandler& handler,
               const std::function<std::string(std::uint64_t)>& name) {
  if (!is_file_of(row, handler.module) || (row.signals & signals({signal})) == 0) return false;
  if (row.most != 0 && (handler.installations == 0 || handler.installations > row.most)) return false;
  if ((handler.signals & row.all) != row.all) return false;
  return row.function.empty() || name(handler.address).compare(0, row.function.size(), row.function) == 0;
}

}  // namespace

bool is_self_contained(std::string_view program) {
  return is_of_system(program) &&
         std::find(kSelfContained.begin(), kSelfContained.end(), name_of(program)) != kSelfContained.end();
}

SignalHandlers signal_handlers(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps) {
  SignalHandlers found;
  for (const Mapping& library : maps) {
    if (library.offset != 0 || library.path.find(MPRUN_PRELOAD_NAME) == std::string::npos) continue;
    ProcessMemory memory(proc, tid, kMostOfLibrary);
    const auto table = variable_of(library, MPRUN_HANDLERS_SYMBOL, &memory);
    std::array<std::uint64_t, MPRUN_SIGNALS> handlers{};
    if (!table || !memory.read(*table, handlers.data(), sizeof handlers)) continue;
    const auto counts = variable_of(library, MPRUN_INSTALLATIONS_SYMBOL, &memory);
    std::array<std::uint32_t, MPRUN_SIGNALS> installations{};
    if (!counts || !memory.read(*counts, installations.data(), sizeof installations)) installations = {};
    for (std::size_t signal = 1; signal < handlers.size(); ++signal) {
      const Mapping* mapping = handlers.at(signal) > 1 ? find_mapping(maps, handlers.at(signal)) : nullptr;
      if (mapping == nullptr || found.at(signal).address != 0) continue;
      found.at(signal) = {mapping->path, handlers.at(signal), installations.at(signal)};
      for (std::size_t other = 1; other < handlers.size(); ++other) {
        if (handlers.at(other) == handlers.at(signal)) found.at(signal).signals |= Signals{1} << (other - 1);
      }
    }
  }
  for (const Mapping& mapping : maps) {
    // Ruby lets no program trap this signal (signal.c), so that its handler is known without the library.
    const bool is_ruby = name_of(mapping.path).starts_with("libruby");
    if (is_ruby && found.at(SIGVTALRM).address == 0)
      found.at(SIGVTALRM) = {mapping.path, mapping.begin, 0, signals({SIGVTALRM})};
  }
  return found;
}

bool releases_no_thread(int signal, const SignalHandler& handler,
                        const std::function<std::string(std::uint64_t)>& name) {
  return std::any_of(kTameHandlers.begin(), kTameHandlers.end(),
                     [&](const TameHandler& row) { return is_row_of(row, signal, handler, name); });
}

bool is_for_programs_at_work(int signal, const SignalHandler& handler) {
  return std::any_of(kTuningHandlers.begin(), kTuningHandlers.end(), [&](const TameHandler& row) {
    return is_row_of(row, signal, handler, [](std::uint64_t) { return std::string(); });
  });
}

bool ends_jvm(int signal, const SignalHandler& handler) {
  const bool asks_to_end = signal == SIGHUP || signal == SIGINT || signal == SIGTERM;
  return asks_to_end && name_of(handler.module) == "libjvm.so";
}

// GNU bash's trap.c has one function for all traps, and exports it as all of its functions.
bool is_trap_of_bash(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps, const SignalHandler& handler) {
  const auto image = std::find_if(maps.begin(), maps.end(), [&](const Mapping& mapping) {
    return mapping.offset == 0 && mapping.path == handler.module;
  });
  ProcessMemory memory(proc, tid, kMostOfLibrary);
  const auto trap = image == maps.end() ? std::nullopt : variable_of(*image, "trap_handler", &memory);
  return !trap || *trap == handler.address;
}

// A program may be called python, python3, or python3.13t.
bool is_python_module(std::string_view path) {
  constexpr std::string_view kProgram = "python";
  const std::string_view name = name_of(path);
  if (name.starts_with("libpython3")) return true;
  if (!name.starts_with(kProgram)) return false;
  const std::size_t end = std::min(name.find_first_not_of("0123456789.", kProgram.size()), name.size());
  return name.find_first_not_of("dmtu", end) == std::string_view::npos;
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 5> kShells{"bash", "dash", "sh", "zsh", "ksh"};
  return std::find(kShells.begin(), kShells.end(), name_of(program)) != kShells.end();
}

}  // namespace mprun
