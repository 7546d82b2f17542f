// Json, whole: for all who make, read or copy a value. What only names the type includes job/json_fwd.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "job/json_fwd.h"

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cc

namespace mprun {

/// The value of a JSON text; `is_discarded()` if it is none.
[[nodiscard]] Json parse_json(std::string_view text);

}  // namespace mprun
