#include "json/json_syntax.h"

#include <algorithm>

#include "json/json.h"

namespace mprun {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? text : text.substr(at + mark.size());
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Where the token begins that the parser did not accept; nlohmann only reports where it stopped reading.
std::size_t token_start(std::string_view text, std::size_t bytes_read, const std::string& last_token,
                        std::string_view cause) {
  const auto says = [&](std::string_view words) { return cause.find(words) != std::string_view::npos; };
  // its last token begins at the last string or number, so it is the whole token only for these
  if (says("unexpected string") || says("unexpected number") || says("invalid number")) {
    return bytes_read - std::min(bytes_read, last_token.size());
  }
  std::size_t start = bytes_read - std::min<std::size_t>(bytes_read, 1);
  if (says("invalid string")) return start;
  while (start > 0 && is_letter(text[start]) && is_letter(text[start - 1])) --start;
  return start;
}

/// Common mistakes of users who write JSON as Python or JavaScript; empty if there is none at `offset`.
std::string known_mistake(std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(offset);
  const char c = rest.empty() ? '\0' : rest.front();
  if (c == '\'') return "text must stand in double quotes";
  if (c == '#' || c == '/') return "JSON has no comments";
  const std::string_view mark = rest.substr(0, 2);
  if (mark == "\xFF\xFE" || mark == "\xFE\xFF") return "the text is in UTF-16; save it in UTF-8";
  if (c == '}' || c == ']') {
    const std::size_t before = text.substr(0, offset).find_last_not_of(kSpace);
    if (before != std::string_view::npos && text[before] == ',') {
      return std::string("a comma must not stand before the closing '") + c + "'";
    }
  }
  constexpr std::string_view kWords[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [wrong, right] : kWords) {
    if (rest.substr(0, wrong.size()) == wrong) return std::string(wrong) + " is written " + std::string(right);
  }
  if (rest.substr(0, 3) == "NaN" || rest.substr(0, 8) == "Infinity" || rest.substr(0, 9) == "-Infinity") {
    return "JSON has no NaN and no Infinity; write them as text";
  }
  return {};
}

// What the json module of every Python reads, which by default stops at a depth of 1,000 calls.
constexpr int kMostLevels = 900;

class Checker final : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(std::string_view text) : text_(text) {}
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return open(); }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override {
    fault = explain_fault(text_, position, last_token, error);
    return false;
  }

  std::optional<SyntaxFault> fault;

 private:
  bool open() {
    if (++depth_ <= kMostLevels) return true;
    fault = SyntaxFault{0, "nested more than " + std::to_string(kMostLevels) + " levels deep"};
    return false;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string_view text_;
  int depth_ = 0;
};

}  // namespace

SyntaxFault explain_fault(std::string_view text, std::size_t bytes_read, const std::string& last_token,
                          const std::exception& error) {
  const std::string_view what = error.what();
  SyntaxFault fault;
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - CAUSE; last
  // read: 'x'" and "[json.exception.out_of_range.406] number overflow parsing '1e400'" (nlohmann/json 3.11)
  if (what.find("out_of_range") != std::string_view::npos) {
    fault.offset = std::min(bytes_read - std::min(bytes_read, last_token.size()), text.size());
    fault.cause = "the number " + last_token.substr(0, 40) + " is too large";
    return fault;
  }
  const bool ends = what.find("end of input") != std::string_view::npos;
  if (std::optional<SyntaxFault> nul = ends ? find_nul(text) : std::nullopt) return *std::move(nul);
  const bool beyond_end = bytes_read > text.size();
  fault.cause = std::string(after(what, " - "));
  fault.cause.resize(std::min(fault.cause.find("; last read"), fault.cause.size()));
  if (beyond_end || fault.cause.find("unexpected end of input") != std::string::npos) {
    fault.at_end = true;
    const std::size_t last = text.find_last_not_of(kSpace);
    fault.offset = last == std::string_view::npos ? 0 : last + 1;
    if (fault.cause.find("missing closing quote") == std::string::npos) {
      fault.cause = "the text ends in the middle of a value";
    }
    return fault;
  }
  fault.offset = token_start(text, bytes_read, last_token, fault.cause);
  if (fault.cause.find("invalid string") == std::string::npos) {
    std::string mistake = known_mistake(text, fault.offset);
    if (!mistake.empty()) fault.cause = std::move(mistake);
  }
  return fault;
}

std::optional<SyntaxFault> find_nul(std::string_view text) {
  const std::size_t at = text.find('\0');
  if (at == std::string_view::npos) return std::nullopt;
  return SyntaxFault{at, "a byte of 0, which no JSON text has"};
}

std::optional<SyntaxFault> check_json(std::string_view text) {
  Checker checker(text);
  if (Json::sax_parse(text.begin(), text.end(), &checker)) return find_nul(text);
  return checker.fault;
}

}  // namespace mprun
