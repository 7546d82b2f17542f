#include "subcommands.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "option_parser.h"

namespace mprun {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// REST has one word among options, `what`, in any position; it becomes `*found`.
std::optional<EarlyExit> parse_one_word(const Words& words, const std::string& what, OptionParser* parser,
                                        std::string* found) {
  Words inner = words;
  if (auto exit = step_over_word(what, parser, &inner)) return exit;
  if (inner.word.front() == '-') return wrong("unknown option " + inner.word);
  *found = inner.word;
  inner.options.insert(inner.options.end(), inner.rest.begin(), inner.rest.end());
  if (auto exit = parser->parse(inner.options)) return exit;
  const std::vector<std::string> more = parser->remaining();
  if (!more.empty()) return wrong(words.word + ": found " + more.front() + ", allowed: options and one " + what);
  return parser->apply();
}

std::optional<EarlyExit> parse_doctor(const Words& words, OptionParser* parser) {
  CommandLine& line = parser->line;
  if (auto exit = parser->parse(words.rest)) return exit;  // options may follow the word too
  std::vector<std::string> inner = parser->remaining();
  std::vector<std::string> options = words.options;
  options.insert(options.end(), words.rest.begin(), words.rest.end() - static_cast<std::ptrdiff_t>(inner.size()));
  if (auto exit = parser->parse(options)) return exit;
  if (auto exit = parser->apply()) return exit;
  if (inner.empty()) {
    if (!words.program) return std::nullopt;
    line.program = *words.program;
    return line.program.empty() ? std::optional(wrong("no COMMAND after --")) : std::nullopt;
  }
  const std::string target = inner.front();
  if (target.front() == '-') return wrong("unknown option " + target);
  if (!ends_with(target, ".py")) {
    return wrong("doctor: found " + target + ", allowed: nothing, a SCRIPT.py, or -- COMMAND [ARGS...]");
  }
  inner.erase(inner.begin());
  if (words.program) {
    inner.emplace_back("--");
    inner.insert(inner.end(), words.program->begin(), words.program->end());
  }
  apply_script(target, inner, &line);
  return std::nullopt;
}

// Nothing but options on both sides of the word.
std::optional<EarlyExit> parse_all(const Words& words, OptionParser* parser) {
  std::vector<std::string> options = words.options;
  options.insert(options.end(), words.rest.begin(), words.rest.end());
  return parser->parse(options);
}

std::optional<EarlyExit> parse_explain(const Words& words, OptionParser* parser) {
  if (auto exit = parser->parse(words.rest)) return exit;
  if (!parser->remaining().empty()) return parse_one_word(words, "ID", parser, &parser->line.cause);
  if (auto exit = parse_all(words, parser)) return exit;
  return parser->apply();
}

std::optional<EarlyExit> parse_init(const Words& words, OptionParser* parser) {
  return parse_one_word(words, "SCRIPT.py", parser, &parser->line.script);
}

// A PID with a sign is not an option.
std::optional<EarlyExit> parse_pid(const std::string& command, const std::string& word, std::vector<pid_t>* pids) {
  const bool is_option = word.size() > 1 && word.front() == '-' && word.find_first_of("0123456789") != 1;
  if (is_option) return wrong("unknown option " + word);
  pid_t pid = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, pid);
  if (error != std::errc() || stop != end || pid <= 0) {
    return wrong(command + ": found " + word + ", allowed: the PID of a process");
  }
  if (std::find(pids->begin(), pids->end(), pid) == pids->end()) pids->push_back(pid);
  return std::nullopt;
}

