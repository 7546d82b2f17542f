#include "report/failure_digest.h"

#include <algorithm>
#include <utility>

#include "json/json.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr std::size_t kMostTypes = 200;  // a job that invents types must not fill the memory
constexpr std::string_view kOtherTypes = "other errors";

/// The value of a leading "type" member, without parsing the rest; empty if it is not that simple.
[[nodiscard]] std::string_view leading_type(std::string_view error) {
  for (const std::string_view start : {std::string_view(R"({"type":")"), std::string_view(R"({"type": ")")}) {
    if (error.substr(0, start.size()) != start) continue;
    const std::string_view rest = error.substr(start.size());
    const std::size_t end = rest.find_first_of("\"\\");
    if (end != rest.npos && rest[end] == '"') return rest.substr(0, end);
  }
  return {};
}

[[nodiscard]] std::string text_member(const Json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

/// The last line of a Python traceback that names a file; without one, its last line.
[[nodiscard]] std::string innermost(std::string_view traceback) {
  std::string_view file;
  std::string_view last;
  while (!traceback.empty()) {
    const std::size_t newline = std::min(traceback.find('\n'), traceback.size() - 1);
    const std::string_view line = traceback.substr(0, newline + 1);
    traceback.remove_prefix(newline + 1);
    const std::size_t begin = line.find_first_not_of(" \t\r\n");
    if (begin == line.npos) continue;
    last = line;
    if (line.substr(begin).substr(0, 6) == "File \"") file = line;
  }
  return one_line(file.empty() ? last : file);
}

}  // namespace

FailureText read_failure(std::string_view error) {
  const Json object = parse_escaped_json(error);
  if (!object.is_object()) return {"Error", one_line(error), ""};
  FailureText text{one_line(text_member(object, "type")), one_line(text_member(object, "message")),
                   innermost(text_member(object, "traceback"))};
  if (text.type.empty()) text.type = "Error";
  return text;
}

std::string traceback_of(std::string_view error) {
  const Json object = parse_escaped_json(error);
  if (!object.is_object()) return std::string(error);
  for (const char* key : {"traceback", "log", "stderr"}) {
    std::string text = text_member(object, key);
    if (!text.empty()) return text;
  }
  return "";
}

std::string group_text(const FailureGroup& group) {
  std::string text = "  " + std::to_string(group.count) + " x " + group.example.headline() + " (task " +
                     std::to_string(group.example_task);
  if (!group.example.where.empty()) text += ", " + group.example.where;
  return text + ")";
}

void FailureDigest::add(const TaskEnded& ended) {
  std::string_view type = leading_type(ended.result);
  FailureText text;
  if (type.empty()) {
    text = read_failure(ended.result);
    type = text.type;
  }
  auto group = groups_.find(type);
  if (group == groups_.end()) {
    const bool full = groups_.size() >= kMostTypes;
    const bool parsed = !text.type.empty();
    if (!parsed) text = read_failure(ended.result);
    group = groups_.try_emplace(std::string(full ? kOtherTypes : type), FailureGroup{0, ended.task, text}).first;
  }
  ++group->second.count;
}

std::vector<FailureGroup> FailureDigest::largest(std::size_t most) const {
  std::vector<FailureGroup> groups;
  groups.reserve(groups_.size());
  for (const auto& [type, group] : groups_) groups.push_back(group);
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  groups.resize(std::min(groups.size(), most));
  return groups;
}

}  // namespace mprun
