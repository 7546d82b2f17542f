// What the names in a function of CPython 3.11 and later mean: its variables, its globals, the attributes of objects.
// Reads the memory of a watched process, so all of it may be garbage. Used by python_loop.cc and python_beat.cc.
#pragma once

#include <string>

#include "watch/stacks/python_code.h"
#include "watch/stacks/python_instructions.h"
#include "watch/stacks/python_locals.h"
#include "watch/stacks/python_object.h"

namespace mprun {

class PythonNames {
 public:
  static constexpr std::uint64_t kWord = 8, kSizeOf = 16;  ///< the number of items of a tuple, a list or bytes
  static constexpr std::uint64_t kItems = 24;              ///< of a list: the address of its items
  static constexpr std::uint64_t kHeapType = 1U << 9U, kExceptionType = 1U << 30U;

  /// Of a frame that is executed. All but `frame` must outlive it.
  PythonNames(const PythonFrameWords& frame, const PythonCode& code, const PythonLayout& layout,
              PythonCodeReader* codes, ProcessMemory* memory);
  /// Of a function that is not executed, or of code in it, whose variables are not known but for `self`.
  PythonNames(const PythonNames& caller, std::uint64_t code, std::uint64_t globals, std::uint64_t self);

  [[nodiscard]] std::uint64_t word(std::uint64_t address) const {
    return memory_->read<std::uint64_t>(address).value_or(0);
  }
  [[nodiscard]] std::string text(std::uint64_t string) const;
  [[nodiscard]] std::string c_text(std::uint64_t address) const;
  [[nodiscard]] const PythonCode* code_at(std::uint64_t address) const { return codes_->read(address); }

  /// Its code object, the instructions of that (none: they cannot be read), and its exception table.
  [[nodiscard]] std::uint64_t code() const { return code_; }
  [[nodiscard]] std::vector<PythonInstruction> instructions() const;
  [[nodiscard]] std::string exception_table() const;
  [[nodiscard]] std::uint64_t globals() const { return globals_; }

  [[nodiscard]] std::string name(unsigned index) const { return name_in(code_, index); }
  [[nodiscard]] std::string name_in(std::uint64_t code, unsigned index) const;
  [[nodiscard]] std::uint64_t name_count(std::uint64_t code) const;
  /// The name that an instruction loads from a module, from an object or by the rules of a module's own code; empty: it
  /// does nothing of that kind.
  [[nodiscard]] std::string name_loaded(const PythonInstruction& load) const;
  [[nodiscard]] std::uint64_t constant(unsigned index) const;

  /// Values of variables; 0: not set, or not known.
  [[nodiscard]] std::uint64_t slot(unsigned index) const;
  [[nodiscard]] std::uint64_t cell(unsigned index) const;
  /// Whether the variable is shared with other functions: since 3.13, kLoadFast loads the cell of one for these.
  [[nodiscard]] bool is_cell(unsigned index) const { return layout_->minor >= 13 && type_name(slot(index)) == "cell"; }
  [[nodiscard]] std::uint64_t global(const std::string& name) const;
  /// The value of a key in a dict; 0: it is not there.
  [[nodiscard]] std::uint64_t entry_of(std::uint64_t dict, const std::string& name) const;
  /// An attribute of an instance, which its class does not compute, or of a module.
  [[nodiscard]] std::uint64_t attribute_of(std::uint64_t object, const std::string& name) const;
  /// What the class of an object, or one that it inherits from, has by that name.
  [[nodiscard]] std::uint64_t class_entry_of(std::uint64_t object, const std::string& name) const;

  [[nodiscard]] std::uint64_t item_of(std::uint64_t tuple, std::uint64_t index) const;

  [[nodiscard]] std::uint64_t type_of(std::uint64_t object) const;
  [[nodiscard]] std::uint64_t flags_of_type(std::uint64_t type) const;
  /// As tp_name has it: "list", "collections.deque", of a class written in Python "Queue".
  [[nodiscard]] std::string name_of_type(std::uint64_t type) const;
  [[nodiscard]] std::string type_name(std::uint64_t object) const { return name_of_type(type_of(object)); }
  /// The module of a class written in Python.
  [[nodiscard]] std::string module_of_type(std::uint64_t type) const;
  /// Of a function in C, or a method of an object: its name, and its module ("time"; empty: a method).
  [[nodiscard]] std::string c_function_name(std::uint64_t function) const;
  [[nodiscard]] std::string c_function_module(std::uint64_t function) const;
  /// Of a function written in Python.
  [[nodiscard]] std::uint64_t code_of_function(std::uint64_t function) const;
  [[nodiscard]] std::uint64_t globals_of_function(std::uint64_t function) const;
  [[nodiscard]] std::string module_of_function(std::uint64_t function) const;

 private:
  [[nodiscard]] std::uint64_t entry_of_keys(std::uint64_t keys, std::uint64_t values, const std::string& name) const;

  PythonCodeReader* codes_;
  const PythonLayout* layout_;
  ProcessMemory* memory_;
  std::uint64_t code_ = 0, globals_ = 0, builtins_ = 0;
  std::uint64_t locals_ = 0;  ///< address; 0: it is not executed
  std::uint64_t self_ = 0;    ///< then its first argument, if that is known
};

}  // namespace mprun
