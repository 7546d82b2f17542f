#include "watch/causes/process_history.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "os/process.h"
#include "os/uninterrupted.h"
#include "procfs/process_table.h"
#include "watch/stacks/python_processes.h"

namespace mprun {
namespace {

// Descriptors may be scarce, and the readers of /proc need some too.
std::size_t most_members() {
  const rlimit files = limits_of(RLIMIT_NOFILE);
  return std::min<std::size_t>(ProcessHistory::kMostMembers, files.rlim_cur / 4);
}

std::vector<std::string_view> split_at_tabs(std::string_view text) {
  std::vector<std::string_view> fields;
  for (auto tab = text.find('\t'); tab != std::string_view::npos; tab = text.find('\t')) {
    fields.push_back(text.substr(0, tab));
    text.remove_prefix(tab + 1);
  }
  fields.push_back(text);
  return fields;
}

template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

}  // namespace

Result<ProcessHistory> ProcessHistory::create(ProcSource* proc) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("cannot watch the ends of processes", errno);
  return ProcessHistory(std::move(epoll), proc, most_members());
}

bool ProcessHistory::receive(const AdapterNote& note) {
  if (note.adapter != kHistoryNotes) return false;
  if (note.pid <= 0) return true;  // its process has no number here
  const auto fields = split_at_tabs(note.text);
  ForkRecord fork;
  pid_t pid = 0;
  int status = 0;
  if (fields[0] == "fork" && fields.size() == 4 && read_number(fields[1], &fork.parent) &&
      read_number(fields[2], &fork.parent_tid) && read_number(fields[3], &fork.threads) && fork.parent > 0 &&
      fork.parent_tid > 0 && fork.threads > 0) {
    note_fork(note.pid, fork);
  } else if (fields[0] == "term" && fields.size() == 2 && read_number(fields[1], &pid)) {
    // Only for known processes, whose end will be noticed.
    if (members_.count(pid) != 0) sent_sigterm_.insert(pid);
  } else if (fields[0] == "end" && fields.size() == 3 && read_number(fields[1], &pid) &&
             read_number(fields[2], &status) && pid > 0) {
    note_end(pid, note.pid, end_from_status(status));
  }
  return true;
}

// The parent has reaped the process, perhaps before we could look. A living process with its number is another one.
void ProcessHistory::note_end(pid_t pid, pid_t reaper, ProcessEnd end) {
  const pid_t parent = starter_of_children(reaper);
  const auto member = members_.find(pid);
  if (member != members_.end() && member->second.process.has_ended()) {
    record_end(pid, parent, end);
    bury(pid);
    return;
  }
  const auto known = std::find_if(deaths_.rbegin(), deaths_.rend(), [&](const RecordedDeath& death) {
    return death.pid == pid && (death.parent == parent || death.parent == reaper);
  });
  if (known == deaths_.rend()) {
    record_end(pid, parent, end);
    return;
  }
  known->parent = parent;  // the forkserver may not have been known for one
  if (!known->end_known) known->end = end;
  known->end_known = true;
}

pid_t ProcessHistory::starter_of_children(pid_t parent) {
  if (members_.count(parent) == 0 && is_forkserver(proc_, parent)) meet(parent);
  const auto member = members_.find(parent);
  if (member == members_.end()) return parent;
  auto& known = member->second.is_forkserver;
  if (!known) known = is_forkserver(proc_, parent);
  return *known ? member->second.parent : parent;
}

void ProcessHistory::note_fork(pid_t pid, const ForkRecord& fork) {
  const pid_t parent = starter_of_children(fork.parent);
  bury_if_ended(pid);
  if (RecordedDeath* death = death_of_one_met(pid, parent)) {
    death->forked = true;
    return;
  }
  bury(pid);  // the watch has found it before
  Member member;
  member.parent = parent;
  member.fork = fork;
  member.forked = true;
  if (follow(pid, std::move(member)) != Followed::kGone) return;
  record_end(pid, parent, std::nullopt, true);  // its parent has reaped it already
}

// The death of a process that the watch had found, and that ended before its own note was read. nullptr: there is none.
RecordedDeath* ProcessHistory::death_of_one_met(pid_t pid, pid_t parent) {
  const auto death = std::find_if(deaths_.rbegin(), deaths_.rend(), [&](const RecordedDeath& recorded) {
    return recorded.pid == pid && recorded.parent == parent;
  });
  if (death == deaths_.rend() || silent_dead_.count(pid) == 0) return nullptr;
  const auto text = proc_->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  silent_dead_.erase(pid);
  return stat && stat->state != 'Z' ? nullptr : &*death;  // else another process has the number by now
}

