#include "job/redact.h"

#include <fnmatch.h>

#include <algorithm>

#include "job/resolve_parts.h"
#include "json/json.h"
#include "json/words.h"

namespace mprun::job {

bool is_redacted(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&name](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), FNM_CASEFOLD) == 0;
  });
}

void redact_env(const std::vector<std::string>& patterns, Json* merged) {
  const auto env = merged->find("env");
  if (env == merged->end()) return;
  for (auto& [name, value] : env->items()) {
    if (is_redacted(patterns, name)) value = kRedacted;
  }
}

Result<void> restore_redacted(Resolving& job) {
  for (auto& [name, value] : job.spec.env) {
    if (value != kRedacted || !is_redacted(job.spec.redact, name)) continue;
    const std::string* known = job.variable(name);
    if (known == nullptr) {
      return job.layers.error((Json::json_pointer("/env") / name).to_string(),
                              std::string("found \"") + kRedacted +
                                  "\", which stands for a value that was not kept; set " + name +
                                  " in the environment of mprun, or write its value here");
    }
    value = *known;
  }
  return {};
}

}  // namespace mprun::job
