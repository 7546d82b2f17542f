// Json, declared only, for headers that just name it: the whole library takes a second to compile. Files that make,
// read or copy a value include json/json.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace mprun {

/// A JSON value; objects keep the order of their members.
using Json = nlohmann::ordered_json;

}  // namespace mprun
