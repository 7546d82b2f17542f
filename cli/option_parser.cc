#include "option_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "help.h"
#include "job/layers.h"
#include "run/version.h"

#include "json/json.h"
#include "json/words.h"

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
    FieldOption{"--metrics", "/output/metrics", "FILE", "write figures of the running job here, as OpenMetrics"},
    FieldOption{"--chunk-size", "/chunk_size", "N|auto", "tasks handed out at once"},
    FieldOption{"--order", "/order", "input|completion", "order of the results"},
    FieldOption{"--retries", "/retries", "N", "further attempts of a task that failed, or of all ranks"},
    FieldOption{"--task-timeout", "/limits/task_seconds", "S", "seconds a task may take"},
    FieldOption{"--job-timeout", "/limits/job_seconds", "S", "seconds the job may take"},
    FieldOption{"--join-timeout", "/limits/join_seconds", "S", "seconds a finished worker may take to exit"},
    FieldOption{"--on-error", "/on_error", "continue|stop", "what a failed task means for the others"},
    FieldOption{"--on-hang", "/watch/on_hang", "retry|kill|report", "what to do when nothing can ever move again"},
    FieldOption{"--stall-seconds", "/watch/stall_seconds", "S", "report when nothing has moved for so long"},
    FieldOption{"--hang-report", "/watch/hang_report", "FILE", "write the last hang report here, as JSON"},
    FieldOption{"--threads-per-worker", "/threads_per_worker", "N|auto", "OpenMP, BLAS and torch threads"},
    FieldOption{"--hyperthreads", "/hyperthreads", "on|off", "use all processors of a core, or one"},
    FieldOption{"--binding", "/binding", "auto|none|core|numa|socket", "what each worker is bound to"},
    FieldOption{"--membind", "/membind", "on|off", "memory of a worker's own memory node only"},
    FieldOption{"--interleave", "/interleave", "on|off", "spread what all workers read over memory nodes"},
    FieldOption{"--allocator", "/allocator", "system|jemalloc|tcmalloc|mimalloc", "who allocates memory in workers"},
    FieldOption{"--huge-pages", "/huge_pages", "transparent|hugetlb", "where the pages of shared tensors come from"},
    FieldOption{"--shard", "/shard", "I/N", "run the I-th of N parts of the tasks, below --output DIR"},
    FieldOption{"--balance", "/balance", "static|dynamic", "shards have their tasks from the start, or claim them"},
    FieldOption{"--progress", "/progress", "auto|always|never", "progress on stderr"},
    FieldOption{"--view", "/view", "summary|workers", "progress on a terminal: a line, or one more a worker"},
};

// "-n,--processes": "--processes".
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

// A file of that name (spec, script or program) has precedence over a subcommand; a directory never has.
bool is_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error);
}

// As CLI11 wants it: what is wrong; empty: nothing.
std::string is_pid(const std::string& text) {
  pid_t pid = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, pid);
  return error == std::errc() && stop == end && pid > 0 ? "" : "found " + text + ", allowed: the PID of a process";
}

// Versions of CLI11 lay out their help differently; this is in the form of 2.3.
std::string all_options(const CLI::App& app) {
  constexpr std::size_t kColumn = 30;
  std::string text = "\nOptions:\n";
  for (const CLI::Option* option : app.get_options()) {
    std::string line = "  " + option->get_name(false, true);
    const std::string& value = option->get_option_text();
    if (!value.empty()) line += " " + value;
    if (value.empty() && option->get_type_size() != 0) line += " " + option->get_type_name();
    if (line.size() >= kColumn) line += '\n' + std::string(kColumn, ' ');
    if (line.size() < kColumn) line.resize(kColumn, ' ');
    text += line + option->get_description() + '\n';
  }
  return text;
}

Json number_or_text(const std::string& text) {
  Json value = parse_json(text);
  return value.is_number() ? value : Json(text);
}

// An ARG of SCRIPT.py:FUNCTION: JSON if it is JSON, else the text itself.
Json input_of(const std::string& text) {
  Json value = parse_json(text);
  return value.is_discarded() ? Json(text) : value;
}

// A value as messages may repeat it: variables are often secrets.
std::string shown_value(const std::string& key, const std::string& value) {
  return key == "env" || key.rfind("env.", 0) == 0 ? "***" : value;
}

