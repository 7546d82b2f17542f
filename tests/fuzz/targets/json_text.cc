// Byte strings to JSON and back, and the error for a text that is not JSON.
#include "json/json_text.h"

#include <algorithm>

#include "fuzz_support.h"
#include "json/json.h"
#include "json/json_syntax.h"
#include "json/text_position.h"
#include "targets.h"

namespace mprun::fuzz {

namespace {

// The parser takes a byte of 0 for the end, and any depth, which Python's json does not.
bool is_more_than_python_reads(std::string_view text) {
  constexpr int kLevels = 900;
  return text.find('\0') != std::string_view::npos ||
         std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) > kLevels;
}

}  // namespace

void json_text(std::string_view input) {
  std::string text;
  append_json_string(&text, input);
  require(decode_json_text(text) == input, "any bytes survive being written as JSON and read");
  require(text.find('\n') == std::string::npos, "a JSON string is one line");
  // Bytes that are not UTF-8 are lone surrogates, which the parser does not support.
  require(Json::accept(text) || text.find("\\udc") != std::string::npos, "what is written is JSON, in UTF-8");

  require(decode_json_text(input).size() <= input.size(), "no text grows by being read");
  const auto fault = check_json(input);
  const bool parsed = Json::accept(input);
  require(fault || parsed, "the checker takes nothing that the parser refuses");
  require(!fault || !parsed || is_more_than_python_reads(input), "and what it takes, as far as Python reads it");
  if (!fault) return;
  require(fault->offset <= input.size(), "a fault lies in the text");
  require(!fault->cause.empty() && fault->cause.size() < 400, "its cause has words, and few of them");
  require(show_position(input, fault->offset).size() < 400, "what is shown of the text is short");
}

}  // namespace mprun::fuzz
