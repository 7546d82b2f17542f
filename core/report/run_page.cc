#include "report/run_page.h"

#include <functional>
#include <map>
#include <string_view>

#include "report/page_tables.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

using Places = std::map<std::string_view, std::function<std::string()>>;

// Replaces each @name@ of the text. Replacements are not searched again.
std::string filled(std::string_view text, const Places& places) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find('@');
    out += text.substr(0, begin);
    if (begin == text.npos) return out;
    text.remove_prefix(begin + 1);
    const std::size_t end = text.find('@');
    const auto place = end == text.npos ? places.end() : places.find(text.substr(0, end));
    if (place == places.end()) {
      out += '@';
      continue;
    }
    out += place->second();
    text.remove_prefix(end + 1);
  }
}

std::string title(const RunRecord& run, const RunFigures& figures) {
  std::string text = escaped(run.job) + ": " + std::to_string(figures.ok) + " ok";
  if (figures.failed > 0) text += ", " + std::to_string(figures.failed) + " failed";
  return text;
}

// A page contains a copy of the library, so it contains the library's licence, too.
std::string licence(const PageParts& parts) {
  if (parts.library.empty()) return "";
  return "<details><summary>This page contains d3, under this licence</summary><pre>" + escaped(parts.licence) +
         "</pre></details>";
}

constexpr std::string_view kPlain =
    "<p class=\"note\">This mprun was built without d3: the page has no timeline and no graphs.</p>";
constexpr std::string_view kNoScripts =
    "<noscript><p class=\"note\">The timeline and the graphs are drawn by scripts, which are off.</p></noscript>";

}  // namespace

std::string run_page(const RunRecord& run, const RunDetails& details, const PageParts& parts) {
  const RunFigures figures = figures_of(run);
  const bool draws = !parts.library.empty();
  const auto text = [](std::string_view part) { return [part] { return std::string(part); }; };
  const Places places{
      {"policy", text(parts.policy)},
      {"title", [&] { return title(run, figures); }},
      {"style", text(parts.style)},
      {"head", [&] { return page::head(run, figures); }},
      {"note", text(draws ? kNoScripts : kPlain)},
      {"figures", [&] { return page::figures(run, figures); }},
      {"failures", [&] { return page::failures(run, figures); }},
      {"hangs", [&] { return page::hangs(run, details); }},
      {"slowest", [&] { return page::slowest(run, figures); }},
      {"workers", [&] { return page::workers(run, figures); }},
      {"retries", [&] { return page::retries(run, figures); }},
      {"processes", [&] { return page::processes(run); }},
      {"warnings", [&] { return page::warnings(run); }},
      {"mprun", [&] { return escaped(run.mprun); }},
      {"licence", [&] { return licence(parts); }},
      {"data", [&] { return draws ? page_data(run, details) : std::string("null"); }},
      {"library", text(parts.library)},
      {"scripts", text(parts.scripts)},
  };
  return filled(parts.html, places);
}

}  // namespace mprun