// The field that a.b.c names, made where it is not there yet; nullptr: something on the way has no members.
Json* field_at(Json* fields, const std::string& key, Json::json_pointer* pointer) {
  Json* field = fields;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    if (pointer->to_string() == "/retries" && field->is_number()) *field = job::retries_object(Json(*field));
    if (field->is_null()) *field = Json::object();
    if (!field->is_object()) return nullptr;
    pointer->push_back(key.substr(begin, end - begin));
    field = &(*field)[pointer->back()];
    begin = end + 1;
  }
  return field;
}

std::optional<EarlyExit> apply_set(const std::string& text, CommandLine* line) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return wrong("--set " + text + ": found no KEY=JSON, for example --set limits.grace_seconds=2");
  }
  const std::string key = text.substr(0, equals);
  const std::string typed = text.substr(equals + 1);
  const std::string shown = "--set " + key + "=" + shown_value(key, typed);
  const Json value = parse_json(typed);
  if (value.is_discarded()) {
    return wrong(shown + ": what follows = is not JSON; a string needs quotes: --set '" + key + "=\"" +
                 shown_value(key, typed) + "\"'");
  }
  Json::json_pointer pointer;
  Json* const field = field_at(&line->layer.value, key, &pointer);
  if (field == nullptr) return wrong(shown + ": " + key + " names no field");
  *field = value;
  line->layer.origins.emplace_back(pointer.to_string(), shown);
  return std::nullopt;
}

bool is_set(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

}  // namespace

OptionParser::OptionParser(const std::string& current_directory) : fields_(kFieldOptions.size()) {
  line.layer.name = "the command line";
  line.layer.base_dir = current_directory;
  stop_at_words(true);
}

void OptionParser::define_options() {
  app_.set_help_flag("-h,--help", "show the most used options and exit");
  app_.set_help_all_flag("--help-all", "show this and exit");
  app_.set_version_flag("--version", "mprun " + version_and_commit(), "show the version and exit");
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    const FieldOption& option = kFieldOptions[i];
    app_.add_option(option.names, fields_[i], option.help)->type_name(option.metavar);
  }
  app_.add_option("--set", sets_, "set any spec field, e.g. limits.grace_seconds=2")
      ->type_name("KEY=JSON")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app_.add_flag("--resume", line.resume, "go on with the run in --output DIR if it was cut short");
  app_.add_flag("--retry-failed", line.retry_failed, "resume: also try failed tasks again");
  app_.add_flag("--accept-changes", line.accept_changes, "resume: though spec, script or inputs have changed");
  app_.add_flag("-q,--quiet", line.quiet, "only warnings, errors and failures");
  app_.add_flag("-v,--verbose", line.verbose, "also every worker's start and end");
  app_.add_flag("--explain", line.explain, "say why each decision was taken");
  app_.add_option("-d,--debug", debug_, "write down what was decided, and why, in RUN_DIR/events.log")
      ->type_name("events");
  app_.add_option("--log-level", line.log_level,
                  "what RUN_DIR/mprun.log has: info, debug, watch=trace,launch=debug, ...")
      ->type_name("LEVEL");
  app_.add_option("--log-format", log_format_, "how it is written")->type_name("text|json");
  app_.add_flag("--summary-json", line.summary_json, "print summary.json on stdout at the end");
  app_.add_flag("--json", line.json, "mprun doctor, mprun inspect: the report as JSON on stdout");
  app_.add_flag("--dot", line.dot, "mprun inspect: who waits for whom, as a graph for Graphviz");
  app_.add_option("--html", line.html, "mprun report: one page with timeline, graphs and all of the report")
      ->type_name("FILE");
  app_.add_option("--trace", line.trace, "mprun report: the timeline, as Perfetto opens it")->type_name("FILE");
  app_.add_option("--junit", line.junit, "a job, mprun report: every task as a test case, for CI systems")
      ->type_name("FILE");
  Submission& submission = line.submission;
  app_.add_option("--nodes", submission.nodes, "mprun submit: nodes of the cluster, each with a shard of the tasks")
      ->type_name("N");
  app_.add_option("--partition", submission.partition, "mprun submit: as sbatch takes it")->type_name("NAME");
  app_.add_option("--time", submission.time, "mprun submit: the time limit, as sbatch takes it")->type_name("LIMIT");
  app_.add_option("--account", submission.account, "mprun submit: as sbatch takes it")->type_name("NAME");
  app_.add_option("--sbatch-option", submission.sbatch_options, "mprun submit: any of sbatch's, e.g. mem=4G")
      ->type_name("OPTION")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app_.add_flag("--wait", wait_, "mprun submit: follow the job, then merge; mprun inspect: S seconds, until it is sure")
      ->option_text("[S]");
  app_.add_flag("--all", line.all, "mprun inspect: every process tree, a line each");
  app_.add_flag("--dry-run", submission.dry_run, "mprun submit: print the batch script, submit nothing");
  app_.add_option("--record", line.record, "mprun inspect: keep all that was read, for a bug report")
      ->type_name("FILE");
}

