// Json, whole: for all who make, read or copy a value. What only names the type includes job/json_fwd.h.
#pragma once

#include <nlohmann/json.hpp>  // IWYU pragma: export

#include "job/json_fwd.h"  // IWYU pragma: export
