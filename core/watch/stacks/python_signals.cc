#include "watch/stacks/python_signals.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <span>

#include "watch/stacks/python_interpreter.h"
#include "watch/stacks/python_names.h"
#include "watch/stacks/python_object.h"

namespace mprun {
namespace {

constexpr std::size_t kMostOfImage = std::size_t{4} << 20U;  // bytes of CPython's variables that are looked at

// Handlers of Modules/signalmodule.c; since 3.12 in _PyRuntime. By signal, what is to run: an int (SIG_DFL or SIG_IGN),
// a function, or None (C has installed a handler). Nothing handles SIGKILL and SIGSTOP.
struct Handler {
  std::uint64_t is_due, function;
};
constexpr std::size_t kHandlers = 65;

bool is_table(std::span<const Handler, kHandlers> table) {
  return table[0].function == 0 &&
         std::all_of(table.begin(), table.end(), [](const Handler& one) { return one.is_due <= 1; }) &&
         std::all_of(table.begin() + 1, table.end(), [](const Handler& one) { return one.function != 0; });
}

using HandlerTable = std::array<Handler, kHandlers>;

// In the variables of CPython's image.
std::optional<HandlerTable> find_table(const std::vector<std::uint64_t>& words) {
  constexpr std::size_t kTableWords = kHandlers * sizeof(Handler) / sizeof(std::uint64_t);
  const auto function_at = [](int signal) { return 2 * static_cast<std::size_t>(signal) + 1; };
  for (std::size_t at = 0; at + kTableWords <= words.size(); ++at) {
    const std::uint64_t untouched = words[at + function_at(SIGKILL)];
    if (untouched == 0 || untouched != words[at + function_at(SIGSTOP)]) continue;
    HandlerTable table{};
    std::memcpy(table.data(), &words[at], sizeof table);
    if (is_table(table)) return table;
  }
  return std::nullopt;
}

// The writable mappings around an address, one after the other: the initialised variables of an image and the others.
std::vector<std::uint64_t> variables_around(std::uint64_t address, const std::vector<Mapping>& mappings,
                                            ProcessMemory* memory) {
  const Mapping* const found = find_mapping(mappings, address);
  if (found == nullptr) return {};
  const auto follows = [](const Mapping& one, const Mapping& next) {
    return one.writable && next.writable && one.end == next.begin && !next.path.starts_with('[');
  };
  const Mapping *first = found, *last = found;
  while (first != mappings.data() && follows(first[-1], *first)) --first;
  while (last != &mappings.back() && follows(*last, last[1])) ++last;
  std::vector<std::uint64_t> words(std::min<std::uint64_t>(last->end - first->begin, kMostOfImage) /
                                   sizeof(std::uint64_t));
  if (!memory->read(first->begin, words.data(), words.size() * sizeof(std::uint64_t))) return {};
  return words;
}

class HandlerReader {
 public:
  HandlerReader(const PythonInterpreter& python, ProcessMemory* memory)
      : layout_(python.layout),
        object_size_(python.layout.object_size),
        objects_(python.layout, memory),
        codes_(memory, python.layout, python.types),
        memory_(memory) {}

  // Whether something runs in Python, instead of a handler in C or none.
  bool is_function(std::uint64_t handler) const {
    return !objects_.is_a(handler, "int") && !objects_.is_a(handler, "NoneType");
  }

  // Whether it raises KeyboardInterrupt in the main thread, or cancels the task that runs there.
  bool only_interrupts(std::uint64_t function) {
    if (objects_.is_a(function, "builtin_function_or_method"))
      return name_of_builtin(function) == "default_int_handler";
    if (objects_.is_a(function, "functools.partial")) function = word(field(function));
    if (objects_.is_a(function, "method")) function = word(field(function));
    const PythonCode* const code = objects_.is_a(function, "function") ? code_of(function) : nullptr;
    return code != nullptr && ((code->file.ends_with("/asyncio/runners.py") && code->function == "Runner._on_sigint") ||
                               code->file.ends_with("/trio/_core/_ki.py"));
  }

  // Whether it names release(), which frees a lock, or calls a function of its module or class that does.
  bool may_free_lock(std::uint64_t function) {
    if (objects_.is_a(function, "functools.partial")) function = word(field(function));
    const bool is_method = objects_.is_a(function, "method");
    const std::uint64_t self = is_method ? word(field(function) + sizeof(std::uint64_t)) : 0;
    return may_free_lock(is_method ? word(field(function)) : function, self, 0);
  }

  // It calls the handler that was there before, if there was one: its only variable of the function around it.
  bool is_torchs_for_workers(std::uint64_t function) {
    const PythonCode* const code = objects_.is_a(function, "function") ? code_of(function) : nullptr;
    if (code == nullptr || !code->file.ends_with("/torch/utils/data/_utils/signal_handling.py")) return false;
    constexpr std::uint64_t kFields = 10;
    for (std::uint64_t i = 0; i < kFields; ++i) {
      const auto variable = first_enclosed(word(field(function) + i * sizeof(std::uint64_t)));
      if (variable) return objects_.is_a(*variable, "NoneType");
    }
    return false;
  }

