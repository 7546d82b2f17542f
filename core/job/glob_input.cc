#include <glob.h>

#include <algorithm>
#include <vector>

#include "job/input_sources.h"
#include "json/json_text.h"

namespace mprun::job {

namespace {

class GlobSource final : public InputSource {
 public:
  explicit GlobSource(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  Pull pull(std::string* out) override {
    if (next_ == paths_.size()) return Pull::kEnd;
    append_json_string(out, paths_[next_++]);
    return Pull::kItem;
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override { return paths_.size(); }

 private:
  std::vector<std::string> paths_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::vector<std::string>> match_files(const std::string& pattern) {
  glob_t found{};
  // sorted below by bytes: glob(3) would sort by the locale
  const int status = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status == GLOB_NOSPACE) return internal_error(pattern + ": out of memory while matching file names");
  std::sort(paths.begin(), paths.end());
  return paths;
}

SourceResult open_glob(const GlobInput& input) {
  Result<std::vector<std::string>> paths = match_files(input.pattern);
  if (!paths) return std::move(paths).error();
  if (paths->empty()) return usage_error(input.pattern + ": has no inputs: no file name matches");
  return std::unique_ptr<InputSource>(std::make_unique<GlobSource>(std::move(*paths)));
}

}  // namespace mprun::job
