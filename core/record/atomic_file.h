// Files that take their name when they are whole, so that a name stands for all of a file or for what had it before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/spec.h"
#include "record/append_file.h"

namespace mprun {

/// When what a call writes has to be on disk: as soon as the kernel likes, or when the call returns.
enum class OnDisk : std::uint8_t { kLater, kNow };

[[nodiscard]] constexpr OnDisk on_disk(Durability durability) {
  return durability == Durability::kNone ? OnDisk::kLater : OnDisk::kNow;
}

/// Renames a file that is written under a name beside it to `path`. kNow: its bytes are on disk before the name is
/// taken, and the name is when this returns. On failure it is removed.
[[nodiscard]] Result<void> take_name(AppendFile* file, const std::string& path, OnDisk when);

/// Writes `text` to PATH.tmp, which then takes the name `path`; on failure neither is left behind.
[[nodiscard]] Result<void> write_atomically(const std::string& path, std::string_view text, OnDisk when);

/// The document indented by two, with a final newline; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string indented(const Json& document);

}  // namespace mprun
