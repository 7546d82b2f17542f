#include "watch/causes/joins.h"
#include "watch/stacks/python_code.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mprun {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

// Names that users know, where the code is elsewhere; the longest prefix that fits counts.
constexpr std::array kJoinNames = {
    Name{"multiprocessing.process.BaseProcess.", "multiprocessing.Process."},
    Name{"multiprocessing.queues.", "multiprocessing."},
    Name{"multiprocessing.synchronize.", "multiprocessing."},
    Name{"multiprocessing.pool.ApplyResult.", "multiprocessing.pool.AsyncResult."},
    Name{"multiprocessing.pool.MapResult.", "multiprocessing.pool.AsyncResult."},
    Name{"multiprocessing.util._exit_function", "the exit handler multiprocessing.util._exit_function"},
    Name{"threading._shutdown", "the exit handler threading._shutdown"},
    Name{"concurrent.futures.thread._python_exit", "the exit handler concurrent.futures.thread._python_exit"},
    Name{"concurrent.futures.process._python_exit", "the exit handler concurrent.futures.process._python_exit"},
    Name{"concurrent.futures._base.Executor.__exit__", "concurrent.futures.Executor.shutdown"},
    Name{"concurrent.futures._base.Executor.map.<locals>.result_iterator", "concurrent.futures.Executor.map"},
    Name{"concurrent.futures.process._chain_from_iterable_of_lists", "concurrent.futures.Executor.map"},
    Name{"concurrent.futures._base.", "concurrent.futures."},
    Name{"concurrent.futures.thread.", "concurrent.futures."},
    Name{"concurrent.futures.process.", "concurrent.futures."},
    Name{"mprun.sync.Barrier.", "mprun.barrier."},
    Name{"mprun.sync.Queue.", "mprun.queue."},
    Name{"mprun.sync.Dict.", "mprun.dict."},
    Name{"torch.multiprocessing.spawn.spawn", "torch.multiprocessing.spawn"},
    Name{"torch.multiprocessing.spawn.start_processes", "torch.multiprocessing.start_processes"},
    Name{"torch.multiprocessing.spawn.ProcessContext.", "torch.multiprocessing.ProcessContext."},
    Name{"torch.utils.data.dataloader.", "torch.utils.data.DataLoader: "},
};

// The path below the folder of a library: "multiprocessing/pool.py".
std::string_view module_file(std::string_view file) {
  for (const std::string_view folder : {"/dist-packages/", "/site-packages/", "/mprun/python/"}) {
    const auto at = file.rfind(folder);
    if (at != std::string_view::npos) return file.substr(at + folder.size());
  }
  const auto at = file.rfind("/lib/python3");
  if (at == std::string_view::npos) return file;
  const auto slash = file.find('/', at + 5);
  return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

// "<frozen importlib._bootstrap>" or "/usr/lib/python3.11/multiprocessing/pool.py": the name of the module.
std::string module_name(std::string_view file) {
  constexpr std::string_view kFrozen = "<frozen ";
  if (file.substr(0, kFrozen.size()) == kFrozen && file.back() == '>') {
    return std::string(file.substr(kFrozen.size(), file.size() - kFrozen.size() - 1));
  }
  std::string name(module_file(file));
  for (const std::string_view ending : {"/__init__.py", ".py"}) {
    if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
      name.resize(name.size() - ending.size());
      break;
    }
  }
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::string call_name(const PythonFrame& frame) {
  std::string name = module_name(frame.file) + "." + frame.function;
  const Name* best = nullptr;
  for (const Name& known : kJoinNames) {
    const bool fits = name.compare(0, known.first.size(), known.first) == 0;
    if (fits && (best == nullptr || known.first.size() > best->first.size())) best = &known;
  }
  if (best != nullptr) name.replace(0, best->first.size(), best->second);
  return name;
}

// A method of a proxy for an object of a manager: multiprocessing makes its code from text.
bool is_method_of_proxy(const std::vector<PythonFrame>& frames, std::vector<PythonFrame>::const_iterator frame) {
  return frame->file == "<string>" && frame->function != "<module>" && frame != frames.begin() &&
         (frame - 1)->function == "BaseProxy._callmethod";
}

// What a decorator has put around a function: the caller knows the function.
bool is_wrapper(const PythonFrame& frame) {
  constexpr std::array kUsual = {".<locals>.wrapper", ".<locals>.wrapped", ".<locals>.inner",
                                 ".<locals>.decorate_context"};
  return std::any_of(kUsual.begin(), kUsual.end(), [&](const char* name) { return frame.function.ends_with(name); });
}

// Skips the frames that start a thread: finds what the library runs in it.
const PythonFrame& outermost_of_library(const std::vector<PythonFrame>& frames) {
  const auto found = std::find_if(frames.rbegin(), frames.rend(), [](const PythonFrame& frame) {
    return frame.function != "Thread._bootstrap" && frame.function != "Thread._bootstrap_inner" &&
           frame.function != "Thread.run";
  });
  return found == frames.rend() ? frames.back() : *found;
}

}  // namespace

std::optional<NamedCall> name_call(const std::vector<PythonFrame>& frames) {
  if (frames.empty()) return std::nullopt;
  auto own = frames.begin();
  while (own != frames.end() && (is_library_file(own->file) || is_method_of_proxy(frames, own))) ++own;
  if (own == frames.end()) {
    const PythonFrame& outermost = outermost_of_library(frames);
    return NamedCall{call_name(outermost), outermost.file, outermost.line};
  }
  if (own == frames.begin()) return NamedCall{{}, own->file, own->line};
  if (is_method_of_proxy(frames, own - 1)) {
    return NamedCall{"multiprocessing.managers.BaseProxy." + (own - 1)->function, own->file, own->line};
  }
  auto called = own - 1;
  while (called != frames.begin() && is_wrapper(*called)) --called;
  return NamedCall{call_name(*called), own->file, own->line};
}

}  // namespace mprun
