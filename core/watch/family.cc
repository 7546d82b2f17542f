#include "watch/family.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "os/process.h"

namespace mprun {
namespace {

constexpr std::size_t kMostMembers = 8192, kMostDeaths = 256;

// struct pidfd_info and PIDFD_GET_INFO of linux/pidfd.h, which older headers lack: Linux 6.15 tells by them how a
// process ended, even after it was reaped.
struct PidfdInfo {
  std::uint64_t mask = 0, cgroup = 0;
  std::array<std::uint32_t, 11> ids{};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 8;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

ProcessEnd end_from_status(int status) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
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

Result<Family> Family::create(ProcSource* proc) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("cannot watch the ends of processes", errno);
  return Family(std::move(epoll), proc);
}

bool Family::hear(const AdapterNote& note) {
  if (note.adapter != kHistoryNotes) return false;
  const auto fields = split_at_tabs(note.text);
  ForkRecord fork;
  if (fields[0] == "alarm") {
    alarms_.insert(note.pid);
  } else if (fields[0] == "fork" && fields.size() == 4 && read_number(fields[1], &fork.parent) &&
             read_number(fields[2], &fork.parent_tid) && read_number(fields[3], &fork.threads)) {
    bury(note.pid);  // another one had its number
    follow(note.pid, fork.parent, fork);
  }
  return true;
}

void Family::meet(pid_t pid) {
  if (members_.count(pid) != 0) return;
  const auto text = proc_->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (stat) follow(pid, stat->parent, std::nullopt);
}

void Family::follow(pid_t pid, pid_t parent, std::optional<ForkRecord> fork) {
  if (members_.size() >= kMostMembers) return;
  Member member;
  member.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!member.pidfd) return;
  member.parent = parent;
  member.fork = fork;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pid;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, member.pidfd.get(), &event) != 0) return;
  members_[pid] = std::move(member);
}

void Family::take_ends() {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const pid_t pid = events[static_cast<std::size_t>(i)].data.fd;
    const auto it = members_.find(pid);
    if (it == members_.end()) continue;
    RecordedDeath death;
    death.pid = pid;
    death.parent = it->second.parent;
    death.when = wall_now();
    const auto end = end_of(pid, it->second);
    death.end_known = end.has_value();
    death.end = end.value_or(ProcessEnd());
    deaths_.push_back(death);
    if (deaths_.size() > kMostDeaths) deaths_.pop_front();
    bury(pid);
  }
}

std::optional<ProcessEnd> Family::end_of(pid_t pid, const Member& member) const {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (ioctl(member.pidfd.get(), kGetInfo, &info) == 0 && (info.mask & kInfoExit) != 0) {
    return end_from_status(info.exit_code);
  }
  // A zombie still says it; its pid cannot be another's, because it was ours to know when it ended.
  const auto text = proc_->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (stat && stat->state == 'Z') return end_from_status(stat->exit_code);
  return std::nullopt;
}

void Family::bury(pid_t pid) {
  const auto it = members_.find(pid);
  if (it == members_.end()) return;
  // A copy of the descriptor in a process that is being started would keep it in the set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.pidfd.get(), nullptr);
  members_.erase(it);
  alarms_.erase(pid);
}

bool is_violent(const RecordedDeath& death) {
  return death.end_known && (death.end.signal != 0 || death.end.exit_code != 0);
}

std::size_t Family::violent_deaths(pid_t parent, Nanos when) const {
  return static_cast<std::size_t>(std::count_if(deaths_.begin(), deaths_.end(), [&](const RecordedDeath& death) {
    return death.parent == parent && death.when >= when && is_violent(death);
  }));
}

const ForkRecord* Family::fork_of(pid_t child) const {
  const auto it = members_.find(child);
  return it == members_.end() || !it->second.fork ? nullptr : &*it->second.fork;
}

}  // namespace mprun
