// The part of process_facts.h for what processes hold: mappings, descriptors, locks of files.
#include <sys/epoll.h>

#include <algorithm>
#include <unordered_set>

#include "procfs/process_facts.h"
#include "procfs/text_scan.h"

namespace mprun {
namespace {

/// "fd:01", in hexadecimal.
bool take_device(TextScan* scan, std::uint64_t* device) {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  if (!scan->number(&major, 16) || !scan->literal(":") || !scan->number(&minor, 16)) return false;
  *device = (std::uint64_t{major} << 32U) | minor;
  return true;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  TextScan scan(line);
  Mapping mapping;
  if (!scan.number(&mapping.begin, 16) || !scan.literal("-") || !scan.number(&mapping.end, 16)) return std::nullopt;
  const std::string_view rights = scan.word();
  if (rights.size() != 4 || mapping.begin >= mapping.end) return std::nullopt;
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.executable = rights[2] == 'x';
  mapping.shared = rights[3] == 's';
  if (!scan.number(&mapping.offset, 16) || !take_device(&scan, &mapping.device)) return std::nullopt;
  if (!scan.number(&mapping.inode)) return std::nullopt;
  scan.skip_blanks();
  mapping.path = scan.rest();
  return mapping;
}

/// The link of /proc/PID/fd for a descriptor without a file, up to the inode if there is one.
struct KindName {
  std::string_view name;
  Descriptor::Kind kind;
};
constexpr std::array<KindName, 11> kKindNames{{
    {"pipe:[", Descriptor::Kind::kPipe},
    {"socket:[", Descriptor::Kind::kSocket},
    {"anon_inode:[eventpoll]", Descriptor::Kind::kEpoll},
    {"anon_inode:[eventfd]", Descriptor::Kind::kEventfd},
    {"anon_inode:[timerfd]", Descriptor::Kind::kTimerfd},
    {"anon_inode:[signalfd]", Descriptor::Kind::kSignalfd},
    {"anon_inode:inotify", Descriptor::Kind::kInotify},
    {"anon_inode:[pidfd]", Descriptor::Kind::kPidfd},
    {"pidfd:[", Descriptor::Kind::kPidfd},  // of pidfs, Linux 6.9
    {"anon_inode:[io_uring]", Descriptor::Kind::kIoUring},
    {"anon_inode:[userfaultfd]", Descriptor::Kind::kUserfaultfd},
}};

/// "(49, 852528118)": true if that is no time at all, false too if it is none.
bool is_zero_time(TextScan scan) {
  std::uint64_t seconds = 0;
  std::uint64_t nanos = 0;
  scan.skip_blanks();
  return scan.literal("(") && scan.number(&seconds) && scan.literal(",") && scan.number(&nanos) && seconds == 0 &&
         nanos == 0;
}

/// EPOLLONESHOT leaves no events to wait for after the first.
bool is_reported_once(std::uint32_t events) {
  constexpr std::uint32_t kAny = EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLPRI | EPOLLOUT | EPOLLWRNORM;
  return (events & EPOLLET) != 0 || ((events & EPOLLONESHOT) != 0 && (events & kAny) == 0);
}

/// "        4 events:       19 data:     7fd800000004  pos:0 ino:1ede3c sdev:f"
void take_watched(TextScan scan, Descriptor* descriptor) {
  int number = -1;
  if (!scan.number(&number)) return;
  descriptor->watched.push_back(number);
  descriptor->watched_inodes.push_back(0);
  std::uint32_t events = 0;
  if (scan.word() == "events:" && scan.number(&events, 16) && is_reported_once(events)) {
    descriptor->edge_triggered.push_back(number);
  }
  while (!scan.at_end()) {
    TextScan word(scan.word());
    if (word.literal("ino:") && word.number(&descriptor->watched_inodes.back(), 16)) return;
  }
}

/// What /proc/PID/fdinfo says about an io_uring: counters that only grow, modulo 2^32, then two lists.
class RingInfo {
 public:
  void take(TextScan line) {
    for (Counter& counter : counters_) {
      TextScan scan = line;
      if (scan.literal(counter.name) && scan.literal(":")) {
        scan.skip_blanks();
        counter.known = scan.number(&counter.value);
        return;
      }
    }
    if (line.literal("UserFiles:")) {
      line.skip_blanks();
      keeps_files_ = line.rest() != "0";
    } else if (line.literal("SqThread:")) {
      line.skip_blanks();
      has_no_thread_ = line.rest() == "-1";
    } else if (line.literal("PollList:") || line.literal("CqOverflowList:")) {
      ++lists_;
    } else if (lists_ > 0 && line.literal("  ")) {
      lists_are_empty_ = false;
    }
  }

