// Provenance: what a run was made from, so that resuming it shows what has changed since. Made by cli/, kept in the
// journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "json/document.h"
#include "json/json.h"

namespace mprun {

/// One file as it was. Files of up to 8 MiB are compared by content, larger ones by size and modification time.
struct Fingerprint {
  std::string what;  ///< human-readable: "the script"
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::string digest;         ///< XXH3 of the content, 32 hexadecimal digits; empty for large files
};

struct Provenance {
  std::string job;        ///< its name
  std::string mprun;      ///< the version of this program
  std::string spec_path;  ///< absolute; empty: the spec came from options only, or from standard input
  std::string spec_digest;
  std::string directory;           ///< where mprun was started
  Json options = Json::object();   ///< the layer of the command line
  bool reads_stdin = false;        ///< inputs come from standard input
  std::vector<Fingerprint> files;  ///< script and inputs
};

/// Fingerprints the files of a job. `spec_text`: the text of the spec file.
[[nodiscard]] Provenance provenance_of(const JobSpec& spec, const std::string& spec_path, std::string_view spec_text);

/// One human-readable line about each file that has changed.
[[nodiscard]] std::vector<std::string> changed_files(const Provenance& then, const Provenance& now);

/// The digest of a text, 32 hexadecimal digits. It finds changes, not forgeries.
[[nodiscard]] std::string digest_of(std::string_view text);

[[nodiscard]] Json to_json(const Provenance& origin);
/// Errors: not written by this program.
[[nodiscard]] Result<Provenance> provenance_from_json(const Json& json);

}  // namespace mprun
