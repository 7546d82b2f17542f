// What of Python's own libraries, and of psutil, lets no thread go on that waits. Used by python_beat.cc.
#pragma once

#include <string_view>

namespace mprun {

/// Modules whose functions and classes change nothing for which a thread waits. Some of them write.
[[nodiscard]] bool is_harmless_module(std::string_view module);
[[nodiscard]] bool is_harmless_function(std::string_view module, std::string_view name);
/// The same of all methods of a type of the interpreter's ("dict", "_io.TextIOWrapper"), unless their names say else.
[[nodiscard]] bool is_harmless_type(std::string_view type);
/// Modules whose objects threads wait for, or tell about threads and processes.
[[nodiscard]] bool has_waits(std::string_view module);
/// A handler of logging that only writes, by the name of its class.
[[nodiscard]] bool is_log_handler(std::string_view type);

/// What a method does, as its name says.
enum PythonMethods : unsigned char {
  kAsks,           ///< of an object that threads wait for: it changes nothing
  kActs,           ///< it may let another thread go on
  kChanges,        ///< it changes a collection
  kWrites,         ///< to a file or a log
  kTakes,          ///< from a pipe, a socket or a queue
  kDenied,         ///< it does more, or lets a thread go on after many calls
  kHarmlessOfAny,  ///< nothing of that, whatever it is a method of
};
[[nodiscard]] bool is_method(std::string_view name, PythonMethods kind);

}  // namespace mprun
