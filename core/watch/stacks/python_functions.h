// The qualified names of functions before Python 3.11, whose code objects do not have them: found by looking through
// the module that a frame belongs to for the function with its code. Used by python_stack.cc. All it reads may be
// garbage.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "watch/stacks/python_code.h"

namespace mprun {

struct PythonFunction {
  std::string name;           ///< "Queue.get", "train.<locals>.step"
  std::uint64_t address = 0;  ///< of the function object; 0: it is made anew for each call of another one
};

/// Costs one read of memory for each function of a module and of its classes, once, and some for each that is found.
class PythonFunctionFinder {
 public:
  PythonFunctionFinder(ProcessMemory* memory, const PythonLayout& layout, const PythonTypes& types,
                       PythonCodeReader* codes)
      : memory_(memory), layout_(layout), types_(types), codes_(codes) {}

  /// The function with this code object, in the module with these globals; nullptr: there is none, as of the module's
  /// own code, and of what a decorator has replaced. It lives as long as this finder.
  [[nodiscard]] const PythonFunction* find(std::uint64_t code, std::uint64_t globals);

 private:
  struct Module {
    std::map<std::uint64_t, std::uint64_t> functions;  ///< by code object
    std::map<std::uint64_t, std::uint64_t> enclosing;  ///< the code object around another one, by that
    bool knows_enclosing = false;
  };
  [[nodiscard]] Module* module_of(std::uint64_t globals);
  [[nodiscard]] std::optional<PythonFunction> look_for(std::uint64_t code, Module* module, int depth);
  void add_value(std::uint64_t value, Module* module);
  void add_nested(std::uint64_t code, int depth, Module* module);
  [[nodiscard]] std::uint64_t word(std::uint64_t address);
  [[nodiscard]] std::vector<std::uint64_t> values_of(std::uint64_t dictionary);

  ProcessMemory* memory_;
  const PythonLayout& layout_;
  PythonTypes types_;
  PythonCodeReader* codes_;
  std::map<std::uint64_t, Module> modules_;                       ///< by the address of their globals
  std::map<std::uint64_t, std::optional<PythonFunction>> found_;  ///< by code object
};

}  // namespace mprun