// --wait 5 becomes --wait=5: to the parser, it is a flag with a value.
void join_seconds_of_wait(std::vector<std::string>* args) {
  for (std::size_t i = 0; i + 1 < args->size(); ++i) {
    if ((*args)[i] != "--wait" || !is_digit((*args)[i + 1].front())) continue;
    (*args)[i] += "=" + (*args)[i + 1];
    args->erase(args->begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

std::optional<EarlyExit> check_inspect(const CommandLine& line) {
  if (line.json && line.dot) return wrong("inspect: --json and --dot do not go together");
  if (line.all && line.dot) return wrong("inspect: --all and --dot do not go together");
  if (line.all && !line.record.empty()) return wrong("inspect: --all and --record do not go together");
  if (line.wait.given && !line.wait.seconds) return wrong("inspect: --wait needs seconds, for example --wait 5");
  return std::nullopt;
}

// Options may stand on all sides.
std::optional<EarlyExit> parse_inspect(const Words& given, OptionParser* parser) {
  CommandLine& line = parser->line;
  Words words = given;
  join_seconds_of_wait(&words.rest);
  if (auto exit = parser->parse(words.rest)) return exit;
  const std::vector<std::string> inner = parser->remaining();
  if (inner.empty()) {
    if (auto exit = parse_all(words, parser)) return exit;
    if (auto exit = parser->apply()) return exit;
    return line.all ? check_inspect(line) : wrong("inspect: name the PID of a process, or give --all");
  }
  const std::string& target = inner.front();
  const auto word_at = words.rest.end() - static_cast<std::ptrdiff_t>(inner.size());
  std::vector<std::string> options = words.options;
  options.insert(options.end(), words.rest.begin(), word_at);
  options.insert(options.end(), word_at + 1, words.rest.end());
  if (auto exit = parse_pid("inspect", target, &line.pids)) return exit;
  if (auto exit = parser->parse(options)) return exit;
  const std::vector<std::string> more = parser->remaining();
  if (!more.empty() && more.front().front() == '-') return wrong("unknown option " + more.front());
  if (!more.empty()) return wrong("inspect: found " + more.front() + " after the PID, allowed: options");
  if (auto exit = parser->apply()) return exit;
  return line.all ? wrong("inspect: found " + target + ", allowed with --all: options") : check_inspect(line);
}

std::optional<EarlyExit> parse_watch(const Words& words, OptionParser* parser) {
  std::vector<std::string> options = words.options;
  std::vector<std::string> rest = words.rest;
  while (!rest.empty()) {
    if (auto exit = parser->parse(rest)) return exit;
    const std::vector<std::string> inner = parser->remaining();
    const auto word_at = rest.end() - static_cast<std::ptrdiff_t>(inner.size());
    options.insert(options.end(), rest.begin(), word_at);
    if (inner.empty()) break;
    if (auto exit = parse_pid("watch", inner.front(), &parser->line.pids)) return exit;
    rest.assign(inner.begin() + 1, inner.end());
  }
  if (parser->line.pids.empty()) return wrong("watch: name the PID of a process, or of several");
  if (auto exit = parser->parse(options)) return exit;
  return parser->apply();
}

std::optional<EarlyExit> parse_run_dir(const Words& words, OptionParser* parser) {
  return parse_one_word(words, "RUN_DIR", parser, &parser->line.run_dir);
}

std::optional<EarlyExit> parse_submit(const Words& words, OptionParser* parser) {
  CommandLine& line = parser->line;
  if (auto exit = parse_one_word(words, "JOB.json", parser, &line.spec_path)) return exit;
  if (line.wait.seconds) return wrong("submit: --wait takes no seconds; only `mprun inspect` does");
  if (line.spec_path == "-" || !is_spec(line.spec_path)) {
    return wrong("submit: found " + line.spec_path + ", allowed: a JOB.json, which all nodes can read");
  }
  if (line.submission.nodes < 1 || line.submission.nodes > 100'000) {
    return wrong("submit: say how many nodes it shall have, from 1 to 100000: --nodes N");
  }
  for (std::string& option : line.submission.sbatch_options) {
    if (option.empty() || option.find('\n') != std::string::npos) return wrong("--sbatch-option: found no option");
    if (option.front() != '-') option.insert(0, "--");
  }
  return std::nullopt;
}

struct Entry {
  const char* word;
  Subcommand subcommand;
  std::optional<EarlyExit> (*parse)(const Words&, OptionParser*);
  const char* instead_of_program;  ///< what the subcommand takes; null: a program after --, too
};

constexpr std::array kEntries = {
    Entry{"doctor", Subcommand::kDoctor, parse_doctor, nullptr},
    Entry{"explain", Subcommand::kExplain, parse_explain, "the ID of a cause"},
    Entry{"init", Subcommand::kInit, parse_init, "a SCRIPT.py"},
    Entry{"inspect", Subcommand::kInspect, parse_inspect, "the PID of a process"},
    Entry{"merge", Subcommand::kMerge, parse_run_dir, "a RUN_DIR"},
    Entry{"report", Subcommand::kReport, parse_run_dir, "a RUN_DIR"},
    Entry{"resume", Subcommand::kResume, parse_run_dir, "a RUN_DIR"},
    Entry{"submit", Subcommand::kSubmit, parse_submit, "a JOB.json"},
    Entry{"watch", Subcommand::kWatch, parse_watch, "the PIDs of processes"},
};

const Entry* find(const std::string& word) {
  const auto* entry = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& it) { return word == it.word; });
  return entry != kEntries.end() ? entry : nullptr;
}

}  // namespace

bool is_subcommand(const std::string& word) { return find(word) != nullptr; }

std::optional<EarlyExit> parse_subcommand(const Words& words, OptionParser* parser) {
  const Entry& entry = *find(words.word);
  if (entry.instead_of_program != nullptr && words.program) {
    return wrong(words.word + ": found --, allowed: " + entry.instead_of_program);
  }
  parser->line.subcommand = entry.subcommand;
  parser->line.continues_run = entry.subcommand == Subcommand::kResume;
  return entry.parse(words, parser);
}

bool is_spec(const std::string& target) { return target == "-" || ends_with(target, ".json"); }

std::optional<EarlyExit> step_over_word(const std::string& what, OptionParser* parser, Words* words) {
  if (auto exit = parser->parse(words->rest)) return exit;
  const std::vector<std::string> inner = parser->remaining();
  if (inner.empty()) return wrong("`mprun " + words->word + "` needs a " + what);
  const auto word_at = words->rest.end() - static_cast<std::ptrdiff_t>(inner.size());
  words->options.insert(words->options.end(), words->rest.begin(), word_at);
  words->word = inner.front();
  words->rest.assign(inner.begin() + 1, inner.end());
  return std::nullopt;
}

}  // namespace mprun
