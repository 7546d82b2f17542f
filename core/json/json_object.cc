#include "json/json_object.h"

#include "json/json.h"
#include "json/json_text.h"

namespace mprun {

void JsonObject::begin(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  append_json_string(&text_, name);
  text_ += ':';
}

JsonObject& JsonObject::bytes(std::string_view name, std::string_view value) {
  begin(name);
  append_json_string(&text_, value);
  return *this;
}

JsonObject& JsonObject::value(std::string_view name, const Json& value) { return json(name, value.dump()); }

JsonObject& JsonObject::json(std::string_view name, std::string_view value) {
  begin(name);
  text_ += value;
  return *this;
}

}  // namespace mprun
