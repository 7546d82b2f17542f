#include "watch/stacks/python_stack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "watch/sample/thread_ids.h"
#include "watch/stacks/python_functions.h"
#include "watch/stacks/python_interpreter.h"
#include "watch/stacks/python_loop.h"
#include "watch/stacks/python_object.h"
#include "watch/stacks/python_processes.h"
#include "watch/stacks/python_waits.h"

namespace mprun {
namespace {

constexpr std::size_t kMostMemory = std::size_t{64} << 20U;  ///< read of one process
constexpr std::size_t kMostInterpreters = 64;
constexpr std::size_t kMostPythonThreads = 1000;
constexpr std::size_t kMostFrames = 256;      ///< of a thread, the innermost
constexpr std::size_t kMostLinks = 1024;      ///< followed for them, including those of no Python function
constexpr std::uint64_t kConditionSize = 48;  ///< sizeof(pthread_cond_t)

/// _PyInterpreterFrame.owner: from 3 on it is an entry of the interpreter itself and has no code of its own.
constexpr unsigned char kOwnedByGenerator = 1;
constexpr unsigned char kFirstEntryOwner = 3;

/// A structure read in one piece.
class Piece {
 public:
  static std::optional<Piece> read(ProcessMemory* memory, std::uint64_t address,
                                   std::initializer_list<std::uint32_t> of) {
    Piece piece;
    const std::size_t size = std::max(of) + sizeof(std::uint64_t);
    if (address % alignof(std::uint64_t) != 0 || size > piece.bytes_.size()) return std::nullopt;
    if (!memory->read(address, piece.bytes_.data(), size)) return std::nullopt;
    return piece;
  }
  [[nodiscard]] std::uint64_t word(std::uint32_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] unsigned char byte(std::uint32_t offset) const { return static_cast<unsigned char>(bytes_[offset]); }

 private:
  std::array<char, kLargestPythonPiece> bytes_{};
};

class StackReader {
 public:
  StackReader(ProcSource* proc, pid_t pid, PythonInterpreter python, ProcessMemory* memory)
      : python_(std::move(python)),
        layout_(python_.layout),
        memory_(memory),
        ids_(proc, pid),
        codes_(memory, layout_, python_.types),
        functions_(memory, layout_, python_.types, &codes_) {}

  PythonStacks read();
  void want_locals() { with_locals_ = true; }
  using Question = std::optional<std::uint64_t> (StackReader::*)(std::uint64_t frame, const Piece& fields);
  /// Asks about the innermost frame of a function on a thread's stack.
  [[nodiscard]] std::optional<std::uint64_t> ask(pid_t tid, std::string_view function, Question question) {
    asked_ = {tid, std::string(function), question, std::nullopt};
    (void)read();
    return asked_.answer;
  }
  [[nodiscard]] std::optional<std::uint64_t> compare_with_default(std::uint64_t frame, const Piece& fields);
  [[nodiscard]] std::optional<std::uint64_t> count_callbacks(std::uint64_t frame, const Piece& fields);
  /// How many numbers own_processes() then has.
  [[nodiscard]] std::optional<std::uint64_t> read_processes(std::uint64_t frame, const Piece& fields);
  [[nodiscard]] const std::optional<std::set<pid_t>>& own_processes() const { return own_processes_; }
  /// A double, by its bits.
  [[nodiscard]] std::optional<std::uint64_t> read_first_number(std::uint64_t frame, const Piece& fields);

 private:
  void read_threads(std::uint64_t interpreter);
  void read_thread(std::uint64_t state, const Piece& fields);
  void read_frames(std::uint64_t frame, PythonThread* thread);
  void read_gil(std::uint64_t interpreter);
  [[nodiscard]] std::optional<PythonFrame> decode(const Piece& fields, bool* skipped);
  [[nodiscard]] std::optional<PythonFrame> decode_object(const Piece& fields);
  [[nodiscard]] std::uint64_t instruction_of(const Piece& fields, const PythonCode& code);
  [[nodiscard]] std::uint64_t function_of(const Piece& fields);
  [[nodiscard]] const PythonCode* code_of(const Piece& fields);
  void read_locals(std::uint64_t frame, const Piece& fields, PythonThread* thread);
  [[nodiscard]] pid_t tid_of(std::uint64_t state) const;

