// A job spec's text: arbitrary JSON.
#include "json/document.h"

#include <algorithm>

#include "fuzz_support.h"
#include "json/json.h"
#include "json/json_syntax.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr std::size_t kLongestMessage = 1000;

void check_lines(const Document& document) {
  const auto lines = static_cast<int>(std::count(document.text.begin(), document.text.end(), '\n')) + 1;
  for (const auto& [key, value] : document.value.items()) {
    const Json::json_pointer pointer = Json::json_pointer() / key;
    const int line = line_of(document, pointer.to_string());
    require(line >= 1 && line <= lines, "every value of a document stands in a line of it");
  }
}

}  // namespace

void document(std::string_view input) {
  const auto read = parse_document("job.json", "/", std::string(input));
  if (!read) {
    require(read.error().fault == Fault::kUsage, "an error in a text is a usage error");
    require(!read.error().message.empty() && read.error().message.size() < kLongestMessage, "messages are short");
    return;
  }
  require(!check_json(read->text), "the reader of specs takes nothing that the reader of inputs would not");
  check_lines(*read);
  const auto again = parse_document("job.json", "/", read->value.dump());
  require(again && again->value == read->value, "a value survives being written and read");
}

}  // namespace mprun::fuzz
