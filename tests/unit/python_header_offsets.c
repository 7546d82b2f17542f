#include "python_header_offsets.h"

#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>

#if PY_MINOR_VERSION <= 12
#include "internal/pycore_frame.h"
#include "internal/pycore_runtime.h"
#endif

const unsigned python_header_minor = PY_MINOR_VERSION;

#if PY_MINOR_VERSION == 11
#define FRAME_FUNCTION f_func
#else
#define FRAME_FUNCTION f_funcobj
#endif

#define ENTRY(name, type, member) \
  { name, offsetof(type, member) }

const struct python_header_offset python_header_offsets[] = {
#if PY_MINOR_VERSION <= 12  // later ones describe themselves
    ENTRY("runtime.finalizing", _PyRuntimeState, _finalizing),
    ENTRY("runtime.interpreters", _PyRuntimeState, interpreters.head),
#if PY_MINOR_VERSION == 11
    ENTRY("runtime.gil", _PyRuntimeState, ceval.gil),
#else
    ENTRY("interpreter.gil", PyInterpreterState, ceval.gil),
#endif
    ENTRY("interpreter.next", PyInterpreterState, next),
    ENTRY("interpreter.threads", PyInterpreterState, threads.head),
    ENTRY("gil.last_holder", struct _gil_runtime_state, last_holder),
    ENTRY("gil.locked", struct _gil_runtime_state, locked),
    ENTRY("gil.switch_number", struct _gil_runtime_state, switch_number),
    ENTRY("gil.condition", struct _gil_runtime_state, cond),
    ENTRY("thread.next", PyThreadState, next),
    ENTRY("thread.interpreter", PyThreadState, interp),
    ENTRY("thread.pthread", PyThreadState, thread_id),
    ENTRY("thread.native_id", PyThreadState, native_thread_id),
    ENTRY("thread.frame", PyThreadState, cframe),
    ENTRY("cframe_frame", _PyCFrame, current_frame),
    ENTRY("frame.function", _PyInterpreterFrame, FRAME_FUNCTION),
    ENTRY("function_defaults", PyFunctionObject, func_defaults),
    ENTRY("tuple_items", PyTupleObject, ob_item),
    ENTRY("frame.globals", _PyInterpreterFrame, f_globals),
    ENTRY("frame.stack_top", _PyInterpreterFrame, stacktop),
    ENTRY("frame.locals", _PyInterpreterFrame, localsplus),
    ENTRY("frame.code", _PyInterpreterFrame, f_code),
    ENTRY("frame.previous", _PyInterpreterFrame, previous),
    ENTRY("frame.instruction", _PyInterpreterFrame, prev_instr),
    ENTRY("frame.owner", _PyInterpreterFrame, owner),
    ENTRY("code.first_line", PyCodeObject, co_firstlineno),
    ENTRY("code.argument_count", PyCodeObject, co_argcount),
    ENTRY("code.local_count", PyCodeObject, co_nlocalsplus),
    ENTRY("code.filename", PyCodeObject, co_filename),
    ENTRY("code.qualified_name", PyCodeObject, co_qualname),
    ENTRY("code.line_table", PyCodeObject, co_linetable),
    ENTRY("code.first_traceable", PyCodeObject, _co_firsttraceable),
    ENTRY("code.instructions", PyCodeObject, co_code_adaptive),
    ENTRY("text.length", PyASCIIObject, length),
    ENTRY("text.state", PyASCIIObject, state),
    {"text.ascii_data", sizeof(PyASCIIObject)},
    {"text.compact_data", sizeof(PyCompactUnicodeObject)},
    ENTRY("text.bytes_data", PyBytesObject, ob_sval),
#endif
    {NULL, 0}};
