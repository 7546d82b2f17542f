// Json, the full definition: for files that make, read or copy a value. Files that only name the type use
// json/json_fwd.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "json/json_fwd.h"

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cc

namespace mprun {

/// The value of a JSON text; `is_discarded()` if the text is invalid.
[[nodiscard]] Json parse_json(std::string_view text);

/// The same of a text in which bytes that are not UTF-8 may stand as halves of surrogate pairs, as Python and
/// append_json_string() write them; these become U+FFFD.
[[nodiscard]] Json parse_escaped_json(std::string_view text);

}  // namespace mprun
