// Files that get their name only when complete: a name refers to the whole new file, or to what had the name before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/spec.h"
#include "record/append_file.h"

namespace mprun {

/// When the data of a call must be on disk: whenever the kernel writes it back, or before the call returns.
enum class OnDisk : std::uint8_t { kLater, kNow };

[[nodiscard]] constexpr OnDisk on_disk(Durability durability) {
  return durability == Durability::kNone ? OnDisk::kLater : OnDisk::kNow;
}

/// Renames a file that was written under another name in the same directory to `path`. kNow: its bytes are on disk
/// before the rename, and the name is on disk when this returns. On failure the file is removed.
[[nodiscard]] Result<void> take_name(AppendFile* file, const std::string& path, OnDisk when);

/// Writes `text` to PATH.tmp, then renames it to `path`; on failure neither file is left.
[[nodiscard]] Result<void> write_atomically(const std::string& path, std::string_view text, OnDisk when);

/// The text of a file that another mprun replaces so; empty: it is not there, or unreadable now. open(2) asks the
/// server of a network file system; stat(2) may answer from a cache.
[[nodiscard]] std::string read_if_there(const std::string& path);

/// As write_atomically(), for a file that an option names; kUsage errors begin with that name.
[[nodiscard]] Result<void> write_for_option(const std::string& option, const std::string& path, std::string_view text);

/// The document indented by two spaces, with a final newline; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string indented(const Json& document);

}  // namespace mprun
