#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "help.h"
#include "version.h"

namespace mprun {
namespace {

// An option that sets one spec field; its text becomes JSON: a number where it is one, else a string.
struct FieldOption {
  const char* names;
  const char* pointer;
  const char* metavar;
  const char* help;
};

constexpr std::array kFieldOptions = {
    FieldOption{"-n,--processes", "/processes", "N|auto", "workers, or ranks"},
    FieldOption{"--start-method", "/start_method", "fork|spawn|forkserver", "how Python workers start"},
    FieldOption{"--device", "/device", "cpu|cuda|cuda:N|ascend", "what workers compute on"},
    FieldOption{"--python", "/python", "EXE", "the interpreter (default: the active venv, else python3)"},
    FieldOption{"--output", "/output/dir", "DIR", "the run directory (default: runs/JOB/TIME)"},
    FieldOption{"--results", "/output/results", "FILE|-", "also write results here, - for stdout, in --order"},
    FieldOption{"--chunk-size", "/chunk_size", "N|auto", "tasks handed out at once"},
    FieldOption{"--order", "/order", "input|completion", "order of the results"},
    FieldOption{"--retries", "/retries", "N", "further attempts of a task that failed"},
    FieldOption{"--task-timeout", "/limits/task_seconds", "S", "seconds a task may take"},
    FieldOption{"--job-timeout", "/limits/job_seconds", "S", "seconds the job may take"},
    FieldOption{"--join-timeout", "/limits/join_seconds", "S", "seconds a finished worker may take to exit"},
    FieldOption{"--on-error", "/on_error", "continue|stop", "what a failed task means for the others"},
    FieldOption{"--on-hang", "/watch/on_hang", "retry|kill|report", "what to do when nothing can ever move again"},
    FieldOption{"--stall-seconds", "/watch/stall_seconds", "S", "tell when nothing has moved for so long"},
    FieldOption{"--hang-report", "/watch/hang_report", "FILE", "write the last hang report here, as JSON"},
    FieldOption{"--threads-per-worker", "/threads_per_worker", "N|auto", "OpenMP, BLAS and torch threads"},
    FieldOption{"--shard", "/shard", "I/N", "run the I-th of N parts of the tasks, below --output DIR"},
    FieldOption{"--balance", "/balance", "static|dynamic", "shards have their tasks from the start, or claim them"},
    FieldOption{"--progress", "/progress", "auto|always|never", "progress on stderr"},
    FieldOption{"--view", "/view", "summary|workers", "progress on a terminal: a line, or one more a worker"},
};

// Everything CLI11 fills in.
struct Raw {
  std::array<std::string, kFieldOptions.size()> fields;
  std::vector<std::string> sets;
  std::string debug;
  CommandLine line;
};

void define(CLI::App* app, Raw* raw) {
  app->set_help_flag("-h,--help", "show what people need first and exit");
  app->set_help_all_flag("--help-all", "show this and exit");
  app->set_version_flag("--version", "mprun " + version_and_commit(), "show the version and exit");
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    const FieldOption& option = kFieldOptions[i];
    app->add_option(option.names, raw->fields[i], option.help)->type_name(option.metavar);
  }
  app->add_option("--set", raw->sets, "set any spec field, e.g. limits.grace_seconds=2")
      ->type_name("KEY=JSON")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app->add_flag("--resume", raw->line.resume, "go on with the run in --output DIR if it was cut short");
  app->add_flag("--retry-failed", raw->line.retry_failed, "resume: also try failed tasks again");
  app->add_flag("--accept-changes", raw->line.accept_changes, "resume: though spec, script or inputs have changed");
  app->add_flag("-q,--quiet", raw->line.quiet, "only warnings, errors and failures");
  app->add_flag("-v,--verbose", raw->line.verbose, "also every worker's start and end");
  app->add_flag("--explain", raw->line.explain, "say why each decision was taken");
  app->add_option("-d,--debug", raw->debug, "write down what was decided, and why, in RUN_DIR/events.log")
      ->type_name("events");
  app->add_flag("--summary-json", raw->line.summary_json, "print summary.json on stdout at the end");
  app->add_flag("--json", raw->line.json, "mprun doctor, mprun inspect: the report as JSON on stdout");
  app->add_flag("--dot", raw->line.dot, "mprun inspect: who waits for whom, as a graph for Graphviz");
  app->add_option("--html", raw->line.html, "mprun report: one page with timeline, graphs and all that is told")
      ->type_name("FILE");
  app->add_option("--trace", raw->line.trace, "mprun report: the timeline, as Perfetto opens it")->type_name("FILE");
  app->add_option("--junit", raw->line.junit, "a job, mprun report: every task as a test case, for CI systems")
      ->type_name("FILE");
  Submission& submission = raw->line.submission;
  app->add_option("--nodes", submission.nodes, "mprun submit: nodes of the cluster, each with a shard of the tasks")
      ->type_name("N");
  app->add_option("--partition", submission.partition, "mprun submit: as sbatch takes it")->type_name("NAME");
  app->add_option("--time", submission.time, "mprun submit: the time limit, as sbatch takes it")->type_name("LIMIT");
  app->add_option("--account", submission.account, "mprun submit: as sbatch takes it")->type_name("NAME");
  app->add_option("--sbatch-option", submission.sbatch_options, "mprun submit: any of sbatch's, e.g. mem=4G")
      ->type_name("OPTION")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app->add_flag("--wait", submission.wait, "mprun submit: follow the job, then merge; the exit code is the run's");
  app->add_flag("--dry-run", submission.dry_run, "mprun submit: print the batch script, submit nothing");
  app->add_option("--record", raw->line.record, "mprun inspect: keep all that was read, for a bug report")
      ->type_name("FILE");
}

EarlyExit wrong(const std::string& message) { return {2, "mprun: " + message + "\n  see mprun --help"}; }

// CLI11's help without its usage line.
std::string all_options(const CLI::App& app) {
  const std::string text = app.help("", CLI::AppFormatMode::All);
  const auto blank = text.find("\nOptions:");
  return blank == std::string::npos ? "" : text.substr(blank);
}

// CLI11 wants the arguments reversed. Empty: parsed; else the exit that follows.
std::optional<EarlyExit> parse(CLI::App* app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());
  try {
    app->parse(args);
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{0, short_help()};
  } catch (const CLI::CallForAllHelp&) {
    return EarlyExit{0, full_help(all_options(*app))};
  } catch (const CLI::CallForVersion&) {
    return EarlyExit{0, "mprun " + version_and_commit() + "\n"};
  } catch (const CLI::ParseError& error) {
    return wrong(error.what());
  }
  return std::nullopt;
}

