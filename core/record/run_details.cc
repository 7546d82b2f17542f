#include "record/run_details.h"

#include <fcntl.h>

#include <utility>

#include "os/fd.h"

namespace mprun {
namespace {

std::string text_of(const std::string& path) {
  const auto file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return "";
  auto text = read_all(file->get());
  return text ? std::move(*text) : "";
}

}  // namespace

RunDetails read_details(const RunRecord& run) {
  RunDetails details;
  for (const RunRecord::Hang& hang : run.hangs) {
    if (details.hangs.size() == RunDetails::kMostHangs) break;
    HangFile file;
    if (!hang.file.empty()) {
      const std::string path = run.directory + "/" + hang.file;
      auto report = read_document(path, run.directory);
      if (report) file.report = std::move(report->value);
      file.text = text_of(path.substr(0, path.rfind('.')) + ".txt");
    }
    details.hangs.push_back(std::move(file));
  }
  details.usage = read_usage(run.directory, run.starts);
  return details;
}

}  // namespace mprun
