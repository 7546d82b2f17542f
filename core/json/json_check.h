// Checks that a text is one whole JSON value: the text that a worker reports as its result goes into results.jsonl
// unchanged. The worker pools call it for every result, so it makes one pass and builds nothing; owns nothing.
#pragma once

#include <string_view>

namespace mprun {

/// RFC 8259, in valid UTF-8, and nested at most 10,000 deep.
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace mprun
