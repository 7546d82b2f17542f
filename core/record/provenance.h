// Provenance: what a run was made from, so that whoever resumes it notices what has changed since. Made by cli/, kept
// in the journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/document.h"
#include "job/json.h"
#include "job/spec.h"

namespace mprun {

/// One file as it was. Of files up to 8 MiB the content counts, of larger ones size and time of change.
struct Fingerprint {
  std::string what;  ///< for people: "the script"
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::string digest;         ///< XXH3 of the content, 32 hexadecimal digits; empty for large files
};

struct Provenance {
  std::string job;        ///< its name
  std::string mprun;      ///< the version of this program
  std::string spec_path;  ///< absolute; empty: the options said all, or standard input
  std::string spec_digest;
  std::string directory;           ///< where mprun was started
  Json options = Json::object();   ///< the layer of the command line
  bool reads_stdin = false;        ///< the inputs
  std::vector<Fingerprint> files;  ///< script and inputs
};

/// Marks the files of a job. `spec_text`: of the spec file.
[[nodiscard]] Provenance provenance_of(const JobSpec& spec, const std::string& spec_path, std::string_view spec_text);

/// One line for people about each file that is not what it was.
[[nodiscard]] std::vector<std::string> changed_files(const Provenance& then, const Provenance& now);

/// The digest of a text, 32 hexadecimal digits. It finds changes, not forgeries.
[[nodiscard]] std::string digest_of(std::string_view text);

[[nodiscard]] Json to_json(const Provenance& origin);
/// Errors: not written by this program.
[[nodiscard]] Result<Provenance> provenance_from_json(const Json& json);

}  // namespace mprun
