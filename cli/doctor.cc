// mprun doctor: what this machine offers, or which runtimes a program or script loads and what fork() means for them.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "commands.h"
#include "json/json.h"
#include "launch/environment.h"
#include "machine.h"
#include "report/doctor_report.h"
#include "run/installation.h"
#include "run/program_run.h"
#include "run/resolve_request.h"

namespace mprun {
namespace {

std::string line_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";  // file names may be any bytes
}

int print(std::FILE* to, const std::string& text) {
  const auto printed = print_text(text, "the report", to);
  return printed ? 0 : report_error(printed.error());
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

int examine_this_machine(const CommandLine& line) {
  const auto installation = find_installation();
  if (!installation) return report_error(installation.error());
  const auto features = examine_machine(line, *installation);
  const std::string processors = examine_processors();
  const int failed =
      print(stdout, line.json ? line_of(machine_json(features, processors)) : machine_text(features, processors));
  if (failed != 0) return failed;
  return is_fit(features) ? 0 : 1;
}

// The command line and environment of the interpreter that imports the script as a job's host would.
Result<void> prepare_import(CommandLine* line, ProgramObserver* observer) {
  const auto installation = find_installation();
  if (!installation) return installation.error();
  const auto resolved = resolve_request(*line);
  if (!resolved) return resolved.error();
  const JobSpec& spec = resolved->spec;
  line->program = {spec.python, installation->importer, spec.script};
  line->program.insert(line->program.end(), spec.args.begin(), spec.args.end());
  // The other fields were for the script's job.
  Json adapters = line->layer.value.value("adapters", Json::object());
  line->layer.value = {{"adapters", std::move(adapters)}};
  line->layer.origins.clear();
  observer->environment = job_environment(spec, own_environment(), "");
  for (const char* of_a_run : {"MPRUN_RUN_DIR", "MPRUN_WORKERS"}) observer->environment.erase(of_a_run);
  return {};
}

int examine_program(CommandLine line, const Guard& guard) {
  Examination examination;
  examination.imported = line.program.empty();
  ProgramObserver observer;
  observer.environment = own_environment();
  observer.stdout_to_stderr = line.json || examination.imported;
  if (examination.imported) {
    examination.subject = line.layer.value["script"].get<std::string>();
    if (auto prepared = prepare_import(&line, &observer); !prepared) return report_error(prepared.error());
  } else {
    examination.subject = join(line.program);
  }
  observer.environment["MPRUN_DOCTOR"] = "1";
  std::string& adapters = observer.environment["MPRUN_ADAPTERS"];
  adapters += (adapters.empty() ? "+" : ",+") + std::string("doctor");  // even after -all
  observer.take = [&](const AdapterNote& note) {
    if (examination.findings.take(note)) return true;
    examination.notes.push_back(to_string(note));
    return false;
  };
  const auto code = run_program(line, guard, &observer);
  if (!code) return report_error(code.error());
  if (!observer.started) return *code;
  examination.exit_code = *code;
  const int failed = print(observer.stdout_to_stderr ? stdout : stderr,
                           line.json ? line_of(examination_json(examination)) : examination_text(examination));
  return failed != 0 ? failed : examination.exit_code;
}

}  // namespace

int doctor(const CommandLine& line, const Inheritance& inheritance) {
  if (line.program.empty() && !line.layer.value.contains("script")) return examine_this_machine(line);
  return run_guarded(inheritance, true, [&](const Guard& guard) { return examine_program(line, guard); });
}

}  // namespace mprun
