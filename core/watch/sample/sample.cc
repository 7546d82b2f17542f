#include "watch/sample/sample.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <unordered_map>

#include "procfs/text_scan.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// Every user may read how often a thread ran, but not every user may read what it does.
bool is_hidden(ProcSource* proc, const std::string& folder) {
  const auto status = proc->read(folder + "status");  // it may have ended meanwhile
  const auto parsed = status ? parse_status(*status) : std::nullopt;
  return parsed && parsed->state != 'Z' && parsed->state != 'X';
}

// NVIDIA's driver 580: poll(descriptors, count, 100) again and again, in every process that uses CUDA; on arm64 poll()
// is the system call ppoll. Whom it may wake is decided by wait_cuda.cc.
bool is_event_handler(ProcSource* proc, pid_t pid, std::string_view status, const SyscallLine& call) {
  constexpr std::int64_t kLimit = 100;  // ms
  if (!status.starts_with("Name:\tcuda-EvtHandlr\n")) return false;
  if (call_of(call.number) == Call::kPoll) return call.arguments[2] == kLimit;
  timespec limit{};
  return call_of(call.number) == Call::kPpoll && proc->memory(pid, call.arguments[2], &limit, sizeof limit) &&
         limit.tv_sec == 0 && limit.tv_nsec == kLimit * kNanosPerMilli;
}

bool rests_as_before(const ThreadSample& before, ThreadSample after) {
  if (before.ticks && after.ticks) {
    after.runs = before.runs;
    after.voluntary_switches = before.voluntary_switches;
    after.involuntary_switches = before.involuntary_switches;
  }
  return before == after;
}

}  // namespace

bool sample_thread(ProcSource* proc, ThreadSample* thread) {
  const std::string folder = std::to_string(thread->pid) + "/task/" + std::to_string(thread->tid) + "/";
  const auto status = proc->read(folder + "status");
  const auto call = proc->read(folder + "syscall");
  const auto runs = proc->read(folder + "schedstat");
  if (!status || !runs) return false;
  const auto parsed = parse_status(*status);
  const auto count = parse_run_count(*runs);
  if (!parsed || !count) return false;
  thread->state = parsed->state;
  thread->voluntary_switches = parsed->voluntary_switches;
  thread->tracer = parsed->tracer;
  thread->involuntary_switches = parsed->involuntary_switches;
  thread->runs = *count;
  if (thread->state == 'Z') return true;  // it no longer has a call
  if (!call && is_hidden(proc, folder)) {
    thread->hidden = true;
    thread->call.running = thread->state == 'R';
    return true;
  }
  const auto line = call ? parse_syscall(*call) : std::nullopt;
  if (!line) return false;
  thread->call = *line;
  thread->ticks = !line->running && is_event_handler(proc, thread->pid, *status, *line);
  return true;
}

Sample take_sample(ProcSource* proc, const std::vector<pid_t>& processes) {
  Sample sample;
  for (const pid_t pid : processes) {
    const auto names = proc->list(std::to_string(pid) + "/task");
    if (!names) sample.whole = false;
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
      const auto tid = parse_id(name);
      ThreadSample thread;
      thread.pid = pid;
      thread.tid = tid.value_or(0);
      if (tid && sample_thread(proc, &thread)) {
        sample.threads.push_back(thread);
      } else {
        sample.whole = false;
      }
    }
  }
  return sample;
}

bool lacks_process(const Sample& sample, const std::vector<pid_t>& tree) {
  return std::any_of(tree.begin(), tree.end(), [&sample](pid_t pid) {
    return std::none_of(sample.threads.begin(), sample.threads.end(),
                        [pid](const ThreadSample& thread) { return thread.pid == pid; });
  });
}

std::optional<Sample> still_part(const Sample& before, const Sample& after) {
  if (!before.whole || !after.whole) return std::nullopt;
  std::unordered_map<pid_t, const ThreadSample*> earlier;  // by thread
  std::unordered_map<pid_t, std::size_t> counts;           // threads by process, before and not after
  for (const ThreadSample& thread : before.threads) {
    earlier[thread.tid] = &thread;
    ++counts[thread.pid];
  }
  Sample merged = after;
  std::set<pid_t> changed;
  for (ThreadSample& thread : merged.threads) {
    const auto same = earlier.find(thread.tid);
    const bool is_new = same == earlier.end() || same->second->pid != thread.pid;
    if (is_new) changed.insert(thread.pid);
    if (!is_new) --counts[thread.pid];
    if (is_new || !rests_as_before(*same->second, thread)) thread.moved = true;
  }
  for (const auto& [pid, gone] : counts) {
    if (gone > 0) changed.insert(pid);
  }
  for (ThreadSample& thread : merged.threads) thread.moved = thread.moved || changed.count(thread.pid) != 0;
  return merged;
}

bool stood_still(const Sample& before, const Sample& after) {
  if (!before.whole || !after.whole) return false;
  const bool same = std::equal(before.threads.begin(), before.threads.end(), after.threads.begin(), after.threads.end(),
                               rests_as_before);
  if (!same) return false;
  for (const ThreadSample& thread : after.threads) {
    if (thread.state != 'Z' && thread.call.running) return false;
  }
  return true;
}

}  // namespace mprun
