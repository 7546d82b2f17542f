// Converts byte strings to JSON texts and back. Bytes that are not UTF-8 become \udc80 to \udcff, as in Python's
// surrogateescape, so that a worker or a command gets the exact bytes of a file name or line. Used by the inputs and by
// the command launcher; owns nothing.
#pragma once

#include <string>
#include <string_view>

namespace mprun {

/// Appends `bytes` as a JSON string in quotes, on one line and in valid UTF-8.
void append_json_string(std::string* out, std::string_view bytes);

/// What replaces {} in a command: the bytes of a JSON string (surrogateescape undone), else the JSON text itself.
[[nodiscard]] std::string decode_json_text(std::string_view json);

}  // namespace mprun
