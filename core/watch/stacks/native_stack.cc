#include "watch/stacks/native_stack.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "os/fd.h"
#include "os/uninterrupted.h"
#include "procfs/live_memory.h"
#include "procfs/proc_source.h"
#include "procfs/process_facts.h"
#include "watch/stacks/frame_pointer.h"
#include "watch/stacks/process_image.h"
#include "watch/stacks/traced_registers.h"

namespace mprun {

// What is known of a thread's registers when unwinding begins.
struct StartingPoint {
  DwarfRegisters registers{};
  bool has_all = true;             ///< false: only the stack pointer and the program counter are known
  bool has_frame_pointer = false;  ///< but that one too
};

namespace {

constexpr std::size_t kMostName = 160;      // bytes of a symbol or file name that are shown
constexpr std::size_t kMostMangled = 512;   // longer symbols are shown as they are
constexpr int kMostReferences = 12;         // each can double the length of what is written out
constexpr int kMostAliases = 20'000;        // symbols looked through for a better name
constexpr GElf_Off kMostIntoUnsized = 256;  // how far into a symbol without a size an address may be

[[nodiscard]] std::string shortened(std::string text) {
  if (text.size() > kMostName) text = text.substr(0, kMostName - 3) + "...";
  return text;
}

// The name by which a library is linked, as far as it shows: "libgomp.so.1" of "/usr/lib/libgomp.so.1.0.0 (deleted)";
// "[vdso]" of "[vdso: 12]".
[[nodiscard]] std::string library_name(std::string_view path) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  if (path.starts_with("[vdso")) return "[vdso]";
  path = path.substr(path.rfind('/') + 1);
  const std::size_t version = path.find(".so.");
  if (version != path.npos) path = path.substr(0, path.find('.', version + 4));
  return shortened(std::string(path));
}

// How often a mangled name refers to an earlier part of itself.
[[nodiscard]] int references(std::string_view symbol) {
  int count = 0;
  for (std::size_t at = 0; at + 1 < symbol.size(); ++at) {
    const char next = symbol[at + 1];
    const bool reference = next == '_' || (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z');
    if ((symbol[at] == 'S' || symbol[at] == 'T') && reference) ++count;
  }
  return count;
}

// libc has read as __read, too: the name without underscores is the one in the manual.
[[nodiscard]] std::string plainest_name(Dwfl_Module* module, const GElf_Sym& symbol, const char* name) {
  if (std::strncmp(name, "__", 2) != 0) return name;
  const int count = std::min(dwfl_module_getsymtab(module), kMostAliases);
  for (int index = 1; index < count; ++index) {
    GElf_Sym other{};
    GElf_Addr address = 0;
    const char* alias = dwfl_module_getsym_info(module, index, &other, &address, nullptr, nullptr, nullptr);
    const bool same = other.st_value == symbol.st_value && other.st_shndx == symbol.st_shndx;
    if (alias != nullptr && *alias != '\0' && *alias != '_' && same) return alias;
  }
  return name;
}

[[nodiscard]] std::string frame_text(Dwfl* dwfl, Dwarf_Addr pc, bool is_call) {
  const Dwarf_Addr address = is_call ? pc - 1 : pc;  // after a call that never returns, another function may begin
  Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
  std::array<char, 32> number{};
  if (module == nullptr) {
    std::snprintf(number.data(), number.size(), "0x%llx", static_cast<unsigned long long>(pc));
    return number.data();
  }
  Dwarf_Addr start = 0;
  const char* path = dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string file = library_name(path != nullptr ? path : "?");
  GElf_Off into = 0;
  GElf_Sym symbol{};
  const char* name = dwfl_module_addrinfo(module, address, &into, &symbol, nullptr, nullptr, nullptr);
  if (name != nullptr && *name != '\0' && into < (symbol.st_size > 0 ? symbol.st_size : kMostIntoUnsized)) {
    return shortened(demangled(plainest_name(module, symbol, name))) + " (" + file + ")";
  }
  std::snprintf(number.data(), number.size(), "+0x%llx", static_cast<unsigned long long>(pc - start));
  return file + number.data();
}

// True if the function at `address` declares that it has no caller: the start of a thread. If a caller cannot be found,
// libdw ends in the same way.
[[nodiscard]] bool is_outermost(Dwfl* dwfl, Dwarf_Addr address) {
  Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
  Dwarf_Addr bias = 0;
  Dwarf_CFI* rules = module != nullptr ? dwfl_module_eh_cfi(module, &bias) : nullptr;
  Dwarf_Frame* found = nullptr;
  if (rules == nullptr || dwarf_cfi_addrframe(rules, address - bias, &found) != 0) return false;
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, &std::free);
  std::array<Dwarf_Op, 3> simple{};
  Dwarf_Op* steps = nullptr;
  std::size_t count = 0;
  const int return_address = dwarf_frame_info(found, nullptr, nullptr, nullptr);
  // libdw reports "undefined" by zero steps, in the array given for them.
  return dwarf_frame_register(found, return_address, simple.data(), &steps, &count) == 0 && count == 0 &&
         steps == simple.data();
}

// Whether the thread belongs to the process and sleeps so that a stop can reach it: neither in an uninterruptible wait
// (vfork), nor stopped, nor traced.
[[nodiscard]] bool may_be_stopped(pid_t pid, pid_t tid) {
  auto stat = open_file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/stat", O_RDONLY);
  if (!stat) return false;
  std::array<char, 512> text{};
  const ssize_t count = uninterrupted([&] { return read(stat->get(), text.data(), text.size()); });
  if (count <= 0) return false;
  const std::string_view line(text.data(), static_cast<std::size_t>(count));
  return line.substr(std::min(line.rfind(')'), line.size())).starts_with(") S");
}

}  // namespace

