// JsonObject: writes a JSON object, member by member, where a Json value would not do: its strings may be any bytes
// (of files, paths, logs), and its members texts that are JSON already. Owns the text.
#pragma once

#include <string>
#include <string_view>

#include "json/json_fwd.h"

namespace mprun {

class JsonObject {
 public:
  /// A string, as append_json_string() writes it.
  JsonObject& bytes(std::string_view name, std::string_view value);
  JsonObject& value(std::string_view name, const Json& value);
  /// A text that is JSON already.
  JsonObject& json(std::string_view name, std::string_view value);
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  void begin(std::string_view name);

  std::string text_ = "{";
};

}  // namespace mprun
