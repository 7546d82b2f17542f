// Layers: the documents of one job merged into one value, which records the document that set each part. Made and used
// by resolve(); borrows the documents and owns the merged value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/document.h"
#include "json/json.h"

namespace mprun::job {

/// The name of the layer that default_layer() makes.
inline constexpr const char* kDefaultsName = "the defaults";

/// What the number of `retries` stands for.
[[nodiscard]] Json retries_object(const Json& count);

class Layers {
 public:
  /// Merges documents that are valid by the schema, lowest first; they must outlive the result.
  [[nodiscard]] static Result<Layers> merge(const std::vector<Document>& documents);

  [[nodiscard]] const Json& value() const { return value_; }
  /// The value at a pointer; null if there is none.
  [[nodiscard]] const Json* find(const std::string& pointer) const;
  /// Puts a resolved value at a pointer; its owner stays.
  void put(const std::string& pointer, Json value);
  /// Removes the value at a pointer, and its owner.
  void erase(const std::string& pointer);
  /// Moves the merged value out; only the owners remain.
  [[nodiscard]] Json take_value() { return std::move(value_); }

  /// The document that set the value at `pointer` or around it; null if none did.
  [[nodiscard]] const Document* owner(const std::string& pointer) const;
  /// The rank of that document among the layers; -1 if there is none.
  [[nodiscard]] int rank(const std::string& pointer) const;
  /// Whether the user set it, in a file or on the command line, rather than the defaults.
  [[nodiscard]] bool is_set(const std::string& pointer) const;

  /// The document, of this rank or higher and not lenient, that set the value at `pointer` or a part of it; null if
  /// none did.
  [[nodiscard]] const Document* strict_owner(const std::string& pointer, int rank) const;

  /// Whether the document that set `pointer` has a number there.
  [[nodiscard]] bool sets_number(const std::string& pointer) const;
  /// Whether one of the documents came from standard input.
  [[nodiscard]] bool reads_stdin() const;
  /// The name of the highest document.
  [[nodiscard]] std::string highest_name() const;

  /// A usage error at the place of `pointer`: "job.json:3: /processes: WORDS".
  [[nodiscard]] Error error(const std::string& pointer, const std::string& words) const;
  /// Where a value came from, for --explain: "job.json:3", or `otherwise` for a default.
  [[nodiscard]] std::string origin(const std::string& pointer, const std::string& otherwise = "the default") const;

 private:
  void add(Json fields, int rank);
  void own(const std::string& pointer, int rank) { owners_[pointer] = rank; }
  void disown(const std::string& pointer);

  const std::vector<Document>* documents_ = nullptr;
  Json value_ = Json::object();
  std::map<std::string, int> owners_;  ///< pointer → index of the document
};

}  // namespace mprun::job
