// Finds the CPython in a watched process and how to read it. Used by python_stack.cc.
#pragma once

#include "procfs/elf_symbols.h"
#include "procfs/process_facts.h"
#include "watch/stacks/python_code.h"

namespace mprun {

struct PythonInterpreter {
  std::string version;  ///< "3.11.2"
  unsigned minor = 0;   ///< 11
  ElfSymbol runtime;    ///< _PyRuntime
  PythonTypes types;
  PythonLayout layout{};
};

/// nullopt: there is none, or none that is known, as `reason` says then.
[[nodiscard]] std::optional<PythonInterpreter> find_python(ProcSource* proc, pid_t pid,
                                                           const std::vector<Mapping>& mappings, ProcessMemory* memory,
                                                           std::string* reason);

}  // namespace mprun
