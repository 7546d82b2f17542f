#include "job/schema.h"

#include <regex.h>

#include <algorithm>

#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

namespace {

std::string dumped(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::string() : found->dump();
}

/// The only word that a pattern such as "^auto$" allows.
std::string word_of_pattern(const Json& subschema) {
  const std::string pattern = subschema.value("pattern", "");
  if (pattern.size() < 3 || pattern.front() != '^' || pattern.back() != '$') return {};
  std::string word = pattern.substr(1, pattern.size() - 2);
  return is_identifier(word) ? word : std::string();
}

std::string number_words(const Json& subschema, const std::string& noun) {
  const std::string above = dumped(subschema, "exclusiveMinimum");
  const std::string least = dumped(subschema, "minimum");
  const std::string most = dumped(subschema, "maximum");
  if (!above.empty()) return noun + " above " + above + (most.empty() ? "" : " and at most " + most);
  if (!least.empty() && !most.empty()) return noun + " from " + least + " to " + most;
  if (!least.empty()) return noun + " of at least " + least;
  return most.empty() ? noun : noun + " of at most " + most;
}

std::string text_words(const Json& subschema) {
  const std::string word = word_of_pattern(subschema);
  if (!word.empty()) return in_quotes(word);
  std::string words = subschema.contains("minLength") ? "a text that is not empty" : "a text";
  const std::vector<std::string> examples = known_texts(subschema);
  if (!examples.empty()) words += " such as " + quoted_list(examples);
  return words;
}

std::string array_words(const Json& subschema) {
  std::string words = "a list";
  const std::string least = dumped(subschema, "minItems");
  const std::string most = dumped(subschema, "maxItems");
  if (!least.empty() && !most.empty()) {
    words += " of " + least + " to " + most;
  } else if (!least.empty()) {
    words += " of at least " + least;
  }
  const auto items = subschema.find("items");
  return items == subschema.end() ? words : words + ", each " + allowed_words(*items);
}

std::string type_words(const Json& subschema, const std::string& type) {
  if (type == "integer") return number_words(subschema, "a whole number");
  if (type == "number") return number_words(subschema, "a number");
  if (type == "string") return text_words(subschema);
  if (type == "array") return array_words(subschema);
  if (type != "object") return type;
  const std::vector<std::string> names = property_names(subschema);
  return names.empty() ? "an object" : "an object of " + comma_list(names);
}

std::vector<std::string> types_of(const Json& subschema) {
  const auto type = subschema.find("type");
  if (type == subschema.end()) return {};
  if (type->is_string()) return {type->get<std::string>()};
  return type->get<std::vector<std::string>>();
}

/// Whether `name` matches a POSIX regular expression; our patterns of property names can be read as such.
bool matches(const std::string& pattern, const std::string& name) {
  regex_t compiled{};
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool fits = regexec(&compiled, name.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return fits;
}

const Json* child_schema(const Json& schema, const std::string& token) {
  if (const auto list = schema.find("properties"); list != schema.end()) {
    if (const auto found = list->find(token); found != list->end()) return &*found;
  }
  if (const auto list = schema.find("patternProperties"); list != schema.end() && token.size() <= 255) {
    for (const auto& [pattern, value] : list->items()) {
      if (matches(pattern, token)) return &value;
    }
  }
  for (const char* rest : {"additionalProperties", "items"}) {
    const auto found = schema.find(rest);
    if (found != schema.end() && found->is_object()) return &*found;
  }
  return nullptr;
}

}  // namespace

const Json& schema_json() {
  static const Json schema = Json::parse(kSchemaText);
  return schema;
}

const Json* subschema_at(const Json& schema, const std::vector<std::string>& path) {
  const Json* at = &schema;
  for (const std::string& token : path) {
    if (at == nullptr) break;
    at = child_schema(*at, token);
  }
  return at;
}

std::string allowed_words(const Json& subschema) {
  std::string words;
  if (const auto values = subschema.find("enum"); values != subschema.end()) {
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (i > 0) words += i + 1 == values->size() ? " or " : ", ";
      words += (*values)[i].dump();
    }
    return words;
  }
  for (const std::string& type : types_of(subschema)) {
    if (!words.empty()) words += ", or ";
    words += type_words(subschema, type);
  }
  return words;
}

bool allows_type(const Json& subschema, std::string_view type) {
  const std::vector<std::string> types = types_of(subschema);
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::vector<std::string> property_names(const Json& subschema) {
  std::vector<std::string> names;
  if (const auto properties = subschema.find("properties"); properties != subschema.end()) {
    for (const auto& [name, value] : properties->items()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> known_texts(const Json& subschema) {
  std::vector<std::string> texts;
  for (const char* keyword : {"enum", "examples"}) {
    const auto list = subschema.find(keyword);
    if (list == subschema.end()) continue;
    for (const Json& value : *list) {
      if (value.is_string()) texts.push_back(value.get<std::string>());
    }
  }
  if (std::string word = word_of_pattern(subschema); !word.empty()) texts.push_back(std::move(word));
  return texts;
}

}  // namespace mprun::job