  PythonInterpreter python_;
  PythonWaits waits_;  ///< of the thread that is read
  const PythonLayout& layout_;
  ProcessMemory* memory_;
  ThreadIds ids_;
  PythonCodeReader codes_;
  PythonFunctionFinder functions_;
  bool with_locals_ = false;
  struct {
    pid_t tid = 0;
    std::string function;
    Question question = nullptr;
    std::optional<std::uint64_t> answer;
  } asked_;
  std::optional<std::set<pid_t>> own_processes_;
  std::map<std::uint64_t, pid_t> states_;  ///< tid of every thread state
  std::set<std::uint64_t> gils_;           ///< seen
  PythonStacks stacks_;
};

PythonStacks StackReader::read() {
  const std::uint64_t runtime = python_.runtime.address;
  stacks_.version = python_.version;
  stacks_.runtime_begin = runtime;
  stacks_.runtime_end = runtime + python_.runtime.size;
  // Newest first: on a thread with states of several interpreters, the frames of the newer ones are the inner ones.
  std::vector<std::uint64_t> interpreters;
  auto next = memory_->read<std::uint64_t>(runtime + layout_.runtime.interpreters);
  while (next && *next != 0 && interpreters.size() < kMostInterpreters) {
    interpreters.push_back(*next);
    read_threads(*next);
    next = memory_->read<std::uint64_t>(*next + layout_.interpreter.next);
  }
  for (const std::uint64_t interpreter : interpreters) read_gil(interpreter);  // needs all the threads
  const auto finalizing = memory_->read<std::uint64_t>(runtime + layout_.runtime.finalizing);
  if (finalizing && *finalizing != 0) {
    stacks_.finalizing = true;
    stacks_.finalizing_tid = tid_of(*finalizing);
  }
  if (interpreters.empty()) stacks_.reason = "its Python has not started, or has ended";
  return std::move(stacks_);
}

void StackReader::read_threads(std::uint64_t interpreter) {
  const auto& at = layout_.thread;
  auto next = memory_->read<std::uint64_t>(interpreter + layout_.interpreter.threads);
  while (next && *next != 0 && states_.size() < kMostPythonThreads && states_.count(*next) == 0) {
    const std::uint64_t state = *next;
    const auto fields = Piece::read(memory_, state, {at.next, at.interpreter, at.pthread, at.native_id, at.frame});
    if (!fields || fields->word(at.interpreter) != interpreter) return;
    read_thread(state, *fields);
    next = fields->word(at.next);
  }
}

void StackReader::read_thread(std::uint64_t state, const Piece& fields) {
  // In a child forked without Python's knowledge, the native id is still that of the parent's thread.
  pid_t tid = layout_.thread.native_id == 0 ? 0 : ids_.of_own_id(fields.word(layout_.thread.native_id));
  if (tid == 0) tid = ids_.of_pthread(fields.word(layout_.thread.pthread), memory_);
  states_[state] = tid;
  if (tid == 0) return;  // its thread has ended, or was left behind by a fork

  std::uint64_t frame = fields.word(layout_.thread.frame);
  if (layout_.frame_of_cframe) frame = memory_->read<std::uint64_t>(frame + layout_.cframe_frame).value_or(0);
  const auto same = [tid](const PythonThread& thread) { return thread.tid == tid; };
  auto thread = std::find_if(stacks_.threads.begin(), stacks_.threads.end(), same);
  if (thread == stacks_.threads.end()) {
    stacks_.threads.push_back({tid, {}, true, {}, {}});
    thread = stacks_.threads.end() - 1;
  }
  read_frames(frame, &*thread);
}

void StackReader::read_frames(std::uint64_t frame, PythonThread* thread) {
  const auto& at = layout_.frame;
  std::set<std::uint64_t> seen;
  while (frame != 0) {
    const auto fields = Piece::read(
        memory_, frame, {at.globals, at.code, at.previous, at.instruction, at.stack_top, at.owner, at.copy});
    if (!fields || thread->frames.size() >= kMostFrames || seen.size() >= kMostLinks || !seen.insert(frame).second) {
      thread->whole = false;
      return;
    }
    bool skipped = false;
    if (auto decoded = decode(*fields, &skipped)) {
      thread->frames.push_back(std::move(*decoded));
      if (with_locals_) read_locals(frame, *fields, thread);
      const bool is_asked = asked_.tid == thread->tid && thread->frames.back().function == asked_.function;
      if (is_asked && !asked_.answer) asked_.answer = (this->*asked_.question)(frame, *fields);
    } else if (!skipped) {
      thread->whole = false;
      return;
    }
    frame = fields->word(at.previous);
  }
}

/// nullopt and `skipped`: the frame is not one of a Python function, or not yet.
std::optional<PythonFrame> StackReader::decode(const Piece& fields, bool* skipped) {
  if (layout_.frame_is_object) return decode_object(fields);
  const unsigned char owner = fields.byte(layout_.frame.owner);
  *skipped = owner >= kFirstEntryOwner && owner < kFirstEntryOwner + 2;
  if (owner >= kFirstEntryOwner) return std::nullopt;
  const PythonCode* code = code_of(fields);
  if (code == nullptr) return std::nullopt;

  const std::uint64_t instruction = instruction_of(fields, *code);
  *skipped = owner != kOwnedByGenerator && instruction < code->first_traceable;
  if (*skipped) return std::nullopt;
  if (instruction >= code->end) return std::nullopt;
  // A generator that has not started stands before its first instruction.
  const int line = instruction < code->begin ? code->first_line
                                             : python_line(code->lines, code->first_line, instruction - code->begin);
  return PythonFrame{code->file, line, code->function};
}

// The address of the instruction that is executed, as if the thread had no copy of its own; the end: it is not known.
std::uint64_t StackReader::instruction_of(const Piece& fields, const PythonCode& code) {
  const std::uint64_t instruction = fields.word(layout_.frame.instruction);
  const auto copy = static_cast<std::int32_t>(fields.word(layout_.frame.copy));
  if (layout_.code.copies == 0 || copy <= 0) return instruction;  // the first one is the original
  const auto number = memory_->read<std::uint64_t>(code.copies);
  if (!number || static_cast<std::uint64_t>(copy) >= *number) return code.end;
  const auto begin = memory_->read<std::uint64_t>(code.copies + (1 + copy) * sizeof(std::uint64_t));
  return begin ? instruction - *begin + code.begin : code.end;
}

// A frame that has not started has the index -1.
std::optional<PythonFrame> StackReader::decode_object(const Piece& fields) {
  constexpr std::uint64_t kUnit = 2;  // since 3.10 they are counted, before that their bytes
  const PythonCode* code = code_of(fields);
  if (code == nullptr) return std::nullopt;
  const auto index = static_cast<std::int32_t>(fields.word(layout_.frame.instruction));
  const std::uint64_t offset =
      static_cast<std::uint32_t>(index) * (layout_.line_format == PythonLineFormat::kRanges ? kUnit : 1);
  const int line =
      index < 0 ? code->first_line : python_line(code->lines, code->first_line, offset, layout_.line_format);
  const PythonFunction* function = functions_.find(fields.word(layout_.frame.code), fields.word(layout_.frame.globals));
  return PythonFrame{code->file, line, function == nullptr ? code->function : function->name};
}

// The address of the function object of a frame; 0: not known.
std::uint64_t StackReader::function_of(const Piece& fields) {
  constexpr std::uint64_t kFlags = 3;
  if (!layout_.frame_is_object) return fields.word(layout_.frame.function) & ~kFlags;
  const PythonFunction* function = functions_.find(fields.word(layout_.frame.code), fields.word(layout_.frame.globals));
  return function == nullptr ? 0 : function->address;
}

const PythonCode* StackReader::code_of(const Piece& fields) {
  std::uint64_t address = fields.word(layout_.frame.code);
  if (layout_.code_tagged) address &= ~std::uint64_t{3};
  return codes_.read(address);
}

// The defaults belong to the last arguments: the first of N defaults to the Nth argument from the end.
std::optional<std::uint64_t> StackReader::compare_with_default(std::uint64_t frame, const Piece& fields) {
  constexpr std::uint64_t kFlags = 3, kMostArguments = 64;
  const auto word = [this](std::uint64_t address) { return memory_->read<std::uint64_t>(address & ~kFlags); };
  const std::uint64_t function = function_of(fields);
  const auto defaults = function == 0 ? std::nullopt : word(function + layout_.function_defaults);
  const auto default_count = defaults ? word(*defaults + layout_.object_size) : std::nullopt;
  const auto default_value = defaults ? word(*defaults + layout_.tuple_items) : std::nullopt;
  const std::uint64_t arguments = code_of(fields)->argument_count;
  if (!default_value || !default_count || *default_count == 0 || *default_count > arguments) return std::nullopt;
  if (arguments > kMostArguments) return std::nullopt;
  const std::uint64_t index = arguments - *default_count;
  const auto value = word(frame + layout_.frame.locals + index * sizeof(std::uint64_t));
  if (!value) return std::nullopt;
  return (*value & ~kFlags) == *default_value ? 1 : 0;
}

// BaseEventLoop.__init__ sets `_ready`, the only deque of a loop, among the first of its attributes.
std::optional<std::uint64_t> StackReader::count_callbacks(std::uint64_t frame, const Piece& /*fields*/) {
  constexpr std::uint64_t kFlags = 3, kWord = sizeof(std::uint64_t);
  constexpr std::size_t kFirst = 8;
  const auto word = [this](std::uint64_t address) { return memory_->read<std::uint64_t>(address).value_or(0); };
  const auto values = attributes_at(word(frame + layout_.frame.locals) & ~kFlags, layout_, memory_);
  for (std::size_t i = 0; values && i < kFirst; ++i) {
    const std::uint64_t value = word(*values + i * kWord);
    if (PythonObjects(layout_, memory_).is_a(value, "collections.deque")) return word(value + layout_.object_size);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> StackReader::read_processes(std::uint64_t frame, const Piece& /*fields*/) {
  constexpr std::uint64_t kFlags = 3;
  const std::uint64_t self = memory_->read<std::uint64_t>(frame + layout_.frame.locals).value_or(0) & ~kFlags;
  own_processes_ = numbers_of_processes(self, layout_, memory_);
  return own_processes_ ? std::optional(own_processes_->size()) : std::nullopt;
}

std::optional<std::uint64_t> StackReader::read_first_number(std::uint64_t frame, const Piece& /*fields*/) {
  constexpr std::uint64_t kFlags = 3;
  const auto word = [this](std::uint64_t address) { return memory_->read<std::uint64_t>(address).value_or(0); };
  const std::uint64_t value = word(frame + layout_.frame.locals + sizeof(std::uint64_t)) & ~kFlags;
  const std::uint64_t type = word(value + type_offset(layout_));
  if (type != 0 && type == python_.types.floating) return memory_->read<std::uint64_t>(value + layout_.object_size);
  const auto number = PythonObjects(layout_, memory_).number_of(value);
  return number ? std::optional(bits_of_double(static_cast<double>(*number))) : std::nullopt;
}

// Skips libraries: they make new frames each time they are called to wait.
void StackReader::read_locals(std::uint64_t frame, const Piece& fields, PythonThread* thread) {
  const PythonFrame& decoded = thread->frames.back();
  const PythonFrameWords words{frame, fields.word(layout_.frame.globals), fields.word(layout_.frame.stack_top),
                               decoded.function == "<module>"};
  if (thread->frames.size() == 1) waits_ = {};
  PythonWaits::Look look;
  PythonWaits::LookAfter look_after;
  const bool reads_instructions = knows_instructions(python_.minor) && !is_free_threaded(layout_);
  if (reads_instructions) {
    look = [&](const LimitedCall& called) {
      return between_waits(words, *code_of(fields), layout_, &codes_, memory_, called);
    };
    look_after = [&](const LimitedCall& called, PythonBeat* beat) {
      return after_wait(words, *code_of(fields), layout_, &codes_, memory_, called, beat);
    };
  }
  waits_.add(decoded, fields.word(layout_.frame.code), look, look_after);
  thread->may_decide = waits_.may_decide();
  thread->beat = waits_.beat();
  if (is_library_file(decoded.file)) return;
  add_locals(words, *code_of(fields), layout_, python_.types, memory_, &thread->locals);
  const bool is_innermost = std::all_of(thread->frames.begin(), thread->frames.end() - 1,
                                        [](const PythonFrame& inner) { return is_library_file(inner.file); });
  if (reads_instructions && is_innermost) {
    thread->awaited = awaited_in_loop(words, *code_of(fields), layout_, &codes_, memory_);
  }
}

void StackReader::read_gil(std::uint64_t interpreter) {
  std::uint64_t gil = python_.runtime.address + layout_.runtime.gil;
  if (layout_.gil_of_interpreter) gil = memory_->read<std::uint64_t>(interpreter + layout_.interpreter.gil).value_or(0);
  const auto& at = layout_.gil;
  const auto fields =
      Piece::read(memory_, gil, {at.last_holder, at.locked, at.switch_number, at.condition, at.enabled});
  if (!fields || !gils_.insert(gil).second) return;
  if (is_free_threaded(layout_) && static_cast<std::int32_t>(fields->word(at.enabled)) == 0) return;
  PythonGil found;
  found.locked = static_cast<std::int32_t>(fields->word(at.locked)) == 1;  // an int; -1: not there yet
  found.last_holder = tid_of(fields->word(at.last_holder));
  found.switch_number = fields->word(at.switch_number);
  found.wait_begin = gil + at.condition;
  found.wait_end = found.wait_begin + kConditionSize;
  stacks_.gils.push_back(found);
}

pid_t StackReader::tid_of(std::uint64_t state) const {
  const auto known = states_.find(state);
  return known == states_.end() ? 0 : known->second;
}

PythonStacks read_stacks(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings, bool with_locals) {
  ProcessMemory memory(proc, pid, kMostMemory);
  PythonStacks stacks;
  auto python = find_python(proc, pid, mappings, &memory, &stacks.reason);
  if (!python) return stacks;
  StackReader reader(proc, pid, std::move(*python), &memory);
  if (with_locals) reader.want_locals();
  return reader.read();
}

// What `ask` answers, if the process has a Python that can be read.
template <typename Ask>
auto ask_reader(ProcSource* proc, pid_t pid, const Ask& ask) -> decltype(ask(std::declval<StackReader*>())) {
  ProcessMemory memory(proc, pid, kMostMemory);
  std::string reason;
  const auto mappings = parse_maps(proc->read(std::to_string(pid) + "/maps").value_or(""));
  auto python = find_python(proc, pid, mappings, &memory, &reason);
  if (!python) return std::nullopt;
  StackReader reader(proc, pid, std::move(*python), &memory);
  return ask(&reader);
}

std::optional<std::uint64_t> ask_python(ProcSource* proc, pid_t pid, pid_t tid, std::string_view function,
                                        StackReader::Question question) {
  return ask_reader(proc, pid, [&](StackReader* reader) { return reader->ask(tid, function, question); });
}

}  // namespace

PythonStacks read_python_stacks(ProcSource* proc, pid_t pid) {
  return read_python_stacks(proc, pid, parse_maps(proc->read(std::to_string(pid) + "/maps").value_or("")));
}

PythonStacks read_python_stacks(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings) {
  return read_stacks(proc, pid, mappings, false);
}

std::optional<bool> first_default_is_used(ProcSource* proc, pid_t pid, pid_t tid, std::string_view function) {
  const auto is_used = ask_python(proc, pid, tid, function, &StackReader::compare_with_default);
  return is_used ? std::optional(*is_used != 0) : std::nullopt;
}

std::optional<double> first_number(ProcSource* proc, pid_t pid, pid_t tid, std::string_view function) {
  const auto bits = ask_python(proc, pid, tid, function, &StackReader::read_first_number);
  return bits ? std::optional(double_of_bits(*bits)) : std::nullopt;
}

std::optional<std::size_t> callbacks_of_loop(ProcSource* proc, pid_t pid, pid_t tid) {
  return ask_python(proc, pid, tid, "BaseEventLoop._run_once", &StackReader::count_callbacks);
}

std::optional<std::set<pid_t>> numbers_of_own_processes(ProcSource* proc, pid_t pid, pid_t tid,
                                                        std::string_view function) {
  return ask_reader(proc, pid, [&](StackReader* reader) {
    (void)reader->ask(tid, function, &StackReader::read_processes);
    return reader->own_processes();
  });
}

PythonStacks read_python_progress(ProcSource* proc, pid_t pid) {
  return read_stacks(proc, pid, parse_maps(proc->read(std::to_string(pid) + "/maps").value_or("")), true);
}

std::span<const PythonFrame> own_frames(const std::vector<PythonFrame>& frames) {
  const auto first = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "BaseProcess._bootstrap" && frame.file.ends_with("/multiprocessing/process.py");
  });
  return {frames.begin(), first == frames.end() ? first : first + 1};
}

}  // namespace mprun
