#include "watch/stacks/python_layout.h"

#include <algorithm>
#include <cstring>

namespace mprun {
namespace {

// offsetof() of CPython 3.9.18's Include/internal and Include/cpython, and of 3.10.13's. The thread states have no
// native id: that of a thread is found by its pthread_t.
constexpr PythonLayout kPython39 = {
    .minor = 9,
    .object_size = 16,
    .runtime = {.finalizing = 16, .interpreters = 32, .gil = 352},
    .interpreter = {.next = 0, .threads = 8, .gil = 0},
    .gil_of_interpreter = false,
    .gil = {.last_holder = 8, .locked = 16, .switch_number = 24, .condition = 32, .enabled = 0},
    .thread = {.next = 8, .interpreter = 16, .pthread = 176, .native_id = 0, .frame = 24},
    .frame_of_cframe = false,
    .cframe_frame = 0,
    .frame_is_object = true,
    .frame = {.function = 0,
              .globals = 48,
              .code = 32,
              .previous = 24,
              .instruction = 104,
              .stack_top = 16,
              .owner = 0,
              .locals = 360,
              .copy = 0},
    .code_tagged = false,
    .stack_top_is_pointer = false,
    .line_format = PythonLineFormat::kSteps,
    .code = {.argument_count = 16,
             .first_line = 40,
             .local_count = 28,
             .filename = 104,
             .qualified_name = 112,
             .line_table = 120,
             .first_traceable = 0,
             .instructions = 0,
             .copies = 0},
    .function = {.code = 16, .qualified_name = 104},
    .function_defaults = 32,
    .tuple_items = 24,
    .text = {.length = 16, .state = 32, .ascii_data = 48, .compact_data = 72, .bytes_data = 32, .interned_bits = 2},
};

constexpr PythonLayout kPython310 = [] {
  PythonLayout layout = kPython39;
  layout.minor = 10;
  layout.frame.instruction = 96;
  layout.frame.locals = 352;
  layout.line_format = PythonLineFormat::kRanges;
  layout.function = {.code = 48, .qualified_name = 40};
  layout.function_defaults = 56;
  return layout;
}();

// offsetof() of CPython 3.11.2's Include/internal and Include/cpython (3.11.7 has the same);
// tests/unit/python_header_offsets.c reads the installed headers.
constexpr PythonLayout kPython311 = {
    .minor = 11,
    .object_size = 16,
    .runtime = {.finalizing = 24, .interpreters = 40, .gil = 360},
    .interpreter = {.next = 0, .threads = 16, .gil = 0},
    .gil_of_interpreter = false,
    .gil = {.last_holder = 8, .locked = 16, .switch_number = 24, .condition = 32, .enabled = 0},
    .thread = {.next = 8, .interpreter = 16, .pthread = 152, .native_id = 160, .frame = 56},
    .frame_of_cframe = true,
    .cframe_frame = 8,
    .frame_is_object = false,
    .frame = {.function = 0,
              .globals = 8,
              .code = 32,
              .previous = 48,
              .instruction = 56,
              .stack_top = 64,
              .owner = 69,
              .locals = 72,
              .copy = 0},
    .code_tagged = false,
    .stack_top_is_pointer = false,
    .line_format = PythonLineFormat::kLocations,
    .code = {.argument_count = 56,
             .first_line = 72,
             .local_count = 76,
             .filename = 112,
             .qualified_name = 128,
             .line_table = 136,
             .first_traceable = 168,
             .instructions = 184,
             .copies = 0},
    .function = {},
    .function_defaults = 56,
    .tuple_items = 24,
    .text = {.length = 16, .state = 32, .ascii_data = 48, .compact_data = 72, .bytes_data = 32, .interned_bits = 2},
};

// The same of CPython 3.12.1.
constexpr PythonLayout kPython312 = {
    .minor = 12,
    .object_size = 16,
    .runtime = {.finalizing = 24, .interpreters = 40, .gil = 0},
    .interpreter = {.next = 0, .threads = 72, .gil = 384},
    .gil_of_interpreter = true,
    .gil = {.last_holder = 8, .locked = 16, .switch_number = 24, .condition = 32, .enabled = 0},
    .thread = {.next = 8, .interpreter = 16, .pthread = 136, .native_id = 144, .frame = 56},
    .frame_of_cframe = true,
    .cframe_frame = 0,
    .frame_is_object = false,
    .frame = {.function = 16,
              .globals = 24,
              .code = 0,
              .previous = 8,
              .instruction = 56,
              .stack_top = 64,
              .owner = 70,
              .locals = 72,
              .copy = 0},
    .code_tagged = false,
    .stack_top_is_pointer = false,
    .line_format = PythonLineFormat::kLocations,
    .code = {.argument_count = 52,
             .first_line = 68,
             .local_count = 72,
             .filename = 112,
             .qualified_name = 128,
             .line_table = 136,
             .first_traceable = 176,
             .instructions = 192,
             .copies = 0},
    .function = {},
    .function_defaults = 56,
    .tuple_items = 24,
    .text = {.length = 16, .state = 32, .ascii_data = 40, .compact_data = 56, .bytes_data = 32, .interned_bits = 2},
};

/// The words of a _Py_DebugOffsets, taken one after the other.
class Description {
 public:
  explicit Description(std::string_view bytes) : bytes_(bytes) {}

