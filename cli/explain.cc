// mprun explain: a page for each cause that the watch names; man/causes has them.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "installation.h"
#include "job/words.h"

namespace mprun {
namespace {

using Pages = std::map<std::string, std::string>;  // by ID

Result<Pages> read_pages() {
  const std::filesystem::path folder = shared_folder() + "/causes";
  Pages pages;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".md") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    pages[entry.path().stem().string()] = text.str();
  }
  if (pages.empty()) {
    return internal_error("mprun's pages are missing: there are none in " + folder.string() +
                          (error ? " (" + error.message() + ")" : "") +
                          "\n  install mprun again: bin/mprun and share/mprun belong together");
  }
  return pages;
}

// A page begins with "# ID: summary".
std::string summary_of(const std::string& page) {
  const std::string title = page.substr(0, page.find('\n'));
  const auto colon = title.find(": ");
  return colon == std::string::npos ? title : title.substr(colon + 2);
}

std::string list_of(const Pages& pages) {
  std::size_t width = 0;
  for (const auto& [id, page] : pages) width = std::max(width, id.size());
  std::string text;
  for (const auto& [id, page] : pages) text += id + std::string(width + 2 - id.size(), ' ') + summary_of(page) + "\n";
  return text;
}

Error unknown_cause(const std::string& id, const Pages& pages) {
  std::vector<std::string> known;
  for (const auto& [name, page] : pages) known.push_back(name);
  const auto near = job::nearest_name(id, known);
  return usage_error("explain: no cause is called " + job::in_quotes(job::clip(id)) +
                     (near ? "\n  did you mean " + job::in_quotes(*near) + "?" : "") +
                     "\n  `mprun explain` lists the causes");
}

}  // namespace

int explain(const CommandLine& line) {
  const auto pages = read_pages();
  if (!pages) return report_error(pages.error());
  const auto page = pages->find(line.cause);
  if (!line.cause.empty() && page == pages->end()) return report_error(unknown_cause(line.cause, *pages));
  const std::string text = line.cause.empty() ? list_of(*pages) : page->second;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return report_error(internal_error("the page could not be written: " + std::string(std::strerror(errno))));
  }
  return 0;
}

}  // namespace mprun