  /// Whether there are as many completions as requests, and none in the lists: of requests that wait for a descriptor,
  /// and of completions without room. Two kinds of request spoil the count: a timeout that repeats, and a message from
  /// another ring, which is a completion without a request here. Before Linux 5.16, which shows fewer counters, false.
  [[nodiscard]] bool is_idle() const {
    return all_known() && value(kSubmitted) == value(kTaken) && value(kTaken) == value(kCompleted) && has_no_thread_ &&
           lists_ == 2 && lists_are_empty_;
  }
  [[nodiscard]] bool keeps_files() const { return keeps_files_; }
  [[nodiscard]] std::uint32_t requests() const { return value(kTaken); }
  [[nodiscard]] std::uint32_t not_fetched() const { return value(kCompleted) - value(kFetched); }

 private:
  enum Name : std::size_t { kSubmitted, kTaken, kCompleted, kFetched };
  struct Counter {
    std::string_view name;
    std::uint32_t value = 0;
    bool known = false;
  };

  [[nodiscard]] std::uint32_t value(Name name) const { return counters_.at(name).value; }
  [[nodiscard]] bool all_known() const {
    return std::all_of(counters_.begin(), counters_.end(), [](const Counter& counter) { return counter.known; });
  }

  std::array<Counter, 4> counters_{{{"SqTail"}, {"CachedSqHead"}, {"CachedCqTail"}, {"CqHead"}}};
  bool has_no_thread_ = false, lists_are_empty_ = true, keeps_files_ = false;
  int lists_ = 0;
};

std::optional<Descriptor> read_descriptor(ProcSource* proc, const std::string& process, const std::string& name) {
  TextScan scan(name);
  int number = -1;
  if (!scan.number(&number) || !scan.at_end()) return std::nullopt;
  const auto target = proc->link(process + "/fd/" + name);
  const auto info = target ? proc->read(process + "/fdinfo/" + name) : std::nullopt;
  if (!info) return std::nullopt;
  Descriptor descriptor = parse_descriptor(number, *target);
  parse_descriptor_info(*info, &descriptor);
  return descriptor;
}

std::optional<FileLock::Kind> lock_kind(std::string_view word) {
  if (word == "FLOCK") return FileLock::Kind::kFlock;
  if (word == "POSIX") return FileLock::Kind::kPosix;
  if (word == "OFDLCK") return FileLock::Kind::kOpenFile;
  if (word == "LEASE" || word == "DELEG") return FileLock::Kind::kLease;
  return std::nullopt;
}

/// "1: -> FLOCK  ADVISORY  WRITE 123 fd:01:5678 0 EOF". `waiting` is set even if the rest of the line makes no sense.
std::optional<FileLock> parse_lock(std::string_view line, bool* waiting) {
  TextScan scan(line);
  scan.word();  // its position in the list
  scan.skip_blanks();
  FileLock lock;
  *waiting = lock.waiting = scan.literal("->");
  const auto kind = lock_kind(scan.word());
  if (!kind) return std::nullopt;
  lock.kind = *kind;
  scan.word();  // ADVISORY
  lock.exclusive = scan.word() == "WRITE";
  if (!scan.number(&lock.holder) || !take_device(&scan, &lock.device)) return std::nullopt;
  if (!scan.literal(":") || !scan.number(&lock.inode)) return std::nullopt;
  if (scan.number(&lock.begin)) scan.number(&lock.end);  // "EOF" is no number
  return lock;
}

// The last 4 of the 16 bytes of an IPv6 address that stands for one of IPv4.
std::string without_ipv6(std::string_view address) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  return std::string(address.substr(address.substr(0, kMapped.size()) == kMapped ? kMapped.size() : 0));
}

std::optional<TcpSocket> parse_tcp_line(std::string_view line) {
  constexpr int kEstablished = 1, kListening = 10;  // enum of Linux's net/tcp_states.h
  constexpr int kUnneeded = 4;                      // timer, retransmissions, user, timeouts
  TextScan scan(line);
  if (const auto number = scan.word(); number.empty() || number.back() != ':') return std::nullopt;
  TcpSocket socket;
  socket.local = without_ipv6(scan.word());
  socket.remote = without_ipv6(scan.word());
  int state = 0;
  if (!scan.number(&state, 16) || !scan.number(&socket.unsent, 16)) return std::nullopt;
  if (!scan.literal(":") || !scan.number(&socket.unread, 16)) return std::nullopt;
  for (int i = 0; i < kUnneeded; ++i) scan.word();
  if (!scan.number(&socket.inode)) return std::nullopt;
  socket.state = state == kEstablished ? TcpSocket::State::kEstablished
                 : state == kListening ? TcpSocket::State::kListening
                                       : TcpSocket::State::kOther;
  return socket;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  for (TextScan scan(text); !scan.at_end();) {
    if (auto mapping = parse_mapping(scan.line())) maps.push_back(std::move(*mapping));
  }
  // The kernel writes them in order, unless they change between two reads.
  std::sort(maps.begin(), maps.end(), [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  return maps;
}

bool maps_file(const std::vector<Mapping>& maps, std::string_view name) {
  return std::any_of(maps.begin(), maps.end(), [name](const Mapping& mapping) {
    return std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1).starts_with(name);
  });
}

const Mapping* find_mapping(const std::vector<Mapping>& maps, std::uint64_t address) {
  const auto after = std::upper_bound(maps.begin(), maps.end(), address,
                                      [](std::uint64_t at, const Mapping& mapping) { return at < mapping.begin; });
  if (after == maps.begin()) return nullptr;
  const Mapping& mapping = *std::prev(after);
  return address < mapping.end ? &mapping : nullptr;
}

Descriptor parse_descriptor(int number, std::string_view target) {
  Descriptor descriptor;
  descriptor.number = number;
  descriptor.target = target;
  for (const KindName& known : kKindNames) {
    TextScan scan(target);
    if (!scan.literal(known.name)) continue;
    if (known.name.back() == '[' ? !scan.number(&descriptor.inode) || scan.rest() != "]" : !scan.at_end()) break;
    descriptor.kind = known.kind;
    return descriptor;
  }
  descriptor.inode = 0;
  if (!target.empty() && target.front() == '/') descriptor.kind = Descriptor::Kind::kFile;
  return descriptor;
}

void parse_descriptor_info(std::string_view text, Descriptor* descriptor) {
  if (descriptor->kind == Descriptor::Kind::kTimerfd) descriptor->armed = true;  // unless the fields say otherwise
  bool value_zero = false;
  bool interval_zero = false;
  RingInfo ring;
  for (TextScan lines(text); !lines.at_end();) {
    TextScan scan(lines.line());
    if (scan.literal("flags:")) {
      scan.number(&descriptor->flags, 8);
    } else if (descriptor->kind == Descriptor::Kind::kFile && scan.literal("tty-index:")) {
      std::uint32_t number = 0;
      if (scan.number(&number)) descriptor->terminal = number;
    } else if (scan.literal("ino:")) {
      scan.number(&descriptor->info_inode);
    } else if (descriptor->kind == Descriptor::Kind::kEpoll && scan.literal("tfd:")) {
      take_watched(scan, descriptor);
    } else if (descriptor->kind == Descriptor::Kind::kPidfd && scan.literal("Pid:")) {
      scan.number(&descriptor->process);
    } else if (descriptor->kind == Descriptor::Kind::kEventfd && scan.literal("eventfd-id:")) {
      std::uint64_t id = 0;
      if (scan.number(&id)) descriptor->event_id = id;
    } else if (descriptor->kind == Descriptor::Kind::kSocket && scan.literal("scm_fds:")) {
      scan.number(&descriptor->on_their_way);
    } else if (descriptor->kind == Descriptor::Kind::kIoUring) {
      ring.take(scan);
    } else if (scan.literal("lock:")) {
      bool waiting = false;
      if (auto lock = parse_lock(scan.rest(), &waiting)) descriptor->locks.push_back(*lock);
    } else if (scan.literal("it_value:")) {
      value_zero = is_zero_time(scan);
    } else if (scan.literal("it_interval:")) {
      interval_zero = is_zero_time(scan);
    }
  }
  if (value_zero && interval_zero) descriptor->armed = false;
  if (descriptor->kind == Descriptor::Kind::kIoUring) {
    descriptor->armed = !ring.is_idle();
    descriptor->keeps_files = ring.keeps_files();
    descriptor->requests = ring.requests();
    descriptor->completed = ring.not_fetched();
  }
}

std::optional<std::vector<Descriptor>> read_descriptors(ProcSource* proc, pid_t pid) {
  const std::string process = std::to_string(pid);
  const auto names = proc->list(process + "/fd");
  if (!names) return std::nullopt;
  std::vector<Descriptor> descriptors;
  std::vector<std::string> unread;
  for (const std::string& name : *names) {
    if (auto descriptor = read_descriptor(proc, process, name)) {
      descriptors.push_back(std::move(*descriptor));
    } else {
      unread.push_back(name);
    }
  }
  if (unread.empty()) return descriptors;
  // Closed meanwhile, or hidden from us: in doubt there is no answer.
  const auto now = proc->list(process + "/fd");
  if (!now) return std::nullopt;
  const std::unordered_set<std::string> open(now->begin(), now->end());
  const auto is_open = [&](const std::string& name) { return open.count(name) != 0; };
  return std::any_of(unread.begin(), unread.end(), is_open) ? std::nullopt : std::optional(std::move(descriptors));
}

std::vector<FileLock> parse_locks(std::string_view text) {
  std::vector<FileLock> locks;
  bool owner_known = false;
  for (TextScan scan(text); !scan.at_end();) {
    bool waiting = false;
    const auto lock = parse_lock(scan.line(), &waiting);
    if (!waiting) owner_known = lock.has_value();
    if (lock && owner_known) locks.push_back(*lock);
  }
  return locks;
}

// The first line names the columns, which differ between the kinds of object.
std::vector<SysvObject> parse_sysv_objects(std::string_view text) {
  TextScan lines(text);
  std::vector<std::string_view> columns;
  for (TextScan names(lines.line()); !names.at_end();) columns.push_back(names.word());
  std::vector<SysvObject> objects;
  while (!lines.at_end()) {
    TextScan scan(lines.line());
    SysvObject object;
    for (const std::string_view column : columns) {
      std::int64_t value = 0;
      if (!scan.number(&value)) break;
      if (column == "semid" || column == "msqid") object.id = static_cast<int>(value);
      if (column == "key") object.key = static_cast<std::int32_t>(value);
      if (column == "lspid") object.last_sender = static_cast<pid_t>(value);
      if (column == "lrpid") object.last_receiver = static_cast<pid_t>(value);
      if (column == "ctime") object.changed = value;
    }
    if (object.id >= 0) objects.push_back(object);
  }
  return objects;
}

std::vector<TcpSocket> parse_tcp(std::string_view text) {
  std::vector<TcpSocket> sockets;
  for (TextScan scan(text); !scan.at_end();) {
    if (auto socket = parse_tcp_line(scan.line())) sockets.push_back(std::move(*socket));
  }
  return sockets;
}

}  // namespace mprun
