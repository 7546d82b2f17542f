// Words for messages of core/job: what was found, what is allowed, which known name is near. Called by the validation
// and the resolver; owns nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_fwd.h"

namespace mprun {

/// `text` in at most `limit` bytes, not cut within a UTF-8 character, and marked with "...".
[[nodiscard]] std::string clip(std::string_view text, std::size_t limit = 60);

/// A value as a message shows it: its JSON text without newlines, at most about 60 bytes.
[[nodiscard]] std::string preview(const Json& value);

/// `text` in double quotes, escaped as JSON does.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// "a", "b" or "c": the quoted names with `last` before the last one.
[[nodiscard]] std::string quoted_list(const std::vector<std::string>& names, std::string_view last = " or ");

/// Names joined by ", ".
[[nodiscard]] std::string comma_list(const std::vector<std::string>& names);

/// The known name that differs from `name` by the fewest typing errors, if they are few enough (Damerau-Levenshtein).
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known);

/// Whether `text` can be the name of a Python function; bytes from 0x80 on count as letters.
[[nodiscard]] bool is_identifier(std::string_view text);

/// Seconds of a JSON duration: a number, or a text such as "90s", "1h30m", "250ms"; nullopt if it is neither.
[[nodiscard]] std::optional<double> duration_seconds(const Json& value);

/// Bytes of a JSON size: a whole number, or a text such as "500MB", "1.5GiB"; nullopt if it is neither, or 2^63 or
/// more.
[[nodiscard]] std::optional<std::uint64_t> size_bytes(const Json& value);

/// A human-readable size: "17 bytes", "2.3 GiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace mprun