void ProcessHistory::meet(pid_t pid) {
  bury_if_ended(pid);
  const auto known = members_.find(pid);
  if (known != members_.end() && known->second.met_again) return;
  const auto text = proc_->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (!stat) return;
  if (known != members_.end()) {
    known->second.forked = stat->forked;
    known->second.met_again = true;
    return;
  }
  const bool buried =
      std::any_of(deaths_.begin(), deaths_.end(), [pid](const auto& death) { return death.pid == pid; });
  if (stat->state == 'Z' && buried) return;
  const pid_t parent = stat->forked ? starter_of_children(stat->parent) : stat->parent;
  if (stat->state == 'Z' && stat->threads <= 1) {  // with more, only its first thread has ended
    note_silent(pid);
    record_end(pid, parent, end_from_status(stat->exit_code), stat->forked);
    return;
  }
  Member member;
  member.parent = parent;
  (void)follow(pid, std::move(member));
}

void ProcessHistory::expect_end(pid_t pid) {
  meet(pid);
  std::set<pid_t> ours{pid};
  if (members_.count(pid) != 0 && !members_.at(pid).process.has_ended()) {
    for (const pid_t below : process_tree(proc_, pid, false)) {
      meet(below);
      ours.insert(below);
    }
  }
  bury_if_ended(pid);  // it ended before, by itself
  for (bool more = true; more;) {
    more = false;
    for (const auto& [child, member] : members_)
      more = (ours.count(member.parent) != 0 && ours.insert(child).second) || more;
  }
  for (auto& [member_pid, member] : members_) member.by_mprun = member.by_mprun || ours.count(member_pid) != 0;
}

ProcessHistory::Followed ProcessHistory::follow(pid_t pid, Member member) {
  if (members_.size() >= most_members_) return Followed::kNo;
  auto process = ProcessRef::open(pid);
  if (!process) return Followed::kGone;
  if (process->pidfd() < 0) return Followed::kNo;  // its end could not be noticed
  member.process = std::move(*process);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pid;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, member.process.pidfd(), &event) != 0) return Followed::kNo;
  members_[pid] = std::move(member);
  return Followed::kYes;
}

void ProcessHistory::take_ends() {
  std::array<epoll_event, 256> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const pid_t pid = events[static_cast<std::size_t>(i)].data.fd;
    bury_if_ended(pid);
  }
}

// Another process may have its number by now, and may have been noted before this end.
void ProcessHistory::bury_if_ended(pid_t pid) {
  const auto it = members_.find(pid);
  if (it == members_.end() || !it->second.process.has_ended()) return;
  record_end(pid, it->second.parent, it->second.process.end());
  bury(pid);
}

void ProcessHistory::record_end(pid_t pid, pid_t parent, std::optional<ProcessEnd> end, bool forked) {
  RecordedDeath death;
  death.pid = pid;
  death.parent = parent;
  death.when = wall_now();
  death.end_known = end.has_value();
  death.was_asked_to = was_sent_sigterm(pid);
  death.forked = forked;
  if (const auto member = members_.find(pid); member != members_.end()) {
    const auto text = proc_->read(std::to_string(pid) + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    death.forked = stat && stat->state == 'Z' ? stat->forked : member->second.forked;
    death.by_mprun = member->second.by_mprun;
    if (!member->second.fork) note_silent(pid);
  }
  death.end = end.value_or(ProcessEnd());
  deaths_.push_back(death);
  if (deaths_.size() <= kMostDeaths) return;
  const auto good = std::find_if_not(deaths_.begin(), deaths_.end(), is_violent);
  deaths_.erase(good != deaths_.end() ? good : deaths_.begin());
}

void ProcessHistory::note_silent(pid_t pid) {
  if (silent_dead_.size() >= kMostDeaths) silent_dead_.clear();
  silent_dead_.insert(pid);
}

void ProcessHistory::bury(pid_t pid) {
  const auto it = members_.find(pid);
  if (it == members_.end()) return;
  // A copy of the descriptor in a process that is being started would keep it in the epoll set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.process.pidfd(), nullptr);
  members_.erase(it);
  sent_sigterm_.erase(pid);
}

bool is_violent(const RecordedDeath& death) {
  return death.end_known && !death.by_mprun && (death.end.signal != 0 || death.end.exit_code != 0);
}

std::size_t ProcessHistory::violent_deaths_of_forked(pid_t parent, Nanos when) const {
  return static_cast<std::size_t>(std::count_if(deaths_.begin(), deaths_.end(), [&](const RecordedDeath& death) {
    return death.parent == parent && death.when >= when && death.forked && is_violent(death);
  }));
}

std::size_t ProcessHistory::violent_deaths(pid_t parent, Nanos when) const {
  return static_cast<std::size_t>(std::count_if(deaths_.begin(), deaths_.end(), [&](const RecordedDeath& death) {
    return death.parent == parent && death.when >= when && is_violent(death);
  }));
}

const ForkRecord* ProcessHistory::fork_of(pid_t child) const {
  const auto it = members_.find(child);
  return it == members_.end() || !it->second.fork ? nullptr : &*it->second.fork;
}

}  // namespace mprun
