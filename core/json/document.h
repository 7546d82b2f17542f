// Document: a JSON text and where it came from, so that errors can name file and line. Made by cli/ (files, command
// line) and read by resolve(). Owns text and value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace mprun {

/// The name of a document that is read from standard input.
inline constexpr const char* kStdinName = "standard input";

struct Document {
  std::string name;      ///< for messages: the file as the user named it, "the command line"
  std::string base_dir;  ///< absolute; relative paths in this document start here
  std::string text;      ///< empty where the value was not read from a text
  Json value = Json::object();
  /// For the command line: JSON pointer → the option as typed ("--set limits.task_seconds=x").
  std::vector<std::pair<std::string, std::string>> origins;
  /// Fields without an effect on the job are dropped; otherwise they are errors. True for a document that serves many
  /// jobs, like the user's configuration, or is the record of a run.
  bool lenient = false;
};

/// Reads and parses one JSON file; "-" is standard input. Errors: missing, unreadable, empty, not
/// JSON (line and column, the offending line shown with a caret), a duplicate key, not an object.
[[nodiscard]] Result<Document> read_document(const std::string& path, const std::string& current_directory);

/// The same for a text already in memory.
[[nodiscard]] Result<Document> parse_document(std::string name, std::string base_dir, std::string text);

/// The line (from 1) of the value at `pointer`, 0 if there is no text.
[[nodiscard]] int line_of(const Document& document, const std::string& pointer);

/// "job.json:7" or "the command line (--set x=1)": how messages name a place.
[[nodiscard]] std::string place_of(const Document& document, const std::string& pointer);

}  // namespace mprun
