// The structures according to the headers of the Python that builds mprun, for watch_python_layout_test.cc.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct python_header_offset {
  const char* name;  // "member of PythonLayout"
  unsigned long offset;
};

// PY_MINOR_VERSION
extern const unsigned python_header_minor;
// The last entry has no name.
extern const struct python_header_offset python_header_offsets[];

#ifdef __cplusplus
}
#endif
