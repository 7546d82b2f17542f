#include "watch/signal_handlers.h"

#include <algorithm>
#include <csignal>

#include "watch/preload_library.h"
#include "wire/alarms.h"

namespace mprun {
namespace {

constexpr std::size_t kMostOfLibrary = std::size_t{1} << 20U;  // read of its tables
constexpr int kAny = 0;

/// A handler that was read in its source: who waits is not let go on by it.
struct TameHandler {
  std::string_view library;  ///< the begin of its file's name
  int signal;                ///< kAny: all that it handles
  const char* what;
};
constexpr std::array kTame = {
    TameHandler{"libtorch_python.so", SIGTERM,
                "torch/csrc/DataLoader.cpp: a worker exits; or the signal is sent again, by default"},
    TameHandler{"libtorch_python.cpython", SIGTERM, "the same, as wheels call it"},
    TameHandler{"libucs.so", kAny, "UCX's src/ucs/debug/debug.c: prints a backtrace, or changes the level of its log"},
    TameHandler{"libreadline.so", SIGWINCH, "GNU readline's signals.c: draws the line anew"},
};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

HandlerModules handler_modules(ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps) {
  HandlerModules modules;
  for (const Mapping& library : maps) {
    if (library.offset != 0 || library.path.find(MPRUN_PRELOAD_NAME) == std::string::npos) continue;
    ProcessMemory memory(proc, tid, kMostOfLibrary);
    const auto table = variable_of(library, MPRUN_HANDLERS_SYMBOL, &memory);
    std::array<std::uint64_t, MPRUN_SIGNALS> handlers{};
    if (!table || !memory.read(*table, handlers.data(), sizeof handlers)) continue;
    for (std::size_t signal = 1; signal < handlers.size(); ++signal) {
      const Mapping* mapping = handlers.at(signal) > 1 ? find_mapping(maps, handlers.at(signal)) : nullptr;
      if (mapping != nullptr && modules.at(signal).empty()) modules.at(signal) = mapping->path;
    }
  }
  return modules;
}

bool releases_nobody(int signal, std::string_view module) {
  return std::any_of(kTame.begin(), kTame.end(), [&](const TameHandler& handler) {
    return name_of(module).substr(0, handler.library.size()) == handler.library &&
           (handler.signal == kAny || handler.signal == signal);
  });
}

bool is_python_module(std::string_view path) {
  const std::string_view name = name_of(path);
  return name.substr(0, 6) == "python" || name.substr(0, 10) == "libpython3";
}

}  // namespace mprun
