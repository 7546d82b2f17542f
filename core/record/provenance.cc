#include "record/provenance.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/xxhash.h"
#include "job/inputs.h"
#include "os/fd.h"
#include "record/line_reader.h"
#include "record/whole_number.h"

namespace mprun {
namespace {

constexpr std::uint64_t kMostHashed = std::uint64_t{8} << 20U;
// Input files that are fingerprinted one by one; further ones are fingerprinted together.
constexpr std::size_t kMostMarks = 64;

Fingerprint fingerprint_of(std::string what, const std::string& path) {
  Fingerprint mark{std::move(what), path, 0, 0, ""};
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return mark;
  mark.modified = info.st_mtim.tv_sec * kNanosPerSecond + info.st_mtim.tv_nsec;
  if (!S_ISREG(info.st_mode)) return mark;
  mark.bytes = static_cast<std::uint64_t>(info.st_size);
  if (mark.bytes > kMostHashed) return mark;
  const auto file = open_file(path, O_RDONLY);
  std::string text;
  if (!file || LineReader::copy_bytes(file->get(), 0, mark.bytes, &text) != mark.bytes) return mark;
  mark.digest = digest_of(text);
  return mark;
}

/// The paths of the files that the inputs are read from.
struct InputPaths {
  std::vector<std::string> operator()(const LinesInput& input) const { return {input.path}; }
  std::vector<std::string> operator()(const JsonlInput& input) const { return {input.path}; }
  std::vector<std::string> operator()(const ArraysInput& input) const {
    std::vector<std::string> paths;
    for (const InputArray& array : input.arrays) {
      if (paths.empty() || paths.back() != array.path) paths.push_back(array.path);
    }
    return paths;
  }
  template <typename Other>
  std::vector<std::string> operator()(const Other& /*other*/) const {
    return {};
  }
};

/// The fingerprint of what a pattern finds: the names are the inputs.
Fingerprint mark_names(const JobSpec& spec) {
  Fingerprint mark{"the files that inputs.glob finds", std::get<GlobInput>(spec.inputs).pattern, 0, 0, ""};
  auto source = open_inputs(spec);
  std::string names;
  if (source) {
    while ((*source)->pull(&names) == InputSource::Pull::kItem) names += '\n';
  }
  mark.bytes = names.size();
  mark.digest = digest_of(names);
  return mark;
}

void mark_inputs(const JobSpec& spec, Provenance* origin) {
  if (std::holds_alternative<GlobInput>(spec.inputs)) origin->files.push_back(mark_names(spec));
  const std::vector<std::string> paths = std::visit(InputPaths{}, spec.inputs);
  std::string rest;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i] == "-") {
      origin->reads_stdin = true;
      continue;
    }
    Fingerprint mark = fingerprint_of("the input", paths[i]);
    if (i < kMostMarks) {
      origin->files.push_back(std::move(mark));
    } else {
      rest += mark.path + ' ' + std::to_string(mark.bytes) + ' ' +
              (mark.digest.empty() ? std::to_string(mark.modified) : mark.digest) + '\n';
    }
  }
  if (!rest.empty()) {
    origin->files.push_back({"the further inputs", "behind " + paths[kMostMarks - 1], rest.size(), 0, digest_of(rest)});
  }
}

[[nodiscard]] bool same(const Fingerprint& one, const Fingerprint& other) {
  if (one.bytes != other.bytes || one.digest != other.digest) return false;
  return !one.digest.empty() || one.modified == other.modified;
}

}  // namespace

std::string digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  std::array<char, 33> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits.data();
}

Provenance provenance_of(const JobSpec& spec, const std::string& spec_path, std::string_view spec_text) {
  Provenance origin;
  origin.job = spec.name;
  origin.spec_path = spec_path;
  if (!spec_path.empty()) origin.spec_digest = digest_of(spec_text);
  if (!spec.script.empty()) origin.files.push_back(fingerprint_of("the script", spec.script));
  mark_inputs(spec, &origin);
  for (const SharedTensor& tensor : spec.shared) {
    if (!tensor.path.empty()) origin.files.push_back(fingerprint_of("the shared tensor", tensor.path));
  }
  return origin;
}

std::vector<std::string> changed_files(const Provenance& then, const Provenance& now) {
  std::map<std::string, const Fingerprint*> known;  // one file may be script, input and shared tensor
  for (const Fingerprint& mark : then.files) known[mark.path] = &mark;
  std::set<std::string> seen;
  std::vector<std::string> changes;
  for (const Fingerprint& mark : now.files) {
    if (!seen.insert(mark.path).second) continue;
    const auto it = known.find(mark.path);
    if (it == known.end()) {
      changes.push_back(mark.what + " " + mark.path + " was not there");
    } else if (!same(*it->second, mark)) {
      changes.push_back(mark.what + " " + mark.path +
                        (mark.modified == 0 && mark.digest.empty() ? " is gone" : " has changed"));
    }
  }
  for (const auto& [path, mark] : known) {
    if (seen.count(path) == 0) changes.push_back(mark->what + " " + path + " is no longer used");
  }
  return changes;
}

Json to_json(const Provenance& origin) {
  Json files = Json::array();
  for (const Fingerprint& mark : origin.files) {
    files.push_back({{"what", mark.what},
                     {"path", mark.path},
                     {"bytes", mark.bytes},
                     {"modified", mark.modified},
                     {"digest", mark.digest}});
  }
  return {{"job", origin.job},
          {"mprun", origin.mprun},
          {"spec", origin.spec_path},
          {"spec_digest", origin.spec_digest},
          {"directory", origin.directory},
          {"options", origin.options},
          {"stdin", origin.reads_stdin},
          {"files", std::move(files)}};
}

Result<Provenance> provenance_from_json(const Json& json) {
  try {
    Provenance origin;
    origin.job = json.at("job").get<std::string>();
    origin.mprun = json.at("mprun").get<std::string>();
    origin.spec_path = json.at("spec").get<std::string>();
    origin.spec_digest = json.at("spec_digest").get<std::string>();
    origin.directory = json.at("directory").get<std::string>();
    origin.options = json.at("options");
    if (!origin.options.is_object()) return usage_error("its options are no object");
    origin.reads_stdin = json.at("stdin").get<bool>();
    for (const Json& file : json.at("files")) {
      origin.files.push_back({file.at("what").get<std::string>(), file.at("path").get<std::string>(),
                              whole_number<std::uint64_t>(file.at("bytes")),
                              whole_number<std::int64_t>(file.at("modified")), file.at("digest").get<std::string>()});
    }
    return origin;
  } catch (const Json::exception& error) {
    return usage_error(error.what());
  }
}

}  // namespace mprun
