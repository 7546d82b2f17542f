// Json, declared and no more, for headers that only name it: the whole library takes a second to compile.
// Who makes, reads or copies a value includes job/json.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace mprun {

/// A JSON value; objects keep the order of their members.
using Json = nlohmann::ordered_json;

}  // namespace mprun
