#include "report/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "json/json.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr int kDoctorVersion = 1;
constexpr std::size_t kMostDoctorCommand = 120;

std::string plural(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// Programs that ran with the adapters in them and had none of the runtimes loaded.
std::vector<std::string> plain_programs(const DoctorFindings& findings) {
  std::vector<std::string> plain;
  for (const std::string& program : findings.programs()) {
    const auto& processes = findings.processes();
    const bool examined = std::any_of(processes.begin(), processes.end(),
                                      [&](const ExaminedProcess& process) { return process.program == program; });
    if (!examined) plain.push_back(program);
  }
  return plain;
}

std::string process_text(const ExaminedProcess& process) {
  std::string text =
      fmt::format("\npid {}: {}\n  {} with {}\n", process.pid, one_line(process.command, kMostDoctorCommand),
                  process.forked ? "forked" : "did not fork; ended", plural(process.threads, "thread", "threads"));
  for (const RuntimeCopy& copy : process.runtimes) {
    const ForkVerdict verdict = verdict_of(copy, process);
    text +=
        fmt::format("  {:<9}  {}  {}\n             {}{}\n", to_string(verdict.at_fork), copy.kind, printable(copy.path),
                    copy.adapter.empty() ? "" : "adapter " + copy.adapter + ": ", verdict.explanation);
  }
  if (process.announced > process.runtimes.size()) {
    text += fmt::format("  {} more are missing: too many came at once\n", process.announced - process.runtimes.size());
  }
  return text;
}

std::string conclusion(const DoctorFindings& findings) {
  std::array<std::size_t, 4> counts{};
  std::size_t all = 0;
  for (const ExaminedProcess& process : findings.processes()) {
    for (const RuntimeCopy& copy : process.runtimes) {
      ++counts.at(static_cast<std::size_t>(verdict_of(copy, process).at_fork));
      ++all;
    }
  }
  if (all == 0) return "nothing that fork() could harm was found\n";
  std::string text = plural(all, "runtime", "runtimes") + ":";
  for (const AtFork at_fork : {AtFork::kSafe, AtFork::kMadeSafe, AtFork::kUnclear, AtFork::kAtRisk}) {
    const std::size_t count = counts.at(static_cast<std::size_t>(at_fork));
    if (count > 0) text += fmt::format(" {} {},", count, to_string(at_fork));
  }
  text.back() = '\n';
  return text;
}

Json process_json(const ExaminedProcess& process) {
  Json runtimes = Json::array();
  for (const RuntimeCopy& copy : process.runtimes) {
    const ForkVerdict verdict = verdict_of(copy, process);
    Json runtime{{"kind", copy.kind},
                 {"path", copy.path},
                 {"adapter", copy.adapter.empty() ? Json() : Json(copy.adapter)},
                 {"adapter_on", copy.adapter.empty() ? Json() : Json(copy.adapter_state == AdapterState::kOn)},
                 {"at_fork", to_string(verdict.at_fork)},
                 {"explanation", verdict.explanation}};
    if (copy.kind == "libgomp") {
      runtime["can_pause"] = copy.can_pause;
      runtime["team"] = copy.team;
    }
    runtimes.push_back(std::move(runtime));
  }
  return {{"pid", process.pid},
          {"program", process.program},
          {"command", process.command},
          {"forked", process.forked},
          {"threads", process.threads},
          {"runtimes", std::move(runtimes)},
          {"runtimes_found", process.announced}};
}

}  // namespace

std::string machine_text(const std::vector<MachineFeature>& features, const std::string& processors) {
  std::size_t widest_name = 0, widest_value = 0;
  for (const MachineFeature& feature : features) {
    widest_name = std::max(widest_name, feature.name.size());
    if (!feature.use.empty()) widest_value = std::max(widest_value, feature.value.size());
  }
  std::string text;
  std::string missing;
  std::string limits;
  for (const MachineFeature& feature : features) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {}", feature.name, widest_name, printable(feature.value),
                                   widest_value, feature.use);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (!feature.ok && feature.needed) missing += (missing.empty() ? "" : ", ") + feature.name;
    if (!feature.limit.empty()) limits += "  * " + printable(feature.limit) + "\n";
  }
  if (!processors.empty()) text += "\n" + processors + "\n";
  text += missing.empty() ? "mprun can work here" : "mprun cannot work here as it should: " + missing;
  return text + (limits.empty() ? "\n" : "; what limits it:\n" + limits);
}

Json machine_json(const std::vector<MachineFeature>& features, const std::string& processors) {
  Json machine = Json::object();
  for (const MachineFeature& feature : features) {
    machine[feature.name] = {{"ok", feature.ok},
                             {"needed", feature.needed},
                             {"value", feature.value},
                             {"use", feature.use},
                             {"limit", feature.limit.empty() ? Json() : Json(feature.limit)}};
  }
  return {{"version", kDoctorVersion},
          {"fit", is_fit(features)},
          {"machine", std::move(machine)},
          {"processors", processors}};
}

bool is_fit(const std::vector<MachineFeature>& features) {
  return std::all_of(features.begin(), features.end(),
                     [](const MachineFeature& feature) { return feature.ok || !feature.needed; });
}

std::string examination_text(const Examination& examination) {
  const DoctorFindings& findings = examination.findings;
  std::string text = fmt::format("mprun doctor: {}: ", one_line(examination.subject, kMostDoctorCommand));
  text += examination.imported && examination.exit_code == 0 ? "imported\n"
                                                             : fmt::format("exit code {}\n", examination.exit_code);
  if (findings.programs().empty()) {
    return text +
           "no process reported what it had loaded: the adapters are not in a program that is statically linked, has "
           "rights of its own (setuid), or clears LD_PRELOAD\n";
  }
  for (const ExaminedProcess& process : findings.processes()) text += process_text(process);
  const auto plain = plain_programs(findings);
  for (const std::string& program : plain) {
    text += (&program == &plain.front() ? "\nno runtime was reported by " : ", ") + printable(program);
  }
  if (!plain.empty()) text += "\n  (a process that is killed, or ends by _exit, reports nothing)\n";
  return text + "\n" + conclusion(findings);
}

Json examination_json(const Examination& examination) {
  Json processes = Json::array();
  for (const ExaminedProcess& process : examination.findings.processes()) processes.push_back(process_json(process));
  return {{"version", kDoctorVersion},
          {"subject", examination.subject},
          {"imported", examination.imported},
          {"exit_code", examination.exit_code},
          {"programs", examination.findings.programs()},
          {"processes", std::move(processes)},
          {"notes", examination.notes}};
}

}  // namespace mprun
