// PythonLayout: byte offsets of what the stacks of a CPython interpreter are read from. They differ between versions,
// but not between patch releases. Used by python_stack.cc only; knows nothing of the watched process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mprun {

/// How a code object says which of its instructions belong to which line.
enum class PythonLineFormat {
  kLocations,  ///< co_linetable since 3.11
  kRanges,     ///< co_linetable of 3.10: pairs of a length and a step of lines, -128 for none
  kSteps,      ///< co_lnotab until 3.9: pairs of two steps
};

struct PythonLayout {
  unsigned minor;             ///< of Python 3.MINOR
  std::uint32_t object_size;  ///< of a PyObject, whose last field is its type: 16; 32 in a free-threaded Python
  struct {                    // _PyRuntimeState
    std::uint32_t finalizing, interpreters, gil;
  } runtime;
  struct {  // PyInterpreterState
    std::uint32_t next, threads, gil;
  } interpreter;
  bool gil_of_interpreter;  ///< `interpreter.gil` points to it; else it lies in the runtime, at `runtime.gil`
  struct {                  // struct _gil_runtime_state
    std::uint32_t last_holder, locked, switch_number, condition, enabled;
  } gil;    ///< `enabled` only in a free-threaded Python
  struct {  // PyThreadState
    std::uint32_t next, interpreter, pthread, native_id, frame;
  } thread;
  bool frame_of_cframe;        ///< `thread.frame` points to a _PyCFrame, and that to the frame
  std::uint32_t cframe_frame;  ///< in a _PyCFrame
  /// Until 3.10: frames are PyFrameObjects. `frame.instruction` is the index of the last one, an int, `frame.stack_top`
  /// the number of all values, unused ones among them, and there is no `function` nor `owner`.
  bool frame_is_object;
  struct {  // _PyInterpreterFrame; `copy` as code.copies
    std::uint32_t function, globals, code, previous, instruction, stack_top, owner, locals, copy;
  } frame;
  bool code_tagged;           ///< the two lowest bits of `frame.code` are flags, as in all references
  bool stack_top_is_pointer;  ///< `frame.stack_top` is one; else it counts from `frame.locals`
  PythonLineFormat line_format;
  struct {  // PyCodeObject; until 3.10 `qualified_name` is the name alone, and the instructions lie elsewhere
    std::uint32_t argument_count, first_line, local_count, filename, qualified_name, line_table, first_traceable,
        instructions;
    /// A free-threaded Python has copies of the instructions since 3.14: `copies` points to their number and then their
    /// addresses, and `frame.copy` is the index, an int, of the one that is executed. 0: it has none.
    std::uint32_t copies;
  } code;
  struct {  // PyFunctionObject, until 3.10
    std::uint32_t code, qualified_name;
  } function;
  std::uint32_t function_defaults;  ///< PyFunctionObject.func_defaults, a tuple
  std::uint32_t tuple_items;        ///< PyTupleObject.ob_item
  struct {                          // PyUnicodeObject, PyBytesObject
    std::uint32_t length, state, ascii_data, compact_data, bytes_data;
    unsigned interned_bits;  ///< the first bits of `state`, before the width of a character
  } text;
};

/// Every offset in a thread state, frame, code object or string is below this.
inline constexpr std::size_t kLargestPythonPiece = 512;

/// 3.9 to 3.12, by their headers; nullptr: another version. `minor` as in 3.MINOR.
[[nodiscard]] const PythonLayout* known_python_layout(unsigned minor);

/// How many bytes of _PyRuntime described_python_layout() needs.
inline constexpr std::size_t kPythonDescriptionSize = 1024;

/// 3.13 to 3.15 describe themselves at the start of _PyRuntime (struct _Py_DebugOffsets of
/// Include/internal/pycore_debug_offsets.h, in 3.13 of pycore_runtime.h); nullopt: this is no such description.
[[nodiscard]] std::optional<PythonLayout> described_python_layout(unsigned minor, std::string_view description);

inline bool is_free_threaded(const PythonLayout& layout) { return layout.object_size != 16; }
/// Where a PyObject has its type.
inline std::uint64_t type_offset(const PythonLayout& layout) { return layout.object_size - sizeof(std::uint64_t); }
/// Where a type has its flags (PyTypeObject.tp_flags).
inline std::uint64_t type_flags_offset(const PythonLayout& layout) { return layout.object_size + 152; }

}  // namespace mprun
