#include "report/page_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/utc_text.h"
#include "report/progress.h"
#include "report/safe_text.h"
#include "report/text_report.h"

namespace mprun::page {
namespace {

constexpr std::size_t kMostRows = 1000;  // of a table; further rows are counted

std::string time_text(double seconds) {
  std::string text = brief_seconds(seconds);
  const std::size_t micro = text.rfind("us");
  return micro == text.npos ? text : text.replace(micro, 2, "µs");
}

// The scripts turn it into a button that shows the task in the timeline.
std::string task_cell(TaskId task, int attempt) {
  return fmt::format("<td class=\"number\" data-task=\"{0}\" data-attempt=\"{1}\">{0}</td>", task, attempt);
}

std::string end_cell(RunRecord::End end) {
  constexpr std::array kClasses = {"ok", "failed", "cancelled", "retried"};
  return fmt::format("<td><span class=\"end {}\">{}</span></td>", kClasses[static_cast<std::size_t>(end)],
                     end_name(end));
}

std::string table(std::string_view name, std::string_view columns, const std::string& rows) {
  return fmt::format(
      "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\"><table><thead><tr>{1}</tr>"
      "</thead><tbody>\n{2}</tbody></table></div>\n",
      name, columns, rows);
}

std::string section(std::string_view id, std::string_view name, std::size_t count, const std::string& inside) {
  const std::string number = count > 0 ? fmt::format(" <span class=\"count\">{}</span>", count) : "";
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-name\"><h2 id=\"{0}-name\">{1}{2}</h2>\n{3}</section>\n", id, name,
      number, inside);
}

// "1,797".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(text.size()) - 3; place > 0; place -= 3) {
    text.insert(static_cast<std::size_t>(place), ",");
  }
  return text;
}

std::string more(std::size_t all) {
  return all > kMostRows ? fmt::format("<p class=\"note\">and {} more</p>\n", all - kMostRows) : "";
}

std::string figure(std::string_view name, const std::string& value, std::string_view kind = "") {
  return fmt::format("<div class=\"{}\"><dt>{}</dt><dd>{}</dd></div>\n", kind, name, value);
}

}  // namespace

std::string head(const RunRecord& run, const RunFigures& figures) {
  std::string verdict;
  if (!run.exit_code) {
    verdict = "<p class=\"verdict open\"><b>Not ended</b>: it still runs, or was killed; then <code>mprun resume " +
              escaped(run.directory) + "</code> finishes it</p>";
  } else if (*run.exit_code == 0) {
    verdict =
        fmt::format("<p class=\"verdict good\"><b>Succeeded</b>: {} tasks ok, exit code 0</p>", grouped(figures.ok));
  } else {
    const std::string meaning = exit_code_meaning(*run.exit_code);
    verdict = fmt::format("<p class=\"verdict bad\"><b>Exit code {}</b>{}{}</p>", *run.exit_code,
                          meaning.empty() ? "" : ": ", escaped(meaning));
  }
  std::string begun = "begun " + utc_text(from_seconds(run.started)).replace(10, 1, " ").replace(19, 5, " UTC");
  if (run.sessions > 1) begun += fmt::format(", worked on by {} sessions", run.sessions);
  return fmt::format("<h1>{}</h1>\n{}\n<p class=\"origin\">{}, by mprun {}, in <code>{}</code></p>\n",
                     escaped(one_line(run.job, 80)), verdict, begun, escaped(one_line(run.mprun, 40)),
                     escaped(run.directory));
}

std::string figures(const RunRecord& run, const RunFigures& figures) {
  std::string list = figure("ok", grouped(figures.ok), "ok");
  list += figure("failed", grouped(figures.failed), figures.failed > 0 ? "failed" : "");
  if (figures.cancelled > 0) list += figure("cancelled", grouped(figures.cancelled));
  list += figure("tried again", grouped(figures.retried), figures.retried > 0 ? "retried" : "");
  if (run.total && *run.total > figures.done()) {
    list += figure("not run", grouped(*run.total - figures.done()));
  }
  if (run.total) list += figure("tasks", grouped(*run.total));
  if (run.seconds && *run.seconds > 0) {
    list += figure("took", time_text(*run.seconds));
    list += figure("rate", format_rate(static_cast<double>(figures.ok + figures.failed) / *run.seconds));
  }
  if (!figures.workers.empty()) {
    list += figure("workers", grouped(figures.workers.size()));
    list += figure("busy", fmt::format("{} %", figures.percent_busy()));
  }
  if (!figures.durations.empty()) {
    list += figure("shortest task", time_text(figures.durations.front()));
    list += figure("median", time_text(percentile(figures.durations, 0.5)));
    list += figure("95 % below", time_text(percentile(figures.durations, 0.95)));
    list += figure("longest", time_text(figures.durations.back()));
  }
  if (!run.hangs.empty()) list += figure("hangs", grouped(run.hangs.size()), "failed");
  return "<dl class=\"figures\" aria-label=\"Figures of the run\">\n" + list + "</dl>\n";
}

