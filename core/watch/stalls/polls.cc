#include "watch/stalls/polls.h"

#include <algorithm>
#include <ctime>

#include "watch/judge/time_limit.h"
#include "watch/sample/signal_handlers.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/python_code.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

// A wake-up makes a thread run once or more. It must have run this often before the first look at its variables, and
// between two looks: it has woken up three times in all.
constexpr std::uint64_t kFirstRuns = 1, kManyRuns = 2;
constexpr int kManyBeats = 2;

// A time that a loop may compare with the clock: when it ends or began, by a clock that Python's time shows.
bool is_time_of_loop(double value, double age_of_tree) {
  constexpr double kSoon = 86400;
  const auto is_near = [&](double now) { return value > now - age_of_tree && value < now + kSoon; };
  return is_near(to_seconds(monotonic_now())) || is_near(to_seconds(wall_now()));
}

// It only waits for time to pass; what the thread does in between may be anything.
bool has_nothing_to_poll(const ThreadSample& thread) {
  const Call call = call_of(thread.call.number);
  return (call == Call::kPoll || call == Call::kPpoll) && thread.call.arguments[1] == 0;
}

// A process outside could act on it too, and a program without Python does not show what it decides between looks.
bool is_of_ipc(const ThreadSample& thread) {
  const Call call = call_of(thread.call.number);
  return call == Call::kSemaphore || call == Call::kPosixQueue;
}

bool is_of_library_code(const PythonFrame& frame) { return is_library_file(frame.file); }

// The loop in which Popen.wait(timeout) sleeps: it asks for the end of its child alone.
bool is_wait_for_child(const PythonFrame& frame) {
  return frame.function == "Popen._wait" && frame.file.ends_with("/subprocess.py");
}

Nanos age_of_process(ProcSource* proc, pid_t pid) {
  const auto text = proc->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  return stat ? age_of(*stat) : 0;
}

}  // namespace

bool PollMeter::shows_variables(pid_t pid) {
  const auto [it, is_new] = has_python_.try_emplace(pid, false);
  if (is_new) {
    const auto maps = parse_maps(proc_->read(std::to_string(pid) + "/maps").value_or(""));
    it->second = std::any_of(maps.begin(), maps.end(), [](const Mapping& one) { return is_python_module(one.path); });
  }
  return it->second;
}

const PythonStacks& PollMeter::python(pid_t pid) {
  const auto [it, is_new] = python_.try_emplace(pid);
  if (is_new) it->second = read_python_progress(proc_, pid);
  return it->second;
}

void PollMeter::follow(const ThreadSample& thread, Nanos since, Nanos now) {
  Poll& poll = polls_[thread.tid];
  if (poll.since != since || since == now) {
    poll = {};
    poll.since = since;
    poll.runs = poll.runs_at_change = thread.runs;
  }
  if (!shows_variables(thread.pid) || thread.runs - poll.runs < (poll.locals.empty() ? kFirstRuns : kManyRuns)) return;
  if (!python(thread.pid).reason.empty()) return;
  PythonLocals locals;
  std::vector<PythonFrame> frames;
  for (const PythonThread& one : python(thread.pid).threads) {
    if (one.tid != thread.tid) continue;
    locals = one.locals;
    frames = one.frames;
    poll.may_decide = poll.may_decide || one.may_decide;
    const bool asks_child = one.beat && one.beat->asks_child;
    poll.asks = asks_child ? poll.asks + 1 : 0;
    poll.beats = one.beat && !asks_child && thread.tid != thread.pid ? poll.beats + 1 : 0;
    if (one.beat) poll.beat = {one.beat->changes_variables, one.beat->prints_at_times};
    poll.own = one.awaited ? OwnPoll{one.awaited->what, one.awaited->is_shared, one.awaited->is_flag} : OwnPoll{};
  }
  const bool may_end = std::any_of(locals.floats.begin(), locals.floats.end(),
                                   [this](double value) { return is_time_of_loop(value, to_seconds(age_of_tree_)); });
  if (poll.locals.size() >= kMostStatesOfLoop) poll.locals.clear();  // it counts
  poll.stays = !poll.locals.insert(locals.fingerprint).second && !may_end && !poll.may_decide;
  poll.stays = poll.stays || poll.asks >= kManyBeats;
  poll.sleeps = is_sleep(thread);
  const bool is_of_library = std::all_of(frames.begin(), frames.end(), is_of_library_code);
  if (poll.sleeps || is_of_library) {
    const ChildPoll before = std::exchange(poll.child, last_child_poll(proc_, thread.pid));
    const bool asks = before.count < poll.child.count, asks_same = asks && before.child == poll.child.child;
    // A library's loop decides by what is not seen: billiard's gives up a lost worker after ten seconds.
    const bool is_seen =
        asks_same && !frames.empty() && (!is_of_library_code(frames.front()) || is_wait_for_child(frames.front()));
    poll.stays = poll.stays && (poll.sleeps ? is_seen || !poll.own.awaited.empty() : !asks);
  }
  poll.runs = thread.runs;
}