struct NativeStacks::Session {
  explicit Session(pid_t of) : pid(of), images(of) {}
  ~Session() {
    if (dwfl != nullptr) dwfl_end(dwfl);  // before the images, which it refers to
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void open();
  [[nodiscard]] NativeStack unwind(pid_t tid, const StartingPoint& from);

  pid_t pid;
  ProcessImages images;
  Dwfl* dwfl = nullptr;
  bool attached = false;
  StartingPoint start;
  // By address. Threads of one kind share their frames, and a symbol of a large library takes milliseconds to find.
  std::unordered_map<Dwarf_Addr, std::string> texts;
};

namespace {

// libdw's callbacks. It does without what they do not supply.

int find_elf(Dwfl_Module* /*module*/, void** user, const char* name, Dwarf_Addr base, char** /*file*/, Elf** elf) {
  auto* images = static_cast<ProcessImages*>(*user);
  if (images == nullptr) return -1;
  const ModuleImage image = images->open(name, base);
  *elf = image.elf;
  return image.fd;
}

// Never from disk or the network.
int find_no_debuginfo(Dwfl_Module* /*module*/, void** /*user*/, const char* /*name*/, Dwarf_Addr /*base*/,
                      const char* /*file*/, const char* /*link*/, GElf_Word /*crc*/, char** /*found*/) {
  return -1;
}

pid_t no_thread(Dwfl* /*dwfl*/, void* /*session*/, void** /*thread*/) { return 0; }

// Takes the signature from a return address: libdw compares it with its modules as it is.
bool memory_read(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* word, void* /*session*/) {
  if (!read_live_memory(dwfl_pid(dwfl), address, word, sizeof *word)) return false;
  const Dwarf_Addr code = *word & architecture::kCodeAddress;
  if (code != *word && dwfl_addrmodule(dwfl, code) != nullptr) *word = code;
  return true;
}

bool set_initial_registers(Dwfl_Thread* thread, void* argument) {
  const auto* from = static_cast<const StartingPoint*>(argument);
  const auto set = [&](int first, unsigned count) {
    return dwfl_thread_state_registers(thread, first, count, from->registers.data() + first);
  };
  dwfl_thread_state_register_pc(thread, from->registers[architecture::kProgramCounter]);
  if (from->has_all) return set(0, from->registers.size());
  if (from->has_frame_pointer && !set(architecture::kFramePointer, 1)) return false;
  return set(architecture::kStackPointer, 1) && set(architecture::kProgramCounter, 1);
}

int set_images(Dwfl_Module* /*module*/, void** user, const char* /*name*/, Dwarf_Addr /*base*/, void* images) {
  *user = images;
  return DWARF_CB_OK;
}

struct Unwinding {
  Dwfl* dwfl;
  std::unordered_map<Dwarf_Addr, std::string>* texts;
  NativeStack* stack;
  Dwarf_Addr last = 0;  // an address in the function of the outermost frame so far
};

int add_frame(Dwfl_Frame* frame, void* argument) {
  auto* unwinding = static_cast<Unwinding*>(argument);
  std::vector<std::string>& frames = unwinding->stack->frames;
  Dwarf_Addr pc = 0;
  bool is_innermost = false;
  if (frames.size() >= kMostNativeFrames || !dwfl_frame_pc(frame, &pc, &is_innermost)) return DWARF_CB_ABORT;
  unwinding->last = is_innermost ? pc : pc - 1;
  const auto [text, is_new] = unwinding->texts->try_emplace(unwinding->last);
  if (is_new) text->second = frame_text(unwinding->dwfl, pc, !is_innermost);
  frames.push_back(text->second);
  return DWARF_CB_OK;
}

}  // namespace

void NativeStacks::Session::open() {
  static constexpr Dwfl_Callbacks kFiles = {find_elf, find_no_debuginfo, nullptr, nullptr};
  // get_thread below: the one thread asked for, with the registers of `start`.
  static constexpr Dwfl_Thread_Callbacks kThreads = {no_thread,
                                                     [](Dwfl*, pid_t, void* session, void** thread) {
                                                       *thread = &static_cast<Session*>(session)->start;
                                                       return true;
                                                     },
                                                     memory_read,
                                                     set_initial_registers,
                                                     nullptr,
                                                     nullptr};
  if (pid <= 0) return;
  elf_version(EV_CURRENT);
  dwfl = dwfl_begin(&kFiles);
  if (dwfl == nullptr) return;
  const bool listed = dwfl_linux_proc_report(dwfl, pid) == 0;
  if (dwfl_report_end(dwfl, nullptr, nullptr) != 0 || !listed) return;
  dwfl_getmodules(dwfl, set_images, &images, 0);
  attached = dwfl_attach_state(dwfl, nullptr, pid, &kThreads, this);
}

NativeStack NativeStacks::Session::unwind(pid_t tid, const StartingPoint& from) {
  NativeStack stack;
  if (!attached) return stack;
  start = from;
  Unwinding unwinding{dwfl, &texts, &stack, 0};
  const bool ended = dwfl_getthread_frames(dwfl, tid, add_frame, &unwinding) == 0;
  stack.approximate = !ended || !is_outermost(dwfl, unwinding.last);
  return stack;
}

NativeStacks::NativeStacks(pid_t pid) : session_(std::make_unique<Session>(pid)) { session_->open(); }

NativeStacks::~NativeStacks() = default;

NativeStack NativeStacks::of_thread(pid_t tid, std::uint64_t stack_pointer, std::uint64_t program_counter) {
  StartingPoint from{.has_all = false};
  from.registers[architecture::kStackPointer] = stack_pointer;
  from.registers[architecture::kProgramCounter] = program_counter;
  NativeStack stack = session_->unwind(tid, from);
  if (!stack.approximate || !session_->attached) return stack;
  const auto frame_pointer = find_frame_pointer(session_->dwfl, session_->pid, stack_pointer, program_counter);
  if (!frame_pointer) return stack;
  from.registers[architecture::kFramePointer] = *frame_pointer;
  from.has_frame_pointer = true;
  NativeStack longer = session_->unwind(tid, from);
  longer.approximate = true;  // what was found in the stack may be a remainder
  return longer.frames.size() > stack.frames.size() ? longer : stack;
}

NativeStack NativeStacks::complete_with_ptrace(pid_t tid, NativeStack known) {
  if (!known.approximate || known.frames.size() >= kMostNativeFrames || !session_->attached) return known;
  if (!may_be_stopped(session_->pid, tid)) return known;
  const auto registers = registers_by_ptrace(tid);
  if (!registers) return known;
  NativeStack complete = session_->unwind(tid, {*registers});
  const bool better = !complete.approximate || complete.frames.size() > known.frames.size();
  return better ? complete : known;
}

NativeStack NativeStacks::of_running(pid_t tid) {
  if (!session_->attached) return {};
  const auto registers = registers_by_ptrace(tid);
  return registers ? session_->unwind(tid, {*registers}) : NativeStack();
}

std::string NativeStacks::function_at(std::uint64_t address) {
  return session_->attached ? frame_text(session_->dwfl, address, false) : "";
}

std::optional<NativeStacks::Variable> NativeStacks::variable(const std::string& name) {
  struct Search {
    const std::string& wanted;
    std::string program;
    std::optional<Variable> found = {};
  } search{name, live_proc()->link(std::to_string(session_->pid) + "/exe").value_or("")};
  const auto look = [](Dwfl_Module* module, void** /*user*/, const char* path, Dwarf_Addr /*base*/, void* argument) {
    auto* const sought = static_cast<Search*>(argument);
    if (sought->program != path) return static_cast<int>(DWARF_CB_OK);
    const int count = dwfl_module_getsymtab(module);
    for (int index = 1; index < count && !sought->found; ++index) {
      GElf_Sym symbol{};
      GElf_Addr address = 0;
      const char* text = dwfl_module_getsym_info(module, index, &symbol, &address, nullptr, nullptr, nullptr);
      if (text == nullptr || sought->wanted != text || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
      sought->found = Variable{address, symbol.st_size};
    }
    return static_cast<int>(DWARF_CB_ABORT);
  };
  if (session_->attached) dwfl_getmodules(session_->dwfl, look, &search, 0);
  return search.found;
}

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > kMostMangled || references(symbol) > kMostReferences) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

}  // namespace mprun
