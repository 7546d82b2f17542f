// The results of a resumed run: any text, the same torn at some place, and the same with a piece of zeros, as a
// power cut leaves them; and the writer that continues with the lines that count.
#include <set>

#include "fuzz_folder.h"
#include "json/json.h"
#include "record/earlier_run.h"
#include "record/results_writer.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr const char* kName = "results.jsonl";
constexpr std::uint64_t kTasks = 1000;

KeepRule rule_of(std::uint8_t flags) {
  KeepRule rule;
  rule.failed = (flags & 1U) == 0;
  if ((flags & 2U) != 0) rule.tasks = kTasks;
  const bool hold = (flags & 4U) == 0;
  rule.tensors_hold = [hold](std::uint64_t task, const Json& tensors) {
    (void)tensors.dump();
    return hold || task % 2 == 0;
  };
  return rule;
}

EarlierResults read(const FuzzFolder& folder, const KeepRule& rule) {
  auto results = read_results(folder.file(kName), rule);
  require(results.has_value(), "a file can be read, whatever is in it");
  return std::move(*results);
}

std::set<std::uint64_t> tasks_of(const EarlierResults& results) {
  std::set<std::uint64_t> tasks;
  for (const auto& [task, offset] : results.kept) tasks.insert(task);
  return tasks;
}

/// Whether the line counts as a result; counts it by its status.
bool is_result(std::string_view line, std::uint64_t task, const KeepRule& rule, Counts* counts) {
  if (!Json::accept(line) || task >= rule.tasks) return false;
  const std::string head = R"({"task":)" + std::to_string(task) + R"(,"status":")";
  if (line.substr(0, head.size()) != head) return false;
  const bool ok = line.substr(head.size(), 3) == "ok\"";
  ++(ok ? counts->ok : counts->failed);
  return ok || (rule.failed && line.substr(head.size(), 7) == "failed\"");
}

/// The lines that count and those that do not are the whole lines of the text, each once and in order.
void check(const EarlierResults& results, std::string_view text, const KeepRule& rule) {
  const std::uint64_t size = text.size();
  require(results.bytes <= size && (results.bytes == 0 || text[results.bytes - 1] == '\n'), "whole lines count");
  require(text.find('\n', results.bytes) == std::string_view::npos, "no whole line is passed over");
  Counts counts;
  auto line = results.kept.begin();
  auto dropped = results.dropped.begin();
  for (std::uint64_t at = 0; at < results.bytes;) {
    if (dropped != results.dropped.end() && dropped->first == at) {
      require(dropped->second > at && dropped->second <= results.bytes && text[dropped->second - 1] == '\n',
              "what is dropped are whole lines");
      at = (dropped++)->second;
      continue;
    }
    require(line != results.kept.end() && line->second == at, "every line is kept or dropped");
    const std::size_t end = text.find('\n', at) + 1;
    require(is_result(text.substr(at, end - at), line->first, rule, &counts), "a line that is kept is a result");
    at = end;
    ++line;
  }
  require(line == results.kept.end() && dropped == results.dropped.end(), "nothing lies elsewhere");
  require(tasks_of(results).size() == results.kept.size() && results.ended.count() == results.kept.size(),
          "every task counts once");
  require(counts.ok == results.counts.ok && counts.failed == results.counts.failed, "results are counted");
}

/// The writer keeps what counts, can append to it and sorts it.
void check_writer(const FuzzFolder& folder, const EarlierResults& results, const KeepRule& rule) {
  const Order order = rule.tasks == kTasks ? Order::kInput : Order::kCompletion;
  auto writer = ResultsWriter::reopen({folder.file(kName), order, "", Durability::kNone, {}, {}}, results);
  require(writer.has_value(), "results can be continued");
  TaskEnded ended;
  while (results.ended.has(ended.task)) ++ended.task;
  ended.result = "7";
  (*writer)->on_event(ended);
  (*writer)->finish();
  require(!(*writer)->failure() && (*writer)->take_warnings().empty(), "results can be written");

  KeepRule all = rule;
  all.tasks = UINT64_MAX;
  const EarlierResults after = read(folder, all);
  require(after.dropped.empty(), "what does not count is removed");
  std::set<std::uint64_t> tasks = tasks_of(results);
  tasks.insert(ended.task);
  require(tasks_of(after) == tasks, "what counted counts, and what was added");
  require(order == Order::kCompletion || std::is_sorted(after.kept.begin(), after.kept.end()),
          "results are in the order of the inputs");
}

}  // namespace

void earlier_results(std::string_view input) {
  static const FuzzFolder folder;
  Bytes bytes(input);
  const KeepRule rule = rule_of(bytes.take<std::uint8_t>());
  const auto place = bytes.take<std::uint16_t>();
  const auto length = bytes.take<std::uint8_t>();
  const std::string_view text = bytes.rest();
  const std::size_t from = place % (text.size() + 1);
  folder.put(kName, text);
  const EarlierResults whole = read(folder, rule);
  check(whole, text, rule);
  if (length % 3 == 2) return check_writer(folder, whole, rule);

  const std::string lost = length % 3 == 0 ? std::string(text.substr(0, from)) : with_zeros(text, from, length);
  folder.put(kName, lost);
  const EarlierResults part = read(folder, rule);
  check(part, lost, rule);
  if (length % 3 == 0) {
    require(part.kept.size() <= whole.kept.size() && std::equal(part.kept.begin(), part.kept.end(), whole.kept.begin()),
            "a torn file holds the beginning of the results");
  }
  for (const auto& [task, offset] : part.kept) require(whole.ended.has(task), "a loss makes no result up");
}

}  // namespace mprun::fuzz