void OptionParser::define_subcommands() {
  app_.require_subcommand(0, 1);
  for (const SubcommandEntry& entry : kSubcommands) {
    CLI::App* subcommand = app_.add_subcommand(entry.name)->fallthrough()->group("")->disabled(is_file(entry.name));
    if (entry.word == nullptr) continue;
    CLI::Option* word = entry.target != nullptr ? subcommand->add_option(entry.word, line.*entry.target)
                                                : subcommand->add_option(entry.word, line.pids)->check(is_pid);
    word->required(entry.required);
    if (entry.subcommand == Subcommand::kInspect)
      inspect_wait_ = subcommand->add_option("--wait", wait_)->expected(0, 1);
  }
}

// CLI11 wants the arguments reversed.
std::optional<EarlyExit> OptionParser::parse(std::vector<std::string> args) {
  if (inspect_wait_ == nullptr) {  // the first call
    define_options();
    define_subcommands();
  }
  std::reverse(args.begin(), args.end());
  try {
    app_.parse(args);
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{0, short_help()};
  } catch (const CLI::CallForAllHelp&) {
    return EarlyExit{0, full_help(all_options(app_))};
  } catch (const CLI::CallForVersion&) {
    return EarlyExit{0, "mprun " + version_and_commit() + "\n"};
  } catch (const CLI::ParseError& error) {
    const SubcommandEntry* entry = subcommand();
    return wrong((entry != nullptr ? entry->name + std::string(": ") : "") + error.what());
  }
  return std::nullopt;
}

const SubcommandEntry* OptionParser::subcommand() const {
  const auto typed = app_.get_subcommands();
  if (typed.empty()) return nullptr;
  return std::find_if(kSubcommands.begin(), kSubcommands.end(),
                      [&](const SubcommandEntry& it) { return typed.front()->get_name() == it.name; });
}

std::vector<std::string> OptionParser::given() const {
  std::vector<std::string> names;
  if (is_set(inspect_wait_)) names.emplace_back("--wait");
  for (const CLI::Option* option : app_.get_options()) {
    const std::string name = option->get_name();
    const bool sets_field = name == "--set" || std::any_of(kFieldOptions.begin(), kFieldOptions.end(),
                                                           [&](auto& field) { return long_name(field.names) == name; });
    if (option->count() > 0 && !sets_field) names.push_back(name);
  }
  return names;
}

std::optional<EarlyExit> OptionParser::refuse_empty() const {
  for (const CLI::Option* option : app_.get_options()) {
    const auto& texts = option->results();
    if (std::none_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); })) continue;
    return wrong(option->get_name() + ": found \"\", allowed: " + option->get_type_name());
  }
  return std::nullopt;
}

std::optional<EarlyExit> OptionParser::apply() {
  if (auto exit = refuse_empty()) return exit;
  if (!debug_.empty() && debug_ != "events") return wrong("--debug: found " + debug_ + ", allowed: events");
  line.log_events = !debug_.empty();
  if (!line.log_level.empty()) {
    if (const auto set = LogLevels().set(line.log_level); !set) return wrong("--log-level: " + set.error().message);
  }
  if (!log_format_.empty() && log_format_ != "text" && log_format_ != "json") {
    return wrong("--log-format: found " + log_format_ + ", allowed: text, json");
  }
  if (log_format_ == "json") line.log_format = LogFormat::kJson;
  line.wait.given = !wait_.empty() || is_set(inspect_wait_);
  if (line.wait.given && wait_ != "true") line.wait.seconds = duration_seconds(number_or_text(wait_));
  for (std::size_t i = 0; i < kFieldOptions.size(); ++i) {
    if (fields_[i].empty()) continue;
    line.layer.value[Json::json_pointer(kFieldOptions[i].pointer)] = number_or_text(fields_[i]);
    line.layer.origins.emplace_back(kFieldOptions[i].pointer, long_name(kFieldOptions[i].names) + " " + fields_[i]);
  }
  for (const std::string& text : sets_) {
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

EarlyExit wrong(const std::string& message) { return {2, "mprun: " + message + "\n  see mprun --help"}; }

}  // namespace mprun
