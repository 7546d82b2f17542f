// mprun explain: a page for each cause that the watch names (watch/cause_table.h); the pages are in man/causes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "json/words.h"
#include "run/installation.h"
#include "watch/causes/cause_table.h"

namespace mprun {
namespace {

Result<std::string> read_page(const std::string& id) {
  const std::string path = shared_folder() + "/causes/" + id + ".md";
  std::ifstream file(path);
  std::stringstream text;
  if (file && text << file.rdbuf()) return text.str();
  return internal_error("the page " + path + " could not be read (" + std::strerror(errno) +
                        ")\n  install mprun again: bin/mprun and share/mprun belong together");
}

// A page begins with "# ID: summary".
std::string summary_of(const std::string& page) {
  const std::string title = page.substr(0, page.find('\n'));
  const auto colon = title.find(": ");
  return colon == std::string::npos ? title : title.substr(colon + 2);
}

Result<std::string> list_causes() {
  std::size_t width = 0;
  for (const auto& [id, kind] : all_causes()) width = std::max(width, id.size());
  std::string text;
  for (const auto& [id, kind] : all_causes()) {
    const auto page = read_page(id);
    if (!page) return page.error();
    text += id + std::string(width + 2 - id.size(), ' ') + (kind == CauseKind::kProof ? "proof  " : "stall  ") +
            summary_of(*page) + "\n";
  }
  return text;
}

Error unknown_cause(const std::string& id) {
  std::vector<std::string> known;
  for (const auto& [name, kind] : all_causes()) known.push_back(name);
  const auto near = nearest_name(id, known);
  return usage_error("explain: no cause is called " + in_quotes(clip(id)) +
                     (near ? "\n  did you mean " + in_quotes(*near) + "?" : "") +
                     "\n  `mprun explain` lists the causes");
}

}  // namespace

int explain(const CommandLine& line) {
  const std::string& id = line.cause;
  if (!id.empty() && all_causes().count(id) == 0) return report_error(unknown_cause(id));
  const auto text = id.empty() ? list_causes() : read_page(id);
  if (!text) return report_error(text.error());
  const auto printed = print_text(*text, "the page");
  return printed ? 0 : report_error(printed.error());
}

}  // namespace mprun