std::string slowest(const RunRecord& run, const RunFigures& figures) {
  std::string rows;
  for (const std::size_t index : figures.slowest) {
    const RunRecord::Attempt& attempt = run.attempts[index];
    rows += fmt::format(
        "<tr>{}<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>{}</tr>\n",
        task_cell(attempt.task, attempt.attempt), time_text(attempt.seconds), attempt.worker, attempt.attempt,
        end_cell(attempt.end));
  }
  if (rows.empty()) return "";
  return section("slowest", "Slowest tasks", 0,
                 table("Slowest tasks",
                       "<th class=\"number\">task</th><th class=\"number\">took</th><th class=\"number\">worker</th>"
                       "<th class=\"number\">attempt</th><th>end</th>",
                       rows));
}

std::string workers(const RunRecord& run, const RunFigures& figures) {
  std::map<int, std::string> cpus;  // of those that were bound
  for (const RunRecord::Process& process : run.processes) {
    if (!process.cpus.empty()) cpus[process.worker] = escaped(process.cpus);
  }
  std::string rows;
  for (std::size_t i = 0; i < figures.workers.size() && i < kMostRows; ++i) {
    const WorkerFigures& use = figures.workers[i];
    const long busy = figures.percent(use.busy);
    rows += fmt::format(
        "<tr><td class=\"number\">{0}</td><td class=\"number\">{1} %</td><td><meter min=\"0\" max=\"100\" "
        "value=\"{1}\" aria-label=\"busy\">{1} %</meter></td><td class=\"number\">{2}</td>"
        "<td class=\"number\">{3}</td>{4}</tr>\n",
        use.worker, busy, use.attempts, time_text(use.busy), cpus.empty() ? "" : "<td>" + cpus[use.worker] + "</td>");
  }
  if (rows.empty()) return "";
  return section("workers", "Workers", figures.workers.size(),
                 "<p class=\"caption\">Busy: the part of the " + time_text(figures.end - figures.begin) +
                     " between the first start and the last end of a task in which the worker had one.</p>\n" +
                     table("Workers",
                           std::string("<th class=\"number\">worker</th><th colspan=\"2\">busy</th>"
                                       "<th class=\"number\">attempts</th><th class=\"number\">worked</th>") +
                               (cpus.empty() ? "" : "<th>CPUs</th>"),
                           rows) +
                     more(figures.workers.size()));
}

std::string retries(const RunRecord& run, const RunFigures& figures) {
  std::string rows;
  std::size_t shown = 0;
  for (const RunRecord::Failure& failure : run.failures) {
    if (!failure.retried || shown == kMostRows) continue;
    ++shown;
    rows +=
        fmt::format("<tr>{}<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"text\">{}</td></tr>\n",
                    task_cell(failure.task, failure.attempt), failure.worker, failure.attempt,
                    escaped(one_line(failure.error, 500)));
  }
  if (rows.empty()) return "";
  const std::size_t left = figures.retried > shown ? figures.retried - shown : 0;
  return section("retries", "Tried again", figures.retried,
                 table("Attempts that were tried again",
                       "<th class=\"number\">task</th><th class=\"number\">worker</th><th class=\"number\">attempt</th>"
                       "<th>why</th>",
                       rows) +
                     (left > 0 ? fmt::format("<p class=\"note\">and {} more</p>\n", left) : ""));
}

std::string processes(const RunRecord& run) {
  std::string rows;
  std::size_t died = 0;
  for (const RunRecord::Process& process : run.processes) {
    if (process.expected || ++died > kMostRows) continue;
    rows += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n", escaped(process_name(process)),
                        process.pid, escaped(to_string(process.end)));
  }
  if (rows.empty()) return "";
  const std::string others =
      fmt::format("<p class=\"caption\">The other {} ended as they should.</p>\n", run.processes.size() - died);
  return section(
      "processes", "Processes that died", died,
      table("Processes that died", "<th>process</th><th class=\"number\">pid</th><th>ended with</th>", rows) +
          more(died) + (run.processes.size() > died ? others : ""));
}

std::string warnings(const RunRecord& run) {
  std::string items;
  for (std::size_t i = 0; i < run.notices.size() && i < kMostRows; ++i) {
    items += "<li><b>" + escaped(run.notices[i].first) + "</b>: " + escaped(run.notices[i].second) + "</li>\n";
  }
  if (items.empty()) return "";
  return section("warnings", "Warnings", run.notices.size(), "<ul>\n" + items + "</ul>\n" + more(run.notices.size()));
}

}  // namespace mprun::page
