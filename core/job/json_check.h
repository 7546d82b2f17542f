// Whether a text is one whole JSON value: what a worker says is its result goes into results.jsonl as it is. Called by
// the worker pools for every result, so it is one pass that builds nothing; owns nothing.
#pragma once

#include <string_view>

namespace mprun {

/// RFC 8259, in valid UTF-8, and nested at most 10,000 deep.
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace mprun
