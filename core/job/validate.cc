#include "job/validate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "job/redact.h"
#include "job/schema.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

namespace {

using Path = std::vector<std::string>;

constexpr std::size_t kMostFindings = 5;

struct Finding {
  std::vector<std::size_t> order;  ///< the index of each step of the path: sorts as the text does
  Path path;
  std::string words;
};

/// The job schema for valijson, and valijson's validator with its compiled patterns.
struct Checker {
  Checker() {
    const nlohmann::json plain = schema_json();  // valijson's adapter knows this type only
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(plain), schema);
  }
  valijson::Schema schema;
  valijson::Validator validator;
};

/// Made once: that takes longer than a validation.
Checker& checker() {
  static Checker made;
  return made;
}

/// The same value for valijson, whose adapter knows nlohmann::json only. Parts that the schema does not check (the
/// elements of inputs.items, of which there may be millions) are left out.
nlohmann::json to_checkable(const Json& value, const Json* schema) {
  if (value.is_object()) {
    nlohmann::json result = nlohmann::json::object();
    for (const auto& [key, member] : value.items()) {
      const Json* inner = schema == nullptr ? nullptr : subschema_at(*schema, {key});
      result[key] = inner == nullptr ? nlohmann::json() : to_checkable(member, inner);
    }
    return result;
  }
  if (value.is_array()) {
    nlohmann::json result = nlohmann::json::array();
    const auto items = schema == nullptr ? Json::const_iterator() : schema->find("items");
    if (schema == nullptr || items == schema->end()) {
      if (!value.empty()) result.push_back(nullptr);
      return result;
    }
    for (const Json& element : value) result.push_back(to_checkable(element, &*items));
    return result;
  }
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  return {};
}

std::string to_pointer(const Path& path) {
  Json::json_pointer pointer;
  for (const std::string& token : path) pointer.push_back(token);
  return pointer.to_string();
}

const Json* value_at(const Json& root, const Path& path) {
  const Json::json_pointer pointer(to_pointer(path));
  return root.contains(pointer) ? &root.at(pointer) : nullptr;
}

std::vector<std::size_t> order_of(const Json& root, const Path& path) {
  std::vector<std::size_t> order;
  const Json* at = &root;
  for (const std::string& token : path) {
    const auto found = at->is_object() ? at->find(token) : at->end();
    if (found != at->end()) {
      order.push_back(static_cast<std::size_t>(std::distance(at->begin(), found)));
      at = &*found;
    } else {
      std::size_t index = 0;
      std::from_chars(token.data(), token.data() + token.size(), index);
      if (!at->is_array() || index >= at->size()) break;
      order.push_back(index);
      at = &(*at)[index];
    }
  }
  return order;
}

/// What the user may have meant by `value`; empty if nothing is near.
std::string suggestion(const Json& value, const Json& schema) {
  const bool wants_number = allows_type(schema, "integer") || allows_type(schema, "number");
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wants_number && fault == std::errc() && end == text.data() + text.size()) return text + " without quotes";
    const std::optional<std::string> near = nearest_name(text, known_texts(schema));
    return near && *near != text ? in_quotes(*near) : std::string();
  }
  constexpr double kExact = 9007199254740992.0;  // 2^53: below it doubles represent whole numbers exactly
  if (value.is_number_float() && allows_type(schema, "integer")) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::fabs(number) < kExact) {
      return std::to_string(static_cast<std::int64_t>(number));
    }
  }
  const bool wants_text = allows_type(schema, "string") && !wants_number && !schema.contains("pattern");
  if (wants_text && (value.is_number() || value.is_boolean())) return in_quotes(value.dump());
  return {};
}

