#include "supervise/event_log.h"

#include <fcntl.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace mprun {
namespace {

// --- the fields of each type, listed once for both directions ---

template <typename V>
void fields(V& v, Policy& p) {
  v("workers", p.workers);
  v("process_per_task", p.process_per_task);
  v("ranks", p.ranks);
  v("chunk_size", p.chunk_size);
  v("retries_on_error", p.retries_on_error);
  v("retries_on_death", p.retries_on_death);
  v("retries_on_hang", p.retries_on_hang);
  v("retry_delay", p.retry_delay);
  v("retry_backoff", p.retry_backoff);
  v("retry_max_delay", p.retry_max_delay);
  v("stop_on_error", p.stop_on_error);
  v("max_failures", p.max_failures);
  v("task_limit", p.task_limit);
  v("job_limit", p.job_limit);
  v("join_limit", p.join_limit);
  v("grace", p.grace);
  v("tasks_per_worker", p.tasks_per_worker);
  v("total", p.total);
  v("earlier_read", p.earlier.read);
  v("earlier_ok", p.earlier.ok);
  v("earlier_failed", p.earlier.failed);
  v("earlier_cancelled", p.earlier.cancelled);
  v("earlier_retried", p.earlier.retried);
  v("shares_inputs", p.shares_inputs);
  v("has_leader", p.has_leader);
}

template <typename V>
void fields(V& /*v*/, event::Begin& /*e*/) {}
template <typename V>
void fields(V& v, event::InputsRead& e) {
  v("count", e.count);
  v("ended", e.ended);
  v("first", e.first);
}
template <typename V>
void fields(V& v, event::WorkerReady& e) {
  v("slot", e.slot);
}
template <typename V>
void fields(V& v, event::TaskDone& e) {
  v("slot", e.slot);
  v("failed", e.failed);
  v("duration", e.duration);
  v("from_outside", e.from_outside);
  v("died", e.died);
}
template <typename V>
void fields(V& v, event::WorkerGone& e) {
  v("slot", e.slot);
  v("started", e.started);
  v("from_outside", e.from_outside);
}
template <typename V>
void fields(V& /*v*/, event::StartFailed& /*e*/) {}
template <typename V>
void fields(V& v, event::TakenBack& e) {
  v("slot", e.slot);
  v("count", e.count);
}
template <typename V>
void fields(V& /*v*/, event::Interrupt& /*e*/) {}
template <typename V>
void fields(V& v, event::WorkerHung& e) {
  v("slot", e.slot);
}
template <typename V>
void fields(V& v, event::WorkerTooLarge& e) {
  v("slot", e.slot);
}
template <typename V>
void fields(V& /*v*/, event::JobHung& /*e*/) {}
template <typename V>
void fields(V& v, event::Resumed& e) {
  v("stopped_for", e.stopped_for);
}
template <typename V>
void fields(V& v, event::GroupDecided& e) {
  v("phase", e.phase);
  v("attempt", e.attempt);
}
template <typename V>
void fields(V& /*v*/, event::Tick& /*e*/) {}

template <typename V>
void fields(V& v, action::ReadInputs& a) {
  v("count", a.count);
}
template <typename V>
void fields(V& v, action::StartWorker& a) {
  v("slot", a.slot);
}
template <typename V>
void fields(V& v, action::Assign& a) {
  v("slot", a.slot);
  v("tasks", a.tasks);
}
template <typename V>
void fields(V& v, action::TakeBack& a) {
  v("slot", a.slot);
}
template <typename V>
void fields(V& v, action::Retire& a) {
  v("slot", a.slot);
}
template <typename V>
void fields(V& v, action::Signal& a) {
  v("slot", a.slot);
  v("signal", a.signal);
  v("cause", a.cause);
}
template <typename V>
void fields(V& v, action::EndTask& a) {
  v("slot", a.slot);
  v("task", a.task);
  v("status", a.status);
  v("cause", a.cause);
  v("running", a.running);
  v("alone", a.alone);
}
template <typename V>
void fields(V& v, action::HoldResult& a) {
  v("slot", a.slot);
  v("task", a.task);
}
template <typename V>
void fields(V& v, action::RetryTask& a) {
  v("slot", a.slot);
  v("task", a.task);
  v("cause", a.cause);
  v("alone", a.alone);
  v("running", a.running);
}

// In the order of the variants and enumerations.
constexpr std::array<std::string_view, std::variant_size_v<Event>> kEvents = {
    "Begin",     "InputsRead", "WorkerReady",    "TaskDone", "WorkerGone", "StartFailed",  "TakenBack",
    "Interrupt", "WorkerHung", "WorkerTooLarge", "JobHung",  "Resumed",    "GroupDecided", "Tick"};
constexpr std::array<std::string_view, std::variant_size_v<Action>> kActions = {
    "ReadInputs", "StartWorker", "Assign", "TakeBack", "Retire", "Signal", "EndTask", "HoldResult", "RetryTask"};
constexpr std::array<std::string_view, 10> kCauses = {"none",        "death",      "task_limit",  "job_limit",
                                                      "interrupted", "error_stop", "rank_failed", "join_limit",
                                                      "hang",        "memory"};
constexpr std::array<std::string_view, 3> kStatuses = {"ok", "failed", "cancelled"};

// --- values ---

template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
void put(std::string* out, T value) {
  *out += std::to_string(value);
}
void put(std::string* out, double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.17g", value);  // GCC 10 has no std::to_chars for it
  *out += digits.data();
}
void put(std::string* out, bool value) { *out += value ? '1' : '0'; }
void put(std::string* out, Cause value) { *out += kCauses[static_cast<std::size_t>(value)]; }
void put(std::string* out, TaskStatus value) { *out += kStatuses[static_cast<std::size_t>(value)]; }
void put(std::string* out, GroupPhase value) { *out += kGroupPhases[static_cast<std::size_t>(value)]; }
void put(std::string* out, const TaskAttempt& value) {
  *out += std::to_string(value.task) + ":" + std::to_string(value.attempt);
}
void put(std::string* out, const std::vector<TaskAttempt>& value) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) *out += ',';
    put(out, value[i]);
  }
}
template <typename T>
void put(std::string* out, const std::optional<T>& value) {
  if (value) {
    put(out, *value);
  } else {
    *out += '-';
  }
}