bool is_spec(const std::string& target) {
  return target == "-" || (target.size() > 5 && target.compare(target.size() - 5, 5, ".json") == 0);
}

Json number_or_text(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_number() ? value : Json(text);
}

// An ARG of SCRIPT.py:FUNCTION: JSON if it is JSON, else the text itself.
Json input_of(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

// A file of that name, spec, script or program, is meant before a subcommand; a directory never.
bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error);
}

// A value as messages may repeat it: variables are often secrets.
std::string shown_value(const std::string& key, const std::string& value) {
  return key == "env" || key.rfind("env.", 0) == 0 ? "***" : value;
}

std::optional<EarlyExit> apply_set(const std::string& text, CommandLine* line) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return wrong("--set " + text + ": found no KEY=JSON, for example --set limits.grace_seconds=2");
  }
  const std::string key = text.substr(0, equals);
  const std::string typed = text.substr(equals + 1);
  const std::string shown = "--set " + key + "=" + shown_value(key, typed);
  std::string pointer = "/" + key;
  std::replace(pointer.begin() + 1, pointer.end(), '.', '/');
  const Json value = Json::parse(typed, nullptr, false);
  if (value.is_discarded()) {
    return wrong(shown + ": what follows = is not JSON; a string needs quotes: --set '" + key + "=\"" +
                 shown_value(key, typed) + "\"'");
  }
  try {
    line->layer.value[Json::json_pointer(pointer)] = value;
  } catch (const Json::exception&) {
    return wrong(shown + ": " + key + " names no field");
  }
  line->layer.origins.emplace_back(pointer, shown);
  return std::nullopt;
}

std::optional<EarlyExit> apply_options(Raw* raw) {
  CommandLine& line = raw->line;
  if (!raw->debug.empty() && raw->debug != "events") return wrong("--debug: found " + raw->debug + ", allowed: events");
  line.log_events = !raw->debug.empty();
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    if (raw->fields[i].empty()) continue;
    const std::string names = kFieldOptions[i].names;
    const std::string name = names.substr(names.rfind(',') + 1);
    line.layer.value[Json::json_pointer(kFieldOptions[i].pointer)] = number_or_text(raw->fields[i]);
    line.layer.origins.emplace_back(kFieldOptions[i].pointer, name + " " + raw->fields[i]);
  }
  for (const std::string& text : raw->sets) {
    if (auto exit = apply_set(text, &line)) return exit;
  }
  return std::nullopt;
}

