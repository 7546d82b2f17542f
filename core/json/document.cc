#include "json/document.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "json/json_syntax.h"
#include "json/text_position.h"
#include "json/words.h"
#include "os/fd.h"

namespace mprun {

namespace {

constexpr std::size_t kMaxDepth = 200;

/// Builds the value as nlohmann's own DOM parser would, and refuses what that parser accepts: duplicate keys, integers
/// that lose digits, nesting deep enough to exhaust the stack later.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::size_t& consumed) : text_(text), consumed_(consumed) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos) {
      return fail(consumed_ - std::min(consumed_, text.size() + 1),
                  "the number " + clip(text, 40) + " does not fit into 64 bits; write it as text");
    }
    return add(value) != nullptr;
  }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    Json& object = *open_.back();
    if (object.contains(value)) {
      duplicate_key = true;
      return fail(consumed_ - 1, "duplicate key " + in_quotes(clip(value)));
    }
    slot_ = &object[value];
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override {
    fault = explain_fault(text_, position, last_token, error);
    return false;
  }

  Json root;
  SyntaxFault fault;
  bool duplicate_key = false;

 private:
  bool fail(std::size_t offset, std::string cause) {
    fault.offset = offset;
    fault.cause = std::move(cause);
    return false;
  }

  Json* add(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool open(Json container) {
    if (open_.size() >= kMaxDepth) {
      return fail(consumed_ - 1, "nested more than " + std::to_string(kMaxDepth) + " levels deep");
    }
    open_.push_back(add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::size_t& consumed_;
  std::vector<Json*> open_;  ///< the containers not yet closed; a parent does not grow meanwhile
  Json* slot_ = nullptr;     ///< where the value of the last key goes
};

Error unreadable(const std::string& name, const std::string& why) { return usage_error(name + ": " + why); }

Result<std::string> read_open_file(int fd, const std::string& name) {
  Result<std::string> text = read_all(fd);
  if (!text) return unreadable(name, std::string("cannot be read: ") + std::strerror(errno));
  return text;
}

Result<std::string> read_file(const std::string& path, const std::string& name) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return unreadable(name, errno == ENOENT ? "no such file" : std::string("cannot be read: ") + std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) return unreadable(name, "is a directory, not a job spec");
  const Fd file = open_fd(path, O_RDONLY);
  if (!file) return unreadable(name, std::string("cannot be read: ") + std::strerror(errno));
  return read_open_file(file.get(), name);
}

}  // namespace

Result<Document> read_document(const std::string& path, const std::string& current_directory) {
  if (path == "-") {
    Result<std::string> text = read_open_file(STDIN_FILENO, kStdinName);
    if (!text) return std::move(text).error();
    return parse_document(kStdinName, current_directory, std::move(*text));
  }
  const std::filesystem::path full = std::filesystem::path(current_directory) / path;
  Result<std::string> text = read_file(full.string(), path);
  if (!text) return std::move(text).error();
  return parse_document(path, full.parent_path().string(), std::move(*text));
}

Result<Document> parse_document(std::string name, std::string base_dir, std::string text) {
  if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return usage_error(name + ": is empty; a job spec is a JSON object such as {\"script\": \"job.py\"}");
  }
  std::size_t consumed = 0;
  const CountingIterator first(text.data(), &consumed);
  const CountingIterator last(text.data() + text.size(), &consumed);
  Builder builder(text, consumed);
  bool parsed = Json::sax_parse(first, last, &builder);
  if (std::optional<SyntaxFault> nul = parsed ? find_nul(text) : std::nullopt) {
    builder.fault = *std::move(nul);
    parsed = false;
  }
  if (!parsed) {
    const TextPosition at = position_in(text, builder.fault.offset);
    std::string message = name + ":" + std::to_string(at.line) + ":";
    if (builder.duplicate_key) return usage_error(message + " " + builder.fault.cause);
    message += std::to_string(at.column) + ": not a JSON text mprun can take: " + builder.fault.cause + "\n";
    return usage_error(message + show_position(text, builder.fault.offset));
  }
  if (!builder.root.is_object()) {
    return usage_error(name + ":1: found " + preview(builder.root) +
                       ", allowed: a JSON object such as {\"script\": \"job.py\"}");
  }
  return Document{std::move(name), std::move(base_dir), std::move(text), std::move(builder.root), {}, false};
}

int line_of(const Document& document, const std::string& pointer) {
  if (document.text.empty()) return 0;
  return find_line(document.text, pointer);
}

std::string place_of(const Document& document, const std::string& pointer) {
  const int line = line_of(document, pointer);
  if (line > 0) return document.name + ":" + std::to_string(line);
  const std::string* best = nullptr;
  std::size_t best_length = 0;
  for (const auto& [origin, option] : document.origins) {
    const bool covers =
        pointer.rfind(origin, 0) == 0 && (pointer.size() == origin.size() || pointer[origin.size()] == '/');
    const bool inside = origin.rfind(pointer + "/", 0) == 0;
    if ((covers && origin.size() >= best_length) || (inside && best == nullptr)) {
      best = &option;
      best_length = covers ? origin.size() : 0;
    }
  }
  return best == nullptr ? document.name : document.name + " (" + *best + ")";
}

}  // namespace mprun