template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
bool get(std::string_view text, T* value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size();
}
bool get(std::string_view text, double* value) {
  const std::string digits(text);
  char* end = nullptr;
  *value = std::strtod(digits.c_str(), &end);
  return !digits.empty() && *end == '\0';
}
bool get(std::string_view text, bool* value) {
  *value = text == "1";
  return text == "0" || text == "1";
}
template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  std::size_t i = 0;
  while (i < N && names[i] != name) ++i;
  return i;
}
template <std::size_t N, typename Enum>
bool get_name(const std::array<std::string_view, N>& names, std::string_view text, Enum* value) {
  const std::size_t i = index_of(names, text);
  *value = static_cast<Enum>(i);
  return i < N;
}
bool get(std::string_view text, Cause* value) { return get_name(kCauses, text, value); }
bool get(std::string_view text, TaskStatus* value) { return get_name(kStatuses, text, value); }
bool get(std::string_view text, GroupPhase* value) { return get_name(kGroupPhases, text, value); }
bool get(std::string_view text, TaskAttempt* value) {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && get(text.substr(0, colon), &value->task) &&
         get(text.substr(colon + 1), &value->attempt);
}
bool get(std::string_view text, std::vector<TaskAttempt>* value) {
  while (!text.empty()) {
    const auto comma = text.find(',');
    value->emplace_back();
    if (!get(text.substr(0, comma), &value->back())) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
  return value->empty();  // else it ended with a comma
}
template <typename T>
bool get(std::string_view text, std::optional<T>* value) {
  if (text == "-") return true;
  return get(text, &value->emplace());
}

// --- lines ---

struct Writer {
  std::string* out;
  template <typename T>
  void operator()(std::string_view name, const T& value) {
    *out += ' ';
    *out += name;
    *out += '=';
    put(out, value);
  }
};

/// Takes the words of a line one by one.
struct Reader {
  std::string_view rest;
  std::string fault{};

  std::string_view word() {
    const auto space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    return word;
  }
  template <typename T>
  void operator()(std::string_view name, T& value) {
    if (!fault.empty()) return;
    const std::string_view found = word();
    const auto equals = found.find('=');
    if (found.substr(0, equals) != name || equals == std::string_view::npos || !get(found.substr(equals + 1), &value)) {
      fault = "found \"" + std::string(found) + "\", expected " + std::string(name) + "=VALUE";
    }
  }
};

template <std::size_t N, typename Variant>
std::string write_variant(const std::array<std::string_view, N>& names, Variant value) {
  std::string text(names[value.index()]);
  Writer writer{&text};
  std::visit([&writer](auto& alternative) { fields(writer, alternative); }, value);
  return text;
}

template <typename Variant, std::size_t... I>
Variant alternative(std::size_t index, std::index_sequence<I...> /*all*/) {
  Variant value;
  ((index == I ? static_cast<void>(value.template emplace<I>()) : static_cast<void>(0)), ...);
  return value;
}

template <typename Variant, std::size_t N>
Result<Variant> read_variant(const std::array<std::string_view, N>& names, std::string_view line) {
  Reader reader{line};
  const std::string_view name = reader.word();
  const std::size_t index = index_of(names, name);
  if (index == N) return usage_error("found \"" + std::string(name) + "\", which is no event or action");
  auto value = alternative<Variant>(index, std::make_index_sequence<N>());
  std::visit([&reader](auto& alternative) { fields(reader, alternative); }, value);
  if (!reader.fault.empty()) return usage_error(reader.fault);
  if (!reader.rest.empty()) return usage_error("found more after it: \"" + std::string(reader.rest) + "\"");
  return value;
}

constexpr std::string_view kPolicyWord = "policy";
constexpr std::string_view kIndent = "  ";

}  // namespace

