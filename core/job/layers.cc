#include "job/layers.h"

#include <algorithm>
#include <array>

#include "json/words.h"

namespace mprun::job {

namespace {

bool merges_by_key(const std::string& key) {
  constexpr std::array kMerged = {"limits", "needs", "retries", "env", "output", "adapters", "watch", "shared"};
  return std::find(kMerged.begin(), kMerged.end(), key) != kMerged.end();
}

std::string escaped(const std::string& key) {
  Json::json_pointer pointer;
  pointer.push_back(key);
  return pointer.to_string();
}

bool is_inside(const std::string& pointer, const std::string& other) {
  return pointer == other || pointer.rfind(other + "/", 0) == 0;
}

Error error_in(const Document& document, const std::string& pointer, const std::string& words) {
  return usage_error(place_of(document, pointer) + ": " + pointer + ": " + words);
}

/// Splits "file.py:function" in `script` into the two fields.
Result<void> split_script(const Document& document, Json* fields) {
  const auto script = fields->find("script");
  if (script == fields->end()) return {};
  const std::string text = script->get<std::string>();
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon < 3 || text.compare(colon - 3, 3, ".py") != 0) return {};
  const std::string function = text.substr(colon + 1);
  if (!is_identifier(function)) {
    return error_in(
        document, "/script",
        "found " + in_quotes(clip(text)) + ", allowed after the colon: the name of a function of the script");
  }
  const auto other = fields->find("function");
  if (other != fields->end() && *other != function) {
    return error_in(document, "/function",
                    "found " + preview(*other) + ", but script says " + in_quotes(function) + "; name it once");
  }
  *script = text.substr(0, colon);
  (*fields)["function"] = function;
  return {};
}

/// A copy of the fields in their long forms; without `inputs`, which may be huge.
Result<Json> long_form(const Document& document) {
  Json fields = Json::object();
  for (const auto& [key, value] : document.value.items()) {
    if (key != "inputs") fields[key] = value;
  }
  if (fields.contains("script") && fields.contains("command")) {
    return error_in(document, "/command", "script and command exclude each other; remove one of them");
  }
  if (const auto retries = fields.find("retries"); retries != fields.end() && retries->is_number()) {
    *retries = retries_object(Json(*retries));
  }
  if (Result<void> split = split_script(document, &fields); !split) return std::move(split).error();
  return fields;
}

}  // namespace

Json retries_object(const Json& count) { return {{"on_error", count}, {"on_death", count}, {"on_hang", count}}; }

Result<Layers> Layers::merge(const std::vector<Document>& documents) {
  Layers layers;
  layers.documents_ = &documents;
  int inputs_rank = -1;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    Result<Json> fields = long_form(documents[i]);
    if (!fields) return std::move(fields).error();
    layers.add(std::move(*fields), static_cast<int>(i));
    if (documents[i].value.contains("inputs")) inputs_rank = static_cast<int>(i);
  }
  if (inputs_rank >= 0) {
    layers.value_["inputs"] = documents[static_cast<std::size_t>(inputs_rank)].value.at("inputs");
    layers.own("/inputs", inputs_rank);
  }
  return layers;
}

void Layers::add(Json fields, int rank) {
  if (fields.contains("script")) erase("/command");
  if (fields.contains("command")) {
    erase("/script");
    erase("/function");
  }
  for (auto& [key, value] : fields.items()) {
    const std::string pointer = escaped(key);
    if (!merges_by_key(key)) {
      value_[key] = std::move(value);
      own(pointer, rank);
      continue;
    }
    if (!value_.contains(key)) value_[key] = Json::object();
    for (auto& [name, member] : value.items()) {
      value_[key][name] = std::move(member);
      own(pointer + escaped(name), rank);
    }
  }
}

const Json* Layers::find(const std::string& pointer) const {
  const Json::json_pointer place(pointer);
  return value_.contains(place) ? &value_.at(place) : nullptr;
}

void Layers::put(const std::string& pointer, Json value) { value_[Json::json_pointer(pointer)] = std::move(value); }

void Layers::erase(const std::string& pointer) {
  Json::json_pointer around(pointer);
  const std::string key = around.back();
  around.pop_back();
  if (value_.contains(around)) value_[around].erase(key);
  disown(pointer);
}

void Layers::disown(const std::string& pointer) {
  for (auto it = owners_.begin(); it != owners_.end();) {
    it = is_inside(it->first, pointer) ? owners_.erase(it) : std::next(it);
  }
}

const Document* Layers::strict_owner(const std::string& pointer, int rank) const {
  for (const auto& [owned, index] : owners_) {
    const Document& document = (*documents_)[static_cast<std::size_t>(index)];
    if (is_inside(owned, pointer) && index >= rank && !document.lenient && document.name != kDefaultsName) {
      return &document;
    }
  }
  return nullptr;
}

int Layers::rank(const std::string& pointer) const {
  for (std::string at = pointer; !at.empty(); at.resize(at.rfind('/'))) {
    if (const auto found = owners_.find(at); found != owners_.end()) return found->second;
  }
  return -1;
}

const Document* Layers::owner(const std::string& pointer) const {
  const int index = rank(pointer);
  return index < 0 ? nullptr : &(*documents_)[static_cast<std::size_t>(index)];
}

bool Layers::is_set(const std::string& pointer) const {
  const Document* document = owner(pointer);
  return document != nullptr && document->name != kDefaultsName;
}

bool Layers::sets_number(const std::string& pointer) const {
  const Document* document = owner(pointer);
  const Json::json_pointer place(pointer);
  return document != nullptr && document->value.contains(place) && document->value.at(place).is_number();
}

bool Layers::reads_stdin() const {
  return std::any_of(documents_->begin(), documents_->end(), [](const Document& d) { return d.name == kStdinName; });
}

std::string Layers::highest_name() const { return documents_->back().name; }

Error Layers::error(const std::string& pointer, const std::string& words) const {
  const Document* document = owner(pointer);
  if (document == nullptr || document->name == kDefaultsName) return usage_error(pointer + ": " + words);
  // a function named by "file.py:function" is in script
  const bool in_script = pointer == "/function" && !document->value.contains("function");
  return error_in(*document, in_script ? "/script" : pointer, words);
}

std::string Layers::origin(const std::string& pointer, const std::string& otherwise) const {
  if (!is_set(pointer)) return otherwise;
  const Document* document = owner(pointer);
  const bool in_script = pointer == "/function" && !document->value.contains("function");
  return place_of(*document, in_script ? "/script" : pointer);
}

}  // namespace mprun::job
