// The small readers of core/job: names, durations, dtypes, clipped texts.
#include "json/words.h"

#include <cmath>

#include "formats/dtype.h"
#include "fuzz_support.h"
#include "json/json.h"
#include "json/text_position.h"
#include "targets.h"

namespace mprun::fuzz {

void words(std::string_view input) {
  Bytes bytes(input);
  const std::size_t limit = 4 + bytes.take<std::uint8_t>();
  const std::size_t offset = bytes.take<std::uint8_t>();
  const std::string_view text = bytes.rest();

  const std::string clipped = clip(text, limit);
  require(clipped.size() <= limit, "a clipped text keeps to its limit");
  require(text.size() > limit || clipped == text, "a short text is not clipped");
  const std::string quoted = in_quotes(text);
  require(quoted.front() == '"' && quoted.back() == '"' && quoted.find('\n') == std::string::npos, "it is one line");

  const auto seconds = duration_seconds(Json(std::string(text)));
  require(!seconds || std::isfinite(*seconds) || text.size() > 100, "a duration is a number");
  require(!seconds || *seconds >= 0, "a duration is not negative");
  const auto dtype = find_dtype(text);
  require(!dtype || (dtype->bytes > 0 && find_dtype(dtype->text)), "a dtype's own text names it");
  static const std::vector<std::string> known = {"processes", "start_method", "threads_per_worker", "chunk_size"};
  if (const auto near = nearest_name(text, known)) require(text.size() < 100, "what is long is no typing error");
  (void)is_identifier(text);
  (void)show_position(text, offset);
}

}  // namespace mprun::fuzz