 private:
  static constexpr int kDeepest = 3;
  static constexpr std::uint64_t kMostNames = 64;

  // Where names are read: CPython 3.11 and later.
  bool may_free_lock(std::uint64_t function, std::uint64_t self, int depth) {
    const PythonCode* const code = objects_.is_a(function, "function") ? code_of(function) : nullptr;
    if (layout_.minor < 11 || code == nullptr || depth > kDeepest) return false;
    const PythonNames names({}, *code, layout_, &codes_, memory_);
    const std::uint64_t globals = names.globals_of_function(function);
    const std::uint64_t count = std::min(names.name_count(names.code()), kMostNames);
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = names.name(i);
      if (name == "release") return true;
      const std::uint64_t of_class = self != 0 ? names.class_entry_of(self, name) : 0;
      if (may_free_lock(of_class != 0 ? of_class : names.entry_of(globals, name), self, depth + 1)) return true;
    }
    return false;
  }

  // The first field of a partial, method, function, builtin, tuple or cell.
  std::uint64_t field(std::uint64_t object) const { return object + object_size_; }
  std::uint64_t word(std::uint64_t address) const { return memory_->read<std::uint64_t>(address).value_or(0); }

  // The value of the first variable in a closure, a tuple of cells, which has a hash before its items since 3.14;
  // nullopt: this is none.
  std::optional<std::uint64_t> first_enclosed(std::uint64_t closure) const {
    if (!objects_.is_a(closure, "tuple")) return std::nullopt;
    for (const std::uint64_t items : {sizeof(std::uint64_t), 2 * sizeof(std::uint64_t)}) {
      const std::uint64_t cell = word(field(closure) + items);
      if (objects_.is_a(cell, "cell")) return word(field(cell));
    }
    return std::nullopt;
  }

  std::string name_of_builtin(std::uint64_t function) const {
    std::array<char, 32> name{};
    const std::uint64_t definition = word(field(function));
    if (!memory_->read(word(definition), name.data(), name.size() - 1)) return "";
    return name.data();
  }

  // PyFunctionObject: the first field until 3.9, a later one since.
  const PythonCode* code_of(std::uint64_t function) {
    constexpr std::uint64_t kFields = 5;
    for (std::uint64_t i = 0; i < kFields; ++i) {
      if (const PythonCode* code = codes_.read(word(field(function) + i * sizeof(std::uint64_t)))) return code;
    }
    return nullptr;
  }

  const PythonLayout& layout_;
  std::uint64_t object_size_;
  PythonObjects objects_;
  PythonCodeReader codes_;
  ProcessMemory* memory_;
};

// What handles the signals of a program.
struct Handlers {
  PythonInterpreter python;
  HandlerTable table;
};

constexpr std::size_t kMostOfObjects = std::size_t{1} << 20U;

std::optional<Handlers> find_handlers(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings,
                                      ProcessMemory* memory) {
  std::string reason;
  auto python = find_python(proc, pid, mappings, memory, &reason);
  const auto table = python ? find_table(variables_around(python->runtime.address, mappings, memory)) : std::nullopt;
  return table ? std::optional(Handlers{std::move(*python), *table}) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> signals_handled_in_python(ProcSource* proc, pid_t pid,
                                                       const std::vector<Mapping>& mappings) {
  ProcessMemory memory(proc, pid, kMostOfImage + kMostOfObjects);
  const auto found = find_handlers(proc, pid, mappings, &memory);
  if (!found) return std::nullopt;
  HandlerReader handlers(found->python, &memory);
  std::uint64_t handled = 0;
  for (std::size_t signal = 1; signal < kHandlers; ++signal) {
    const std::uint64_t function = found->table.at(signal).function;
    if (function == found->table.at(SIGKILL).function || !handlers.is_function(function)) continue;
    if (signal == SIGINT && handlers.only_interrupts(function)) continue;
    handled |= std::uint64_t{1} << (signal - 1);
  }
  return handled;
}

bool handlers_may_free_locks(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings) {
  ProcessMemory memory(proc, pid, kMostOfImage + kMostOfObjects);
  const auto found = find_handlers(proc, pid, mappings, &memory);
  if (!found) return false;
  HandlerReader handlers(found->python, &memory);
  return std::any_of(found->table.begin() + 1, found->table.end(),
                     [&](const Handler& one) { return handlers.may_free_lock(one.function); });
}

bool only_watches_workers_of_torch(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings) {
  ProcessMemory memory(proc, pid, kMostOfImage + kMostOfObjects);
  const auto found = find_handlers(proc, pid, mappings, &memory);
  return found && HandlerReader(found->python, &memory).is_torchs_for_workers(found->table.at(SIGCHLD).function);
}

}  // namespace mprun
