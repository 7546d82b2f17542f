// mprun merge: one run directory from those of its shards.
#include <cstdio>
#include <filesystem>

#include "commands.h"
#include "record/merge.h"

namespace mprun {

int merge(const CommandLine& line) {
  std::error_code error;
  const std::string run_dir = std::filesystem::absolute(line.run_dir, error).lexically_normal().string();
  const auto run = merge_shards(run_dir);
  if (!run) return report_error(run.error());
  for (const std::string& warning : run->warnings) std::fprintf(stderr, "mprun: warning: %s\n", warning.c_str());
  if (!run->unfinished.empty()) {
    std::string text = "mprun: the shards in " + line.run_dir + " cannot be joined yet:";
    for (const std::string& reason : run->unfinished) text += "\n  " + reason;
    std::fprintf(stderr, "%s\n  the same command that was to run it, or mprun resume of its folder, goes on with it\n",
                 text.c_str());
    return 1;
  }
  if (!line.quiet) {
    std::fprintf(stderr, "mprun: joined %zu shards: %llu ok, %llu failed\nresults: %s/results.jsonl\n", run->shards,
                 static_cast<unsigned long long>(run->counts.ok), static_cast<unsigned long long>(run->counts.failed),
                 line.run_dir.c_str());
  }
  return run->exit_code;
}

}  // namespace mprun
