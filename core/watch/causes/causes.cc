#include "watch/causes/causes.h"

#include <algorithm>

#include "watch/causes/cause_rules.h"

namespace mprun {

const RecordedDeath* last_death_below(const Evidence& evidence, pid_t pid) {
  const auto& deaths = evidence.history->deaths();
  const auto last = std::find_if(deaths.rbegin(), deaths.rend(), [pid](const RecordedDeath& death) {
    return death.parent == pid && is_violent(death) && !death.was_asked_to;
  });
  return last == deaths.rend() ? nullptr : &*last;
}

const RecordedDeath* find_dead_worker(const Evidence& evidence) {
  const RecordedDeath* dead = nullptr;
  for (const RecordedDeath& death : evidence.history->deaths()) {
    if (death.forked && is_violent(death) && evidence.judgement->stuck.count(death.parent) != 0) dead = &death;
  }
  return dead;
}

std::string end_text(const RecordedDeath& death) {
  return "process " + std::to_string(death.pid) + " ended with " + to_string(death.end);
}

bool has_own_code(const std::vector<PythonFrame>& frames) {
  for (const PythonFrame& frame : frames) {
    if (!is_library_file(frame.file)) return true;
    const bool is_start =
        frame.function == "BaseProcess._bootstrap" && frame.file.ends_with("/multiprocessing/process.py");
    if (is_start || frame.function == "Popen._launch") return false;
  }
  return false;
}

std::vector<const JudgedThread*> chain_of(const Evidence& evidence) {
  std::vector<const JudgedThread*> chain;
  const auto add_threads_of = [&](pid_t pid, bool all) {
    for (const JudgedThread& thread : evidence.judgement->threads) {
      if (thread.sample->pid != pid || (!all && thread.sample->tid != pid) || !is_stuck(evidence, thread)) continue;
      if (std::find(chain.begin(), chain.end(), &thread) == chain.end()) chain.push_back(&thread);
    }
  };
  if (const JudgedThread* first = find_stuck(evidence, [](const JudgedThread&) { return true; })) {
    add_threads_of(first->sample->pid, false);
  }
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const JudgedThread& thread = *chain[i];
    for (const Waker& waker : thread.wait.wakers) add_threads_of(waker.pid, waker.pid == thread.sample->pid);
  }
  return chain;
}

std::string thread_text(const JudgedThread& thread) {
  return thread.sample->tid == thread.sample->pid
             ? "process " + std::to_string(thread.sample->pid)
             : "thread " + std::to_string(thread.sample->tid) + " of process " + std::to_string(thread.sample->pid);
}

bool may_have_lost_threads(const Evidence& evidence, pid_t pid) {
  const ForkRecord* fork = evidence.history->fork_of(pid);
  return evidence.snapshot->process(pid)->forked && (fork == nullptr || fork->threads > 1);
}

std::vector<pid_t> find_cycle(const std::map<pid_t, pid_t>& waits_for) {
  for (const auto& [start, first] : waits_for) {
    std::vector<pid_t> cycle{start};
    pid_t at = first;
    // One that only waits for a cycle is not part of it, and the search would go round for ever.
    while (at != start && cycle.size() < waits_for.size()) {
      const auto next = waits_for.find(at);
      if (next == waits_for.end()) break;
      cycle.push_back(at);
      at = next->second;
    }
    if (at == start) return cycle;
  }
  return {};
}

std::string cycle_text(const std::vector<pid_t>& cycle) {
  std::string text;
  for (const pid_t id : cycle) text += std::to_string(id) + " for ";
  return text + std::to_string(cycle.front());
}

std::string Evidence::code_file(const JudgedThread& thread) const {
  const Mapping* mapping = find_mapping(snapshot->maps(thread.sample->pid), thread.sample->call.program_counter);
  return mapping == nullptr ? "" : mapping->path;
}

bool Evidence::is_in(pid_t tid, std::string_view file, std::string_view function) const {
  const auto it = python.find(tid);
  if (it == python.end()) return false;
  const auto frames = own_frames(it->second);
  return std::any_of(frames.begin(), frames.end(), [&](const PythonFrame& frame) {
    return (function.empty() || frame.function == function) && frame.file.ends_with(file);
  });
}

std::span<const std::string> Evidence::named_native(pid_t tid) const {
  const auto it = native.find(tid);
  if (it == native.end()) return {};
  const auto first = std::find_if_not(it->second.begin(), it->second.end(),
                                      [](const std::string& frame) { return frame.starts_with("libc.so.6+"); });
  return {first, it->second.end()};
}

bool Evidence::is_in_native(pid_t tid, std::string_view text, std::size_t innermost) const {
  const auto frames = named_native(tid);
  const auto inner = frames.first(std::min(innermost, frames.size()));
  return std::any_of(inner.begin(), inner.end(),
                     [text](const std::string& frame) { return frame.find(text) != std::string::npos; });
}

HangCause find_cause(const Evidence& evidence, RuleSet set) {
  for (const CauseRule& rule : rules_of(set)) {
    auto found = rule.find(evidence);
    if (!found) continue;
    return {rule.id.name, std::move(found->text), found->cure.empty() ? rule.cure : std::move(found->cure),
            found->looks_idle};
  }
  return {};
}

bool is_like_waiting_for_signal(const HangCause& cause) {
  return cause.looks_idle || cause.id == causes::kPipeNeverClosed.name || cause.id == causes::kInputNeverClosed.name ||
         cause.id == causes::kPipeKeptByGrandchild.name;
}

}  // namespace mprun
