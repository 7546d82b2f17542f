// The parts of a run's page that show what went wrong: failures by cause, and hangs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "json/json.h"
#include "report/failure_digest.h"
#include "report/page_tables.h"
#include "report/safe_text.h"

namespace mprun::page {
namespace {

constexpr std::size_t kMostCauses = 200;
constexpr std::size_t kMostTracebacks = 20;     // of a cause
constexpr std::size_t kMostTraceback = 20'000;  // bytes: its end is the important part
constexpr std::size_t kMostNumbers = 500;       // of tasks without their tracebacks

struct Cause {
  std::string type;
  std::vector<const RunRecord::Failure*> failures;
};

// By type of error, as in run_text; the largest first.
std::vector<Cause> causes_of(const RunRecord& run) {
  std::map<std::string, std::vector<const RunRecord::Failure*>> by_type;
  for (const RunRecord::Failure& failure : run.failures) {
    if (failure.retried) continue;
    std::string type = read_failure(failure.error).type;
    if (by_type.size() >= kMostCauses && by_type.find(type) == by_type.end()) type = "other errors";
    by_type[std::move(type)].push_back(&failure);
  }
  std::vector<Cause> causes;
  causes.reserve(by_type.size());
  for (auto& [type, failures] : by_type) causes.push_back({type, std::move(failures)});
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.failures.size() > b.failures.size(); });
  return causes;
}

std::string task_mark(const RunRecord::Failure& failure) {
  return fmt::format("<span data-task=\"{0}\" data-attempt=\"{1}\">{0}</span>", failure.task, failure.attempt);
}

std::string one_failure(const RunRecord::Failure& failure) {
  const FailureText text = read_failure(failure.error);
  std::string traceback = traceback_of(failure.error);
  const bool cut = traceback.size() > kMostTraceback;
  if (cut) traceback = traceback.substr(traceback.size() - kMostTraceback);
  return fmt::format(
      "<details class=\"failure\"><summary>task {0}<span class=\"message\">{1}</span>"
      "<span class=\"where\">{2}</span></summary>\n<p class=\"caption\">Task {3}, attempt {4}, worker "
      "{5}.</p><pre tabindex=\"0\">{6}{7}</pre></details>\n",
      failure.task, escaped(text.message), escaped(text.where), task_mark(failure), failure.attempt, failure.worker,
      cut ? "...\n" : "", traceback.empty() ? "no traceback was recorded" : escaped(traceback));
}

std::string one_cause(const Cause& cause, bool open) {
  std::string inside;
  for (std::size_t i = 0; i < cause.failures.size() && i < kMostTracebacks; ++i)
    inside += one_failure(*cause.failures[i]);
  if (cause.failures.size() > kMostTracebacks) {
    inside += "<p class=\"caption\">Also tasks";
    for (std::size_t i = kMostTracebacks; i < cause.failures.size() && i < kMostTracebacks + kMostNumbers; ++i) {
      inside += " " + task_mark(*cause.failures[i]);
    }
    if (cause.failures.size() > kMostTracebacks + kMostNumbers) inside += " and more";
    inside += "; their tracebacks are in <code>results.jsonl</code>.</p>\n";
  }
  return fmt::format(
      "<details class=\"cause\"{0}><summary><span class=\"times\">{1} ×</span> <b>{2}</b>"
      "<span class=\"message\">{3}</span></summary>\n{4}</details>\n",
      open ? " open" : "", cause.failures.size(), escaped(cause.type),
      escaped(read_failure(cause.failures.front()->error).message), inside);
}

std::string text_at(const Json& report, const char* outer, const char* key) {
  const Json* object = &report;
  if (*outer != '\0') {
    const auto found = report.find(outer);
    if (found == report.end() || !found->is_object()) return "";
    object = &*found;
  }
  const auto value = object->find(key);
  return value != object->end() && value->is_string() ? value->get<std::string>() : "";
}

