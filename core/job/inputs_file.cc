#include <utility>

#include "job/input_lines.h"
#include "job/input_sources.h"
#include "json/json_syntax.h"
#include "json/json_text.h"

namespace mprun::job {

namespace {

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string too_long(const std::string& place) {
  return place + ": the line is longer than " + std::to_string(InputLines::kLongestLine) + " bytes";
}

std::string describe_fault(const std::string& name, std::uint64_t line, const SyntaxFault& fault) {
  std::string words = name + ":" + std::to_string(line) + ":" + std::to_string(fault.offset + 1) + ": not JSON: ";
  return words + (fault.at_end ? "half a JSON value: the line ends in the middle" : fault.cause);
}

/// A line of jsonl without surrounding white space and byte order mark; empty if it is blank.
std::string_view trimmed(std::string_view line, std::uint64_t number) {
  if (number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

class LineSource final : public InputSource {
 public:
  LineSource(std::string name, InputLines lines, std::optional<std::uint64_t> total, bool json)
      : name_(std::move(name)), lines_(std::move(lines)), total_(total), json_(json) {}

  Pull pull(std::string* out) override {
    for (;;) {
      std::string_view line;
      switch (lines_.next(&line)) {
        case InputLines::Next::kWait:
          return Pull::kWait;
        case InputLines::Next::kEnd:
          return Pull::kEnd;
        case InputLines::Next::kTooLong:
          *out += too_long(name_ + ":" + std::to_string(lines_.number()));
          return Pull::kBad;
        case InputLines::Next::kFailed:
          *out += name_ + ": " + lines_.failure();
          return Pull::kBad;
        case InputLines::Next::kLine:
          break;
      }
      if (!json_) {
        append_json_string(out, line);
        return Pull::kItem;
      }
      line = trimmed(line, lines_.number());
      if (!line.empty()) return give_json(line, out);
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return total_; }
  [[nodiscard]] int wait_fd() const override { return lines_.wait_fd(); }

 private:
  Pull give_json(std::string_view line, std::string* out) {
    // A regular file was checked when it was opened, but may have changed since.
    if (const std::optional<SyntaxFault> fault = check_json(line)) {
      *out += describe_fault(name_, lines_.number(), *fault);
      return Pull::kBad;
    }
    *out += line;
    return Pull::kItem;
  }

  std::string name_;
  InputLines lines_;
  std::optional<std::uint64_t> total_;
  bool json_;
};

/// Reads a whole jsonl file once: the number of values, or what is wrong with the first bad one.
Result<std::uint64_t> check_lines(const std::string& name, InputLines* lines) {
  std::uint64_t values = 0;
  for (;;) {
    std::string_view line;
    const InputLines::Next next = lines->next(&line);
    if (next == InputLines::Next::kEnd || next == InputLines::Next::kWait) return values;
    if (next == InputLines::Next::kFailed) return usage_error(name + ": " + lines->failure());
    if (next == InputLines::Next::kTooLong) {
      return usage_error(too_long(name + ":" + std::to_string(lines->number())));
    }
    line = trimmed(line, lines->number());
    if (line.empty()) continue;
    if (const std::optional<SyntaxFault> fault = check_json(line)) {
      return usage_error(describe_fault(name, lines->number(), *fault));
    }
    ++values;
  }
}

SourceResult open_source(const std::string& path, bool json) {
  Result<InputLines> lines = InputLines::open(path);
  if (!lines) return std::move(lines).error();
  const std::string name = display_name(path);
  std::optional<std::uint64_t> total;
  if (lines->is_regular()) {
    Result<std::uint64_t> counted = json ? check_lines(name, &*lines) : lines->count();
    if (!counted) return json ? std::move(counted).error() : usage_error(name + ": " + counted.error().message);
    total = *counted;
    lines->rewind();
    if (*total == 0 && path != "-") {
      return usage_error(name + ": has no inputs" +
                         (json ? ": not one line with a JSON value" : ": the file is empty"));
    }
  }
  return std::unique_ptr<InputSource>(std::make_unique<LineSource>(name, std::move(*lines), total, json));
}

}  // namespace

SourceResult open_lines(const LinesInput& input) { return open_source(input.path, false); }

SourceResult open_jsonl(const JsonlInput& input) { return open_source(input.path, true); }

}  // namespace mprun::job