void apply_script(const std::string& target, const std::vector<std::string>& args, CommandLine* line) {
  line->layer.value["script"] = target;
  line->layer.origins.emplace_back("/script", target);
  const bool has_function = target.find(".py:") != std::string::npos || line->layer.value.contains("function");
  if (args.empty()) return;
  if (has_function && !line->layer.value.contains("inputs")) {
    for (const std::string& arg : args) line->layer.value["inputs"]["items"].push_back(input_of(arg));
  } else {
    line->layer.value["args"] = args;
  }
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// `mprun OPTIONS doctor REST`, as it was split at --: `program` is what stood behind it, null if there was none.
std::optional<EarlyExit> parse_doctor(CLI::App* app, std::vector<std::string> options, std::vector<std::string> rest,
                                      const std::vector<std::string>* program, Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = Subcommand::kDoctor;
  if (auto exit = parse(app, rest)) return exit;  // options may stand behind the word too
  std::vector<std::string> words = app->remaining();
  options.insert(options.end(), rest.begin(), rest.end() - static_cast<std::ptrdiff_t>(words.size()));
  if (auto exit = parse(app, options)) return exit;
  if (auto exit = apply_options(raw)) return exit;
  if (words.empty()) {
    if (program == nullptr) return std::nullopt;
    line.program = *program;
    return line.program.empty() ? std::optional(wrong("no COMMAND behind --")) : std::nullopt;
  }
  const std::string target = words.front();
  if (target.front() == '-') return wrong("unknown option " + target);
  if (!ends_with(target, ".py")) {
    return wrong("doctor: found " + target + ", allowed: nothing, a SCRIPT.py, or -- COMMAND [ARGS...]");
  }
  words.erase(words.begin());
  if (program != nullptr) {
    words.emplace_back("--");
    words.insert(words.end(), program->begin(), program->end());
  }
  apply_script(target, words, &line);
  return std::nullopt;
}

// `mprun OPTIONS inspect REST`: options may stand on all sides.
std::optional<EarlyExit> parse_inspect(CLI::App* app, std::vector<std::string> options,
                                       const std::vector<std::string>& rest, Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = Subcommand::kInspect;
  if (auto exit = parse(app, rest)) return exit;
  const std::vector<std::string> words = app->remaining();
  if (words.empty()) return wrong("inspect: name the PID of a process");
  const std::string& target = words.front();
  const auto behind = rest.end() - static_cast<std::ptrdiff_t>(words.size());
  options.insert(options.end(), rest.begin(), behind);
  options.insert(options.end(), behind + 1, rest.end());
  const bool is_option = target.size() > 1 && target.front() == '-' && target.find_first_of("0123456789") != 1;
  if (is_option) return wrong("unknown option " + target);
  const char* end = target.data() + target.size();
  const auto [stop, error] = std::from_chars(target.data(), end, line.pid);
  if (error != std::errc() || stop != end || line.pid <= 0) {
    return wrong("inspect: found " + target + ", allowed: the PID of a process");
  }
  if (auto exit = parse(app, options)) return exit;
  const std::vector<std::string> more = app->remaining();
  if (!more.empty() && more.front().front() == '-') return wrong("unknown option " + more.front());
  if (!more.empty()) return wrong("inspect: found " + more.front() + " behind the PID, allowed: options");
  if (auto exit = apply_options(raw)) return exit;
  if (!line.layer.origins.empty()) {
    return wrong("inspect: " + line.layer.origins.front().second + " has no meaning here");
  }
  return line.json && line.dot ? std::optional(wrong("inspect: --json and --dot do not go together")) : std::nullopt;
}

// `mprun OPTIONS run REST`: `target` becomes what is run. Options may stand before it too.
std::optional<EarlyExit> step_over_word(CLI::App* app, std::string* target, std::vector<std::string>* options,
                                        std::vector<std::string>* rest, const std::string& needed = "JOB.json") {
  if (auto exit = parse(app, *rest)) return exit;
  const std::vector<std::string> inner = app->remaining();
  if (inner.empty()) return wrong("`mprun " + *target + "` needs a " + needed);
  options->insert(options->end(), rest->begin(), rest->end() - static_cast<std::ptrdiff_t>(inner.size()));
  *target = inner.front();
  rest->assign(inner.begin() + 1, inner.end());
  return std::nullopt;
}

// `mprun OPTIONS WORD REST`, where REST has one word beside options, `what`, on any side of it; it becomes `*found`.
std::optional<EarlyExit> parse_one_word(CLI::App* app, const std::string& word, const std::string& what,
                                        std::vector<std::string> options, std::vector<std::string> rest, Raw* raw,
                                        std::string* found) {
  std::string target = word;
  if (auto exit = step_over_word(app, &target, &options, &rest, what)) return exit;
  if (target.front() == '-') return wrong("unknown option " + target);
  *found = target;
  options.insert(options.end(), rest.begin(), rest.end());
  if (auto exit = parse(app, options)) return exit;
  const std::vector<std::string> more = app->remaining();
  if (!more.empty()) return wrong(word + ": found " + more.front() + ", allowed: options and one " + what);
  return apply_options(raw);
}

std::optional<EarlyExit> parse_init(CLI::App* app, const std::vector<std::string>& options,
                                    const std::vector<std::string>& rest, Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = Subcommand::kInit;
  if (auto exit = parse_one_word(app, "init", "SCRIPT.py", options, rest, raw, &line.script)) return exit;
  for (const auto& [pointer, origin] : line.layer.origins) {
    if (pointer != "/python") return wrong("init: " + origin + " has no meaning here; write it into the spec");
  }
  return std::nullopt;
}

// `mprun report` and `mprun merge`, which read a run and take no field of a spec.
std::optional<EarlyExit> parse_run_dir(CLI::App* app, const std::string& word, Subcommand subcommand,
                                       const std::vector<std::string>& options, const std::vector<std::string>& rest,
                                       Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = subcommand;
  if (auto exit = parse_one_word(app, word, "RUN_DIR", options, rest, raw, &line.run_dir)) return exit;
  if (line.layer.origins.empty()) return std::nullopt;
  return wrong(word + ": " + line.layer.origins.front().second + " has no meaning here");
}

std::optional<EarlyExit> parse_submit(CLI::App* app, const std::vector<std::string>& options,
                                      const std::vector<std::string>& rest, Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = Subcommand::kSubmit;
  if (auto exit = parse_one_word(app, "submit", "JOB.json", options, rest, raw, &line.spec_path)) return exit;
  if (line.spec_path == "-" || !is_spec(line.spec_path)) {
    return wrong("submit: found " + line.spec_path + ", allowed: a JOB.json, which all nodes can read");
  }
  if (line.submission.nodes < 1 || line.submission.nodes > 100'000) {
    return wrong("submit: say how many nodes it shall have, from 1 to 100000: --nodes N");
  }
  if (line.layer.value.contains("shard")) return wrong("submit: --shard has no meaning here: each node has one");
  for (std::string& option : line.submission.sbatch_options) {
    if (option.empty() || option.find('\n') != std::string::npos) return wrong("--sbatch-option: found no option");
    if (option.front() != '-') option.insert(0, "--");
  }
  return std::nullopt;
}

std::optional<EarlyExit> parse_resume(CLI::App* app, const std::vector<std::string>& options,
                                      const std::vector<std::string>& rest, Raw* raw) {
  CommandLine& line = raw->line;
  line.subcommand = Subcommand::kResume;
  if (auto exit = parse_one_word(app, "resume", "RUN_DIR", options, rest, raw, &line.run_dir)) return exit;
  const Json* output = line.layer.value.contains("output") ? &line.layer.value["output"] : nullptr;
  if (output != nullptr && output->is_object() && output->contains("dir")) {
    return wrong("resume: --output has no meaning here: the run directory is named by itself");
  }
  return std::nullopt;
}

ParsedCommandLine parse_words(const std::vector<std::string>& args, const std::string& current_directory) {
  Raw raw;
  CommandLine& line = raw.line;
  line.layer.name = "the command line";
  line.layer.base_dir = current_directory;
  CLI::App app("mprun");
  define(&app, &raw);

  // What stands behind -- is a program's; what stands behind a script is the script's.
  const auto dashes = std::find(args.begin(), args.end(), "--");
  std::vector<std::string> own(args.begin(), dashes);
  app.prefix_command();
  if (auto exit = parse(&app, own)) return *exit;
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && rest.front().size() > 1 && rest.front().front() == '-') {
    return wrong("unknown option " + rest.front());
  }
  const auto is_word = [&rest](const char* word) { return !rest.empty() && rest.front() == word && !is_file(word); };
  const bool is_doctor = is_word("doctor");
  const bool is_inspect = is_word("inspect");
  const bool is_resume = is_word("resume");
  const bool is_report = is_word("report");
  const bool is_submit = is_word("submit");
  const bool is_merge = is_word("merge");
  const bool is_init = is_word("init");
  if (rest.empty()) {
    if (dashes == args.end()) return wrong("nothing to run: name a JOB.json, a SCRIPT.py or -- COMMAND");
    line.subcommand = Subcommand::kProgram;
    line.program.assign(dashes + 1, args.end());
    if (line.program.empty()) return wrong("no COMMAND behind --");
    if (auto exit = apply_options(&raw)) return *exit;
    return line;
  }
  own.resize(own.size() - rest.size());
  std::string target = rest.front();
  rest.erase(rest.begin());
  if (is_inspect) {
    if (dashes != args.end()) return wrong("inspect: found --, allowed: the PID of a process");
    if (auto exit = parse_inspect(&app, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_resume) {
    if (dashes != args.end()) return wrong("resume: found --, allowed: a RUN_DIR");
    if (auto exit = parse_resume(&app, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_init) {
    if (dashes != args.end()) return wrong("init: found --, allowed: a SCRIPT.py");
    if (auto exit = parse_init(&app, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_report) {
    if (dashes != args.end()) return wrong("report: found --, allowed: a RUN_DIR");
    if (auto exit = parse_run_dir(&app, "report", Subcommand::kReport, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_submit) {
    if (dashes != args.end()) return wrong("submit: found --, allowed: a JOB.json");
    if (auto exit = parse_submit(&app, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_merge) {
    if (dashes != args.end()) return wrong("merge: found --, allowed: a RUN_DIR");
    if (auto exit = parse_run_dir(&app, "merge", Subcommand::kMerge, own, rest, &raw)) return *exit;
    return line;
  }
  if (is_doctor) {
    const std::vector<std::string> program(dashes == args.end() ? dashes : dashes + 1, args.end());
    const bool has_dashes = dashes != args.end();
    if (auto exit = parse_doctor(&app, own, rest, has_dashes ? &program : nullptr, &raw)) return *exit;
    return line;
  }
  if ((target == "run" || target == "check") && !is_file(target)) {
    if (target == "check") line.subcommand = Subcommand::kCheck;
    if (auto exit = step_over_word(&app, &target, &own, &rest)) return *exit;
  }
  if (is_spec(target)) {
    line.spec_path = target;
    own.insert(own.end(), rest.begin(), rest.end());
    app.prefix_command(false);
    if (auto exit = parse(&app, own)) return *exit;
    if (dashes != args.end()) return wrong("a COMMAND behind -- and a job spec do not go together");
    if (auto exit = apply_options(&raw)) return *exit;
    return line;
  }
  if (auto exit = parse(&app, own)) return *exit;
  if (auto exit = apply_options(&raw)) return *exit;
  if (dashes != args.end()) rest.insert(rest.end(), dashes, args.end());
  apply_script(target, rest, &line);
  return line;
}

}  // namespace

ParsedCommandLine parse_command_line(const std::vector<std::string>& args, const std::string& current_directory) {
  auto parsed = parse_words(args, current_directory);
  const auto* line = std::get_if<CommandLine>(&parsed);
  if (line == nullptr || line->subcommand == Subcommand::kInspect) return parsed;
  if (line->json && line->subcommand != Subcommand::kDoctor) {
    return wrong("--json has a meaning for mprun doctor and mprun inspect only");
  }
  const bool resumes =
      line->subcommand == Subcommand::kResume || line->subcommand == Subcommand::kSubmit || line->resume;
  if (line->resume && line->subcommand != Subcommand::kRun) return wrong("--resume has a meaning for a job only");
  if (line->retry_failed && !resumes) return wrong("--retry-failed has a meaning for a run that is resumed only");
  if (line->accept_changes && !resumes) return wrong("--accept-changes has a meaning for a run that is resumed only");
  if (line->dot) return wrong("--dot has a meaning for mprun inspect only");
  const bool is_job = line->subcommand == Subcommand::kRun || line->subcommand == Subcommand::kResume;
  if (!line->junit.empty() && !is_job && line->subcommand != Subcommand::kReport) {
    return wrong("--junit has a meaning for a job and for mprun report only");
  }
  if (line->subcommand != Subcommand::kReport) {
    for (const auto& [name, file] : {std::pair{"--html", &line->html}, {"--trace", &line->trace}}) {
      if (!file->empty()) return wrong(std::string(name) + " has a meaning for mprun report only");
    }
  }
  const Submission& submission = line->submission;
  if (line->subcommand != Subcommand::kSubmit &&
      (submission.nodes != 0 || submission.wait || submission.dry_run || !submission.partition.empty() ||
       !submission.time.empty() || !submission.account.empty() || !submission.sbatch_options.empty())) {
    return wrong(
        "--nodes, --partition, --time, --account, --sbatch-option, --wait and --dry-run have a meaning for "
        "mprun submit only");
  }
  if (!line->record.empty()) return wrong("--record has a meaning for mprun inspect only");
  return parsed;
}

}  // namespace mprun