std::string verdict_text(const std::string& verdict) {
  if (verdict == "deadlock") return "deadlock: proved, nothing of it can ever move again";
  if (verdict == "partial-deadlock") return "partial deadlock: proved for these processes, while others still ran";
  if (verdict == "orphaned-lock") return "orphaned lock: who holds it has ended, or waits in a cycle";
  if (verdict == "stalled") return "stalled: nothing moved for long, which is no proof";
  if (verdict == "overdue") return "overdue: a limit has passed";
  return verdict;
}

std::string one_hang(const RunRecord& run, const RunDetails& details, std::size_t index) {
  const RunRecord::Hang& hang = run.hangs[index];
  const HangFile* file = index < details.hangs.size() ? &details.hangs[index] : nullptr;
  std::string inside = fmt::format("<h3>{}. {}</h3>\n", index + 1, escaped(verdict_text(hang.verdict)));
  std::string facts = "<dt>cause</dt><dd>";
  if (file == nullptr || !file->report.is_object()) {
    return "<article class=\"hang\">" + inside + "<dl class=\"facts\">" + facts + escaped(hang.cause) +
           "</dd></dl></article>\n";
  }
  const std::string explanation = text_at(file->report, "cause", "explanation");
  const std::string fix = text_at(file->report, "cause", "fix");
  const std::string call = text_at(file->report, "join", "call");
  facts += (explanation.empty() ? "" : escaped(explanation) + " ") + "<code>" + escaped(hang.cause) + "</code></dd>";
  if (!fix.empty()) facts += "<dt>cure</dt><dd><b>" + escaped(fix) + "</b></dd>";
  if (!call.empty()) {
    const std::string place = text_at(file->report, "join", "file");
    const Json line = file->report["join"].value("line", Json());
    facts += "<dt>waits in</dt><dd><code>" + escaped(call) + "</code>";
    if (!place.empty() && line.is_number_integer())
      facts += " at <code>" + escaped(place) + ":" + line.dump() + "</code>";
    facts += "</dd>";
  }
  inside += "<dl class=\"facts\">" + facts + "</dl>\n";
  inside += fmt::format("<figure class=\"waits\" tabindex=\"0\" data-hang=\"{}\" hidden></figure>\n", index);
  inside += fmt::format(
      "<details><summary>Report with stacks (<code>{}</code>)</summary><pre tabindex=\"0\">{}</pre></details>\n",
      escaped(hang.file), escaped(file->text));
  return "<article class=\"hang\">" + inside + "</article>\n";
}

}  // namespace

std::string failures(const RunRecord& run, const RunFigures& figures) {
  const auto causes = causes_of(run);
  if (causes.empty()) return "";
  std::string inside;
  std::size_t listed = 0;
  for (const Cause& cause : causes) {
    inside += one_cause(cause, &cause == &causes.front());
    listed += cause.failures.size();
  }
  const std::size_t all = figures.failed + figures.cancelled;
  if (all > listed) {
    inside += fmt::format("<p class=\"note\">{} more failures are in <code>results.jsonl</code></p>\n", all - listed);
  }
  return fmt::format(
      "<section id=\"failures\" aria-labelledby=\"failures-name\"><h2 id=\"failures-name\">Failures by "
      "cause <span class=\"count\">{}</span></h2>\n{}</section>\n",
      all, inside);
}

std::string hangs(const RunRecord& run, const RunDetails& details) {
  if (run.hangs.empty()) return "";
  std::string inside;
  for (std::size_t i = 0; i < run.hangs.size() && i < RunDetails::kMostHangs; ++i) inside += one_hang(run, details, i);
  if (run.hangs.size() > RunDetails::kMostHangs) {
    inside += fmt::format("<p class=\"note\">and {} more, in <code>hangs/</code> of the run directory</p>\n",
                          run.hangs.size() - RunDetails::kMostHangs);
  }
  return fmt::format(
      "<section id=\"hangs\" aria-labelledby=\"hangs-name\"><h2 id=\"hangs-name\">Hangs <span "
      "class=\"count\">{}</span></h2>\n{}</section>\n",
      run.hangs.size(), inside);
}

}  // namespace mprun::page