void add_unknown_keys(const Json& root, const Path& path, const Json& schema, std::vector<Finding>* findings) {
  const Json* object = value_at(root, path);
  if (object == nullptr || !object->is_object()) return;
  const std::vector<std::string> known = property_names(schema);
  for (const auto& [key, value] : object->items()) {
    if (subschema_at(schema, {key}) != nullptr) continue;
    Path place = path;
    place.push_back(key);
    std::string words = "unknown key " + in_quotes(clip(key)) + "\n  allowed: ";
    if (known.empty()) {
      words = "found the key " + in_quotes(clip(key)) + ", allowed: " + schema.value("description", "");
    } else {
      words += comma_list(known);
      if (const auto near = nearest_name(key, known)) words += "\n  did you mean " + in_quotes(*near) + "?";
    }
    findings->push_back({order_of(root, place), std::move(place), std::move(words)});
    if (findings->size() > kMostFindings * kMostFindings) return;
  }
}

// A template, so that only what this version of valijson has is compiled.
template <typename Error>
Path path_of(const Error& error) {
  Path path;
  if constexpr (requires { error.jsonPointer; }) {  // since 1.1, where `context` has keys in quotes
    Json::json_pointer pointer(error.jsonPointer);
    for (; !pointer.empty(); pointer.pop_back()) path.insert(path.begin(), pointer.back());
    return path;
  }
  for (std::size_t i = 1; i < error.context.size(); ++i) {  // the first one is "<root>"
    const std::string& step = error.context[i];             // "[key]" or "[0]"
    path.push_back(step.substr(1, step.size() - 2));
  }
  return path;
}

/// A variable, judged by its name; it is not known yet which others the spec wants to keep out of messages.
bool is_secret(const Path& path, const Json& schema) {
  if (path.size() < 2 || path[0] != "env") return false;
  const Json& patterns = schema.at("properties").at("redact").at("default");
  return is_redacted(patterns.get<std::vector<std::string>>(), path[1]);
}

std::vector<Finding> collect(valijson::ValidationResults* results, const Json& root, const Json& schema) {
  std::vector<Finding> findings;
  std::set<Path> seen;
  valijson::ValidationResults::Error error;
  while (results->popError(error) && findings.size() <= kMostFindings * kMostFindings) {
    // valijson also reports to every parent that a child failed
    if (error.description.rfind("Failed to validate", 0) == 0) continue;
    Path path = path_of(error);
    const Json* value = value_at(root, path);
    const Json* inner = subschema_at(schema, path);
    if (value == nullptr || inner == nullptr || !seen.insert(path).second) continue;
    if (error.description.rfind("Object contains a property", 0) == 0) {
      add_unknown_keys(root, path, *inner, &findings);
      continue;
    }
    const bool secret = is_secret(path, schema);
    std::string words =
        "found " + (secret ? value->type_name() : preview(*value)) + ", allowed: " + allowed_words(*inner);
    const std::string meant = secret ? "" : suggestion(*value, *inner);
    if (!meant.empty()) words += "\n  did you mean " + meant + "?";
    findings.push_back({order_of(root, path), std::move(path), std::move(words)});
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.order < b.order; });
  if (findings.size() > kMostFindings) findings.resize(kMostFindings);
  return findings;
}

}  // namespace

Result<void> validate(const Document& document) {
  // Nothing to check, as for a program without options: it takes a millisecond to make the checker.
  if (document.value == Json::object()) return {};
  try {
    const Json& schema = schema_json();
    const nlohmann::json value = to_checkable(document.value, &schema);
    valijson::ValidationResults results;
    if (checker().validator.validate(checker().schema, valijson::adapters::NlohmannJsonAdapter(value), &results))
      return {};
    std::string message;
    for (const Finding& finding : collect(&results, document.value, schema)) {
      const std::string pointer = to_pointer(finding.path);
      if (!message.empty()) message += "\n";
      message += place_of(document, pointer) + ": " + pointer + ": " + finding.words;
    }
    if (message.empty()) message = document.name + ": does not fit the job schema";
    return usage_error(std::move(message));
  } catch (const std::exception& error) {  // valijson and nlohmann throw; a sound schema gives them no reason to
    return internal_error(document.name + ": validation failed: " + error.what());
  }
}

}  // namespace mprun::job
