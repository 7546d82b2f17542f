#include "json/text_position.h"

#include <algorithm>
#include <vector>

#include "json/json.h"

namespace mprun {

namespace {

/// Follows a pointer through the text: `matched_` of its tokens lead to the open container.
class Finder final : public nlohmann::json_sax<Json> {
 public:
  Finder(const std::size_t& consumed, std::vector<std::string> tokens)
      : consumed_(consumed), tokens_(std::move(tokens)) {}

  bool null() override { return scalar(consumed_ - 1); }
  bool boolean(bool /*value*/) override { return scalar(consumed_ - 1); }
  bool number_integer(number_integer_t /*value*/) override { return scalar(consumed_ - 2); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return scalar(consumed_ - 2); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return scalar(consumed_ - 2); }
  bool string(string_t& /*value*/) override { return scalar(consumed_ - 1); }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return open(false); }
  bool start_array(std::size_t /*size*/) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ == matched_ && matched_ > 0 && name == tokens_[matched_ - 1]) {
      if (matched_ == tokens_.size()) return found(consumed_ - 1);
      on_path_ = true;
    }
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

  std::size_t offset = std::string::npos;

 private:
  bool found(std::size_t at) {
    offset = at;
    return false;
  }

  /// Called at every value: returns whether the search goes on.
  bool value(std::size_t at) {
    if (depth_ == matched_ && in_array_) {
      const bool here = std::to_string(index_) == tokens_[matched_ - 1];
      ++index_;
      if (here) {
        if (matched_ == tokens_.size()) return found(at);
        on_path_ = true;
      }
    }
    return true;
  }

  bool scalar(std::size_t at) {
    const bool go_on = value(at);
    on_path_ = false;
    return go_on;
  }

  bool open(bool array) {
    if (depth_ == 0) {
      if (tokens_.empty()) return found(consumed_ - 1);
      on_path_ = true;
    } else if (!value(consumed_ - 1)) {
      return false;
    }
    if (on_path_ && depth_ == matched_) {
      ++matched_;
      in_array_ = array;
      index_ = 0;
    }
    on_path_ = false;
    ++depth_;
    return true;
  }

  bool close() {
    --depth_;
    return depth_ + 1 > matched_;  // the container on the path ends: the wanted value is not in it
  }

  const std::size_t& consumed_;
  std::vector<std::string> tokens_;
  std::size_t depth_ = 0;    ///< containers open
  std::size_t matched_ = 0;  ///< the number of them, from the outermost, that lie on the path
  bool on_path_ = false;     ///< the path goes through the next value
  bool in_array_ = false;    ///< the innermost container on the path is an array,
  std::size_t index_ = 0;    ///< and this is its next element
};

std::vector<std::string> split_pointer(const std::string& pointer) {
  std::vector<std::string> tokens;
  for (Json::json_pointer rest(pointer); !rest.empty(); rest.pop_back()) tokens.push_back(rest.back());
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace

TextPosition position_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t newline = before.rfind('\n');
  TextPosition position;
  position.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  position.column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return position;
}

std::string show_position(std::string_view text, std::size_t offset) {
  constexpr std::size_t kBefore = 50;
  constexpr std::size_t kBehind = 26;
  offset = std::min(offset, text.size());
  const std::size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  std::size_t end = std::min(text.find('\n', offset), text.size());
  const bool cut_before = offset - begin > kBefore;
  const bool cut_behind = end - offset > kBehind;
  if (cut_before) begin = offset - kBefore;
  if (cut_behind) end = offset + kBehind;
  const auto continues_character = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (begin < offset && continues_character(begin)) ++begin;
  while (end > offset && continues_character(end)) --end;
  std::string line = cut_before ? "    ..." : "    ";
  std::string caret(line.size(), ' ');
  for (std::size_t i = begin; i < end; ++i) {
    const bool control = static_cast<unsigned char>(text[i]) < 0x20;
    line += control ? ' ' : text[i];
    if (i < offset && !continues_character(i)) caret += ' ';
  }
  return line + (cut_behind ? "..." : "") + "\n" + caret + "^";
}

int find_line(std::string_view text, const std::string& pointer) {
  try {
    std::size_t consumed = 0;
    Finder finder(consumed, split_pointer(pointer));
    const CountingIterator first(text.data(), &consumed);
    const CountingIterator last(text.data() + text.size(), &consumed);
    Json::sax_parse(first, last, &finder);
    return finder.offset == std::string::npos ? 0 : position_in(text, finder.offset).line;
  } catch (const Json::exception&) {  // not a JSON pointer
    return 0;
  }
}

}  // namespace mprun
