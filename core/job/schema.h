// The job schema (configs/job.schema.json, embedded at build time): its parts, what they allow in words,
// and its defaults. Called by the validation and by default_layer(); owns the schema, which never changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json_fwd.h"

namespace mprun::job {

/// The text of configs/job.schema.json, and the defaults in it as a job spec; defined in a generated file.
extern const std::string_view kSchemaText, kDefaultsText;

/// The schema as a value, parsed once.
[[nodiscard]] const Json& schema_json();

/// The subschema for the value at a path of keys and indices; null if the schema has none.
[[nodiscard]] const Json* subschema_at(const Json& schema, const std::vector<std::string>& path);

/// What a subschema allows: `a whole number from 1 to 4096, or "auto"`.
[[nodiscard]] std::string allowed_words(const Json& subschema);

/// Whether a subschema allows a type ("integer", "string", ...).
[[nodiscard]] bool allows_type(const Json& subschema, std::string_view type);

/// The names of an object's properties.
[[nodiscard]] std::vector<std::string> property_names(const Json& subschema);

/// The texts that a subschema names: its enum, the word of its pattern, its examples.
[[nodiscard]] std::vector<std::string> known_texts(const Json& subschema);

}  // namespace mprun::job