  std::uint32_t next() {
    std::uint64_t word = 0;
    if (bytes_.size() < sizeof word) return fail();
    std::memcpy(&word, bytes_.data(), sizeof word);
    bytes_.remove_prefix(sizeof word);
    return word < kLargestOffset ? static_cast<std::uint32_t>(word) : fail();
  }
  void skip(int words) {
    while (words-- > 0) next();
  }
  /// The next word must be this.
  void expect(std::uint32_t word) { sound_ = next() == word && sound_; }
  [[nodiscard]] bool sound() const { return sound_; }

 private:
  static constexpr std::uint64_t kLargestOffset = 1U << 26U;  ///< sizes are among the words: _PyRuntime has 400 KiB
  std::uint32_t fail() {
    sound_ = false;
    return 0;
  }
  std::string_view bytes_;
  bool sound_ = true;
};

// The parts of a description, in its order. Each begins with a size.

void read_runtime(Description* words, PythonLayout* layout) {
  words->skip(1);
  layout->runtime.finalizing = words->next();
  layout->runtime.interpreters = words->next();
}

void read_interpreter(unsigned minor, Description* words, PythonLayout* layout) {
  words->skip(2);  // size, id
  layout->interpreter.next = words->next();
  layout->interpreter.threads = words->next();
  if (minor >= 14) words->skip(1);  // threads_main
  words->skip(4);                   // gc, imports_modules, sysdict, builtins
  layout->interpreter.gil = words->next();
  layout->gil_of_interpreter = true;
  const std::uint32_t gil = words->next();
  layout->gil.enabled = words->next();
  layout->gil.locked = words->next() - gil;
  layout->gil.last_holder = words->next() - gil;
  layout->gil.switch_number = layout->gil.locked + 8;  // not described; so since 3.2
  layout->gil.condition = layout->gil.locked + 16;
  if (minor >= 14) words->skip(2);  // code_object_generation, tlbc_generation
}

void read_thread(unsigned minor, Description* words, PythonLayout* layout) {
  words->skip(2);  // size, prev
  layout->thread.next = words->next();
  layout->thread.interpreter = words->next();
  layout->thread.frame = words->next();
  if (minor >= 15) words->skip(3);  // base_frame, last_profiled_frame, last_profiled_frame_seq
  layout->thread.pthread = words->next();
  layout->thread.native_id = words->next();
  words->skip(2);                   // datastack_chunk, status
  if (minor >= 15) words->skip(5);  // holds_gil, gil_requested, current_exception, exc_state; _PyErr_StackItem
}

void read_frame(unsigned minor, Description* words, PythonLayout* layout) {
  words->skip(1);
  layout->frame.previous = words->next();
  layout->frame.code = words->next();
  layout->frame.instruction = words->next();
  layout->frame.locals = words->next();
  layout->frame.owner = words->next();
  layout->frame.stack_top = layout->frame.instruction + 8;  // not described by 3.13
  if (minor >= 14) layout->frame.stack_top = words->next();
  if (minor >= 14) layout->frame.copy = words->next();
  layout->frame.function = layout->frame.code + 16;  // not described, like the globals
  layout->frame.globals = layout->frame.code + 24;
  layout->function_defaults = layout->object_size + 40;  // not described; so since 3.10
  layout->code_tagged = layout->stack_top_is_pointer = minor >= 14;
}

void read_code(unsigned minor, Description* words, PythonLayout* layout) {
  words->skip(1);
  layout->code.filename = words->next();
  words->skip(1);  // name
  layout->code.qualified_name = words->next();
  layout->code.line_table = words->next();
  layout->code.first_line = words->next();
  layout->code.local_count = layout->code.first_line + 4;  // not described
  layout->code.argument_count = words->next();
  words->skip(2);  // localsplusnames, localspluskinds
  layout->code.instructions = words->next();
  if (minor >= 14) layout->code.copies = words->next();
  // Not described: an int and a pointer, and then perhaps that to the copies, come before the instructions.
  layout->code.first_traceable = layout->code.instructions - (layout->code.copies == 0 ? 16 : 24);
}

/// Checks the parts about types that never change: if they are where this version has them, we read it right.
void check_objects(unsigned minor, Description* words, PythonLayout* layout) {
  const std::uint32_t more = layout->object_size - 16;
  words->expect(16 + more);         // PyObject
  words->expect(8 + more);          // .ob_type
  words->skip(1);                   // PyTypeObject
  words->expect(24 + more);         // .tp_name
  words->expect(88 + more);         // .tp_repr
  words->expect(168 + more);        // .tp_flags
  if (minor >= 15) words->skip(4);  // .tp_basicsize, .tp_dictoffset; PyHeapTypeObject
  words->skip(1);                   // PyTupleObject
  layout->tuple_items = words->next();
  words->skip(4);                   // .ob_size; list
  if (minor >= 14) words->skip(4);  // set
  words->skip(8);                   // dict, float, long
}

void read_text(unsigned minor, Description* words, PythonLayout* layout) {
  words->skip(1);
  words->expect(layout->object_size);  // PyBytesObject.ob_size
  layout->text.bytes_data = words->next();
  words->skip(1);
  layout->text.state = words->next();
  layout->text.length = words->next();
  layout->text.ascii_data = words->next();
  layout->text.compact_data = layout->text.ascii_data + 16;                       // utf8_length and utf8 between
  layout->text.interned_bits = minor >= 14 && is_free_threaded(*layout) ? 8 : 2;  // not described
}

/// Each of these structures is read in one piece.
bool small_parts_are_small(const PythonLayout& layout) {
  constexpr std::uint32_t kMost = kLargestPythonPiece - sizeof(std::uint64_t);
  const auto& thread = layout.thread;
  const auto& frame = layout.frame;
  const auto& code = layout.code;
  return std::max({thread.next,         thread.interpreter, thread.pthread,          thread.native_id,  thread.frame,
                   frame.code,          frame.previous,     frame.instruction,       frame.owner,       frame.globals,
                   frame.stack_top,     frame.copy,         code.first_line,         code.local_count,  code.filename,
                   code.qualified_name, code.line_table,    code.first_traceable,    code.instructions, code.copies,
                   layout.text.state,   layout.text.length, layout.text.compact_data}) <= kMost;
}

}  // namespace

const PythonLayout* known_python_layout(unsigned minor) {
  switch (minor) {
    case 9:
      return &kPython39;
    case 10:
      return &kPython310;
    case 11:
      return &kPython311;
    case 12:
      return &kPython312;
    default:
      return nullptr;
  }
}

std::optional<PythonLayout> described_python_layout(unsigned minor, std::string_view description) {
  constexpr std::string_view kCookie = "xdebugpy";
  if (minor < 13 || minor > 15 || description.substr(0, kCookie.size()) != kCookie) return std::nullopt;
  Description words(description.substr(kCookie.size() + sizeof(std::uint64_t)));  // the version follows the cookie
  PythonLayout layout{};
  layout.minor = minor;
  layout.object_size = words.next() == 0 ? 16 : 32;
  read_runtime(&words, &layout);
  read_interpreter(minor, &words, &layout);
  read_thread(minor, &words, &layout);
  read_frame(minor, &words, &layout);
  read_code(minor, &words, &layout);
  check_objects(minor, &words, &layout);
  read_text(minor, &words, &layout);
  const std::uint32_t holder = is_free_threaded(layout) ? 16 : 8;  // `enabled` lies before it there
  if (!words.sound() || layout.gil.locked != holder + 8 || layout.gil.last_holder != holder) return std::nullopt;
  if (!small_parts_are_small(layout)) return std::nullopt;
  return layout;
}

}  // namespace mprun