std::string to_text(const Policy& policy) {
  std::string text(kPolicyWord);
  Writer writer{&text};
  Policy copy = policy;
  fields(writer, copy);
  return text;
}

std::string to_text(const TimedEvent& event) {
  return std::to_string(event.at) + " " + write_variant(kEvents, event.event);
}

std::string to_text(const Action& action) { return std::string(kIndent) + write_variant(kActions, action); }

Result<Policy> parse_policy(std::string_view line) {
  Reader reader{line};
  Policy policy;
  if (reader.word() != kPolicyWord) return usage_error("found no policy");
  fields(reader, policy);
  if (!reader.fault.empty()) return usage_error(reader.fault);
  if (!reader.rest.empty()) return usage_error("found more after it: \"" + std::string(reader.rest) + "\"");
  return policy;
}

Result<TimedEvent> parse_event(std::string_view line) {
  Reader reader{line};
  TimedEvent timed;
  const std::string_view at = reader.word();
  if (!get(at, &timed.at)) return usage_error("found \"" + std::string(at) + "\", expected a time");
  auto event = read_variant<Event>(kEvents, reader.rest);
  if (!event) return event.error();
  timed.event = *event;
  return timed;
}

Result<Action> parse_action(std::string_view line) {
  if (line.substr(0, kIndent.size()) != kIndent) return usage_error("an action is indented by two spaces");
  return read_variant<Action>(kActions, line.substr(kIndent.size()));
}

std::string step_text(const TimedEvent& event, const std::vector<Action>& actions) {
  std::string text = to_text(event) + "\n";
  for (const Action& action : actions) text += to_text(action) + "\n";
  return text;
}

Result<EventLog> EventLog::open(const std::string& path, const Policy& policy) {
  auto file = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
  if (!file) return file.error();
  EventLog log(std::move(*file));
  if (auto written = write_all(log.file_.get(), std::string(kEventLogHead) + "\n" + to_text(policy) + "\n"); !written) {
    return written.error();
  }
  return log;
}

Result<void> EventLog::write(std::string_view step) { return write_all(file_.get(), step); }

}  // namespace mprun