void PollMeter::take(const Sample& sample, Nanos now) {
  stall_.take(sample, now);
  python_.clear();
  has_python_.clear();
  // The first process is the root of the tree, or its oldest child.
  age_of_tree_ = sample.threads.empty() ? 0 : age_of_process(proc_, sample.threads.front().pid);
  std::set<pid_t> there;
  for (const ThreadSample& thread : sample.threads) {
    if (thread.call.running || thread.hidden || thread.state == 'Z') continue;
    const bool is_limited_wait =
        !has_nothing_to_poll(thread) && !is_of_ipc(thread) && without_limit(thread).has_value();
    if (!is_limited_wait && !is_sleep(thread)) continue;
    there.insert(thread.tid);
    follow(thread, now - stall_.of_thread(thread.tid, now), now);
  }
  std::erase_if(polls_, [&](const auto& poll) { return there.count(poll.first) == 0; });
  note_changes(sample);
}

bool PollMeter::only_polls(pid_t tid) const {
  const auto poll = polls_.find(tid);
  return poll != polls_.end() && (poll->second.stays || poll->second.beats != 0);
}

bool PollMeter::has_looked(pid_t tid, const Poll& poll) const {
  return runs_.at(tid).runs >= poll.runs_at_change + kManyRuns;
}

// The last that moved may have brought about what a poll looks for next: one of its own process, if that is in memory
// of its own. Any thread that started or ended may.
void PollMeter::note_changes(const Sample& sample) {
  std::map<pid_t, Runs> runs;
  for (const ThreadSample& thread : sample.threads) {
    if (thread.state != 'Z') runs.emplace(thread.tid, Runs{thread.pid, thread.runs});
  }
  bool one_is_new = runs.size() != runs_.size();
  std::set<pid_t> changed;  // processes
  for (const auto& [tid, thread] : runs) {
    const auto before = runs_.find(tid);
    one_is_new = one_is_new || before == runs_.end();
    if (before != runs_.end() && before->second.runs != thread.runs && !only_polls(tid)) changed.insert(thread.pid);
  }
  runs_ = std::move(runs);
  for (auto& [tid, poll] : polls_) {
    const Runs& own = runs_.at(tid);
    const bool any_process = poll.own.is_shared || poll.beats != 0;
    const bool may_end = one_is_new || (any_process ? !changed.empty() : changed.count(own.pid) != 0);
    if (may_end) poll.runs_at_change = own.runs;
  }
}

Nanos PollMeter::since(Nanos now) const {
  const Nanos stood = stall_.of_all(now);
  return stood == 0 ? 0 : now - stood;
}

std::set<pid_t> PollMeter::resting(Nanos at_least, Nanos now) const {
  std::map<pid_t, bool> rest;
  for (const auto& [tid, thread] : runs_) {
    rest.try_emplace(thread.pid, true).first->second &= stall_.of_thread(tid, now) >= at_least;
  }
  std::set<pid_t> found;
  for (const auto& [pid, rests] : rest) {
    if (rests) found.insert(pid);
  }
  return found;
}

std::set<pid_t> PollMeter::polls() const {
  std::set<pid_t> found;
  for (const auto& [tid, poll] : polls_) {
    if (poll.stays && !poll.sleeps) found.insert(tid);
  }
  return found;
}

std::map<pid_t, pid_t> PollMeter::child_polls() const {
  std::map<pid_t, pid_t> found;
  for (const auto& [tid, poll] : polls_) {
    if (poll.stays && poll.sleeps && poll.own.awaited.empty()) found.emplace(tid, poll.child.child);
  }
  return found;
}

std::map<pid_t, OwnPoll> PollMeter::own_polls() const {
  std::map<pid_t, OwnPoll> found;
  for (const auto& [tid, poll] : polls_) {
    if (poll.stays && has_looked(tid, poll) && !poll.own.awaited.empty()) found.emplace(tid, poll.own);
  }
  return found;
}

std::map<pid_t, Beat> PollMeter::beats() const {
  std::map<pid_t, Beat> found;
  for (const auto& [tid, poll] : polls_) {
    if (poll.beats >= kManyBeats && has_looked(tid, poll)) found.emplace(tid, poll.beat);
  }
  return found;
}

}  // namespace mprun
