// The live /proc, asked about this process and children of it that wait until their test is over.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <thread>

#include "os/fd.h"
#include "procfs/address_spaces.h"
#include "procfs/process_facts.h"

namespace mprun {
namespace {

using testing::ElementsAre;

/// A copy of this process that reads from a pipe until it is destroyed.
class WaitingChild {
 public:
  WaitingChild() {
    auto pipe = make_pipe();
    EXPECT_TRUE(pipe);
    pid_ = fork();
    if (pid_ == 0) {
      pipe->write.reset();
      char byte = 0;
      (void)!read(pipe->read.get(), &byte, 1);
      _exit(0);
    }
    read_end_ = pipe->read.get();
    pipe_ = std::move(*pipe);
  }
  WaitingChild(const WaitingChild&) = delete;
  WaitingChild& operator=(const WaitingChild&) = delete;
  ~WaitingChild() { end(); }
  SyscallLine wait_until_it_reads(ProcSource* proc) const {
    std::optional<SyscallLine> line;
    while (!line || line->number != SYS_read || line->arguments[0] != static_cast<unsigned>(read_end_)) {
      line = parse_syscall(proc->read(path("syscall")).value_or(""));
    }
    return *line;
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string path(const std::string& name) const { return std::to_string(pid_) + '/' + name; }
  [[nodiscard]] int read_end() const { return read_end_; }

 private:
  pid_t pid_ = -1;
  int read_end_ = -1;
  Pipe pipe_;
};

std::uint64_t inode_of(ProcSource* proc, int fd) {
  const auto target = proc->link(std::to_string(getpid()) + "/fd/" + std::to_string(fd));
  return target ? parse_descriptor(fd, *target).inode : 0;
}

const UnixSocket* find_socket(const std::vector<UnixSocket>& sockets, std::uint64_t inode) {
  const auto it = std::find_if(sockets.begin(), sockets.end(), [&](const UnixSocket& s) { return s.inode == inode; });
  return it == sockets.end() ? nullptr : &*it;
}

TEST(LiveProc, ShowsABlockedChild) {
  const auto proc = live_proc();
  const WaitingChild child;
  const std::string task = child.path("task/" + std::to_string(child.pid()));
  const SyscallLine line = child.wait_until_it_reads(proc.get());
  const auto stat = parse_stat(proc->read(child.path("stat")).value_or(""));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->id, child.pid());
  EXPECT_EQ(stat->parent, getpid());
  EXPECT_TRUE(stat->forked);
  const auto ours = parse_stat(proc->read("self/stat").value_or(""));
  ASSERT_TRUE(ours);
  EXPECT_LE(ours->start_ticks, stat->start_ticks);
  const auto status = parse_status(proc->read(task + "/status").value_or(""));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->threads, proc->list(child.path("task")).value().size());
  EXPECT_EQ(status->uid, geteuid());
  EXPECT_TRUE(parse_run_count(proc->read(task + "/schedstat").value_or("")));
  const auto maps = parse_maps(proc->read(child.path("maps")).value_or(""));
  const Mapping* code = find_mapping(maps, line.program_counter);
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(code->executable);
  const auto descriptors = read_descriptors(proc.get(), child.pid());
  ASSERT_TRUE(descriptors);
  EXPECT_TRUE(std::any_of(descriptors->begin(), descriptors->end(), [&](const Descriptor& d) {
    return d.number == child.read_end() && d.kind == Descriptor::Kind::kPipe && d.inode != 0;
  }));
}

TEST(LiveProc, SaysNothingOfAProcessThatIsGone) {
  const auto proc = live_proc();
  WaitingChild child;
  const pid_t pid = child.pid();
  const std::string path = child.path("");
  child.end();
  int word = 0;
  EXPECT_FALSE(proc->read(path + "stat"));
  EXPECT_FALSE(proc->link(path + "exe"));
  EXPECT_FALSE(proc->list(path + "fd"));
  EXPECT_FALSE(proc->memory(pid, reinterpret_cast<std::uint64_t>(&word), &word, sizeof word));
  EXPECT_FALSE(proc->time_limit(pid, 0));
  EXPECT_FALSE(proc->same_memory(pid, getpid()));
  EXPECT_FALSE(read_descriptors(proc.get(), pid));
  EXPECT_FALSE(signals_of_timers(proc.get(), pid));
}

TEST(LiveProc, ReadsBelowItsRootOnly) {
  const std::filesystem::path root = testing::TempDir() + "mprun-live";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "fd");
  for (const char* name : {"10", "9", "a", "100", "B"}) std::ofstream(root / "fd" / name);
  const std::string large(300'000, 'x');
  std::ofstream(root / "large") << large;
  const auto proc = live_proc(root.string());
  EXPECT_THAT(proc->list("fd").value(), ElementsAre("9", "10", "100", "B", "a"));
  EXPECT_EQ(proc->read("large"), large);
  EXPECT_EQ(proc->read("fd/9"), "");
  EXPECT_FALSE(proc->read((root / "large").string()));
  EXPECT_FALSE(proc->read("fd"));
  EXPECT_FALSE(proc->read(""));
  EXPECT_FALSE(proc->list("large"));
  EXPECT_FALSE(proc->link("large"));
  std::filesystem::resize_file(root / "large", (64U << 20U) + 1);
  EXPECT_FALSE(proc->read("large"));  // never part of it
  EXPECT_FALSE(live_proc((root / "none").string())->read("fd/9"));
}

TEST(LiveProc, ReadsMemoryWholeOrNotAtAll) {
  const auto proc = live_proc();
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* two =
      static_cast<unsigned char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(two, MAP_FAILED);
  std::iota(two, two + page, static_cast<unsigned char>(7));
  ASSERT_EQ(mprotect(two + page, page, PROT_NONE), 0);
  const WaitingChild child;
  two[0] = 0;  // here, not in the child
  std::array<unsigned char, 16> copy{};
  ASSERT_TRUE(proc->memory(child.pid(), reinterpret_cast<std::uint64_t>(two), copy.data(), copy.size()));
  EXPECT_EQ(copy[0], 7);
  EXPECT_EQ(copy[15], 22);
  const auto end = reinterpret_cast<std::uint64_t>(two + page);
  EXPECT_TRUE(proc->memory(child.pid(), end - 16, copy.data(), 16));
  EXPECT_FALSE(proc->memory(child.pid(), end - 8, copy.data(), 16));
  EXPECT_FALSE(proc->memory(child.pid(), end, copy.data(), 16));
  EXPECT_FALSE(proc->memory(child.pid(), ~std::uint64_t{0}, copy.data(), 16));
  munmap(two, 2 * page);
}

TEST(LiveProc, KnowsThePeersOfUnixSockets) {
  const auto proc = live_proc();
  const auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string path = testing::TempDir() + "mprun-" + std::to_string(getpid()) + ".socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  unlink(path.c_str());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 2), 0);
  const auto connect_to_it = [&address] {
    Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return client;
  };
  const Fd client = connect_to_it();
  const Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const Fd waiting = connect_to_it();
  const auto sockets = proc->unix_sockets();
  unlink(path.c_str());
  ASSERT_TRUE(sockets);
  const UnixSocket* ours = find_socket(*sockets, inode_of(proc.get(), pair->ours.get()));
  const UnixSocket* listening = find_socket(*sockets, inode_of(proc.get(), listener.get()));
  ASSERT_TRUE(ours != nullptr && listening != nullptr);
  EXPECT_EQ(ours->peer, inode_of(proc.get(), pair->theirs.get()));
  EXPECT_FALSE(ours->listening);
  EXPECT_EQ(ours->name, "");
  EXPECT_EQ(listening->peer, 0U);
  EXPECT_TRUE(listening->listening);
  EXPECT_EQ(listening->name, path);
  const auto peer_of = [&](const Fd& one) { return find_socket(*sockets, inode_of(proc.get(), one.get()))->peer; };
  EXPECT_EQ(peer_of(client), inode_of(proc.get(), accepted.get()));
  EXPECT_EQ(peer_of(accepted), inode_of(proc.get(), client.get()));
  EXPECT_EQ(peer_of(waiting), listening->inode) << "it is not accepted yet";
}

TEST(LiveProc, KnowsHowMuchIsUnread) {
  const auto proc = live_proc();
  const auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  const auto unread = [&](const Fd& one) {
    const auto sockets = proc->unix_sockets();
    return find_socket(*sockets, inode_of(proc.get(), one.get()))->unread;
  };
  EXPECT_EQ(unread(pair->ours), 0U);
  ASSERT_EQ(write(pair->theirs.get(), "hello", 5), 5);
  EXPECT_EQ(unread(pair->ours), 5U);
  EXPECT_EQ(unread(pair->theirs), 0U);
}

TEST(LiveProc, TellsDatagramSocketsFromStreams) {
  const auto proc = live_proc();
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    std::array<int, 2> pair{};
    ASSERT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair.data()), 0);
    const Fd one(pair[0]);
    const Fd other(pair[1]);
    const auto sockets = proc->unix_sockets();
    ASSERT_TRUE(sockets);
    const UnixSocket* found = find_socket(*sockets, inode_of(proc.get(), one.get()));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->datagram, type == SOCK_DGRAM);
  }
}

TEST(LiveProc, FindsNamesByInode) {
  std::string pattern = "/tmp/mprun-names-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const auto proc = live_proc();
  const std::string file = pattern + "/one";
  const Fd opened(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(link(file.c_str(), (pattern + "/two").c_str()), 0);
  struct stat status {};
  ASSERT_EQ(fstat(opened.get(), &status), 0);
  const auto names = proc->names_of(getpid(), pattern, status.st_ino);
  EXPECT_EQ(names, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(proc->names_of(getpid(), pattern, status.st_ino + 1), std::vector<std::string>());
  EXPECT_EQ(proc->names_of(getpid(), pattern + "/none", status.st_ino), std::nullopt);
  EXPECT_EQ(proc->is_private_folder(getpid(), pattern), true);
  EXPECT_EQ(proc->is_private_folder(getpid(), file), false);
  EXPECT_EQ(chmod(pattern.c_str(), 0755), 0);
  EXPECT_EQ(proc->is_private_folder(getpid(), pattern), false);
  EXPECT_EQ(proc->is_private_folder(getpid(), "relative"), std::nullopt);
  for (const char* name : {"/one", "/two", ""}) (void)remove((pattern + name).c_str());
}

TEST(LiveProc, ComparesTablesOfDescriptors) {
  const auto proc = live_proc();
  if (!proc->same_files(getpid(), getpid())) GTEST_SKIP() << "no kcmp() here";
  std::promise<pid_t> tid;
  std::promise<void> done;
  std::thread other([&] {
    EXPECT_EQ(unshare(CLONE_FILES), 0);
    tid.set_value(gettid());
    done.get_future().wait();
  });
  EXPECT_EQ(proc->same_files(getpid(), tid.get_future().get()), false);
  EXPECT_EQ(proc->same_files(getpid(), getpid()), true);
  done.set_value();
  other.join();
}

TEST(LiveProc, FindsAllOfManyUnixSockets) {
  const auto proc = live_proc();
  std::vector<SocketPair> pairs;  // more than fit one datagram of the kernel
  for (int i = 0; i < 300; ++i) {
    auto pair = make_socket_pair();
    ASSERT_TRUE(pair);
    pairs.push_back(std::move(*pair));
  }
  const auto sockets = proc->unix_sockets();
  ASSERT_TRUE(sockets);
  for (const SocketPair& pair : pairs) {
    const UnixSocket* found = find_socket(*sockets, inode_of(proc.get(), pair.ours.get()));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->peer, inode_of(proc.get(), pair.theirs.get()));
  }
}

TEST(LiveProc, KnowsTheTimeLimitsOfSockets) {
  const auto proc = live_proc();
  auto pair = make_socket_pair();
  auto pipe = make_pipe();
  ASSERT_TRUE(pair && pipe);
  const WaitingChild child;
  const int fd = pair->ours.get();
  EXPECT_EQ(proc->time_limit(child.pid(), fd), 0);
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    timeval time{2, 0};
    ASSERT_EQ(setsockopt(fd, SOL_SOCKET, option, &time, sizeof time), 0);
    EXPECT_EQ(proc->time_limit(child.pid(), fd), 2 * kNanosPerSecond);
    time = {};
    ASSERT_EQ(setsockopt(fd, SOL_SOCKET, option, &time, sizeof time), 0);
  }
  const auto before = proc->list("self/fd");
  EXPECT_EQ(proc->time_limit(child.pid(), fd), 0);
  EXPECT_EQ(proc->time_limit(child.pid(), pipe->read.get()), std::nullopt);
  EXPECT_EQ(proc->time_limit(child.pid(), 12345), std::nullopt);
  EXPECT_EQ(proc->list("self/fd"), before);  // nothing is kept open
}

TEST(LiveProc, KnowsTheTimeLimitsOfTerminals) {
  const auto proc = live_proc();
  const Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master && unlockpt(master.get()) == 0);
  const Fd slave(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(slave);
  const WaitingChild child;
  EXPECT_EQ(proc->time_limit(child.pid(), slave.get()), 0) << "it reads lines";
  termios settings{};
  ASSERT_EQ(tcgetattr(slave.get(), &settings), 0);
  cfmakeraw(&settings);
  const auto limit_with = [&](cc_t least, cc_t tenths) {
    settings.c_cc[VMIN] = least;
    settings.c_cc[VTIME] = tenths;
    EXPECT_EQ(tcsetattr(slave.get(), TCSANOW, &settings), 0);
    return proc->time_limit(child.pid(), slave.get());
  };
  EXPECT_EQ(limit_with(1, 20), 0) << "that is for the bytes after the first";
  EXPECT_EQ(limit_with(0, 20), 2 * kNanosPerSecond);
  EXPECT_EQ(limit_with(0, 0), std::nullopt);
}

TEST(LiveProc, KnowsWhenAConnectionGivesUpWhatItsPeerDoesNotTake) {
  const auto proc = live_proc();
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(socket);
  const unsigned milliseconds = 3000;
  ASSERT_EQ(setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds), 0);
  const WaitingChild child;
  EXPECT_EQ(proc->time_limit(child.pid(), socket.get()), 3 * kNanosPerSecond);
  timeval time{2, 0};
  ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time), 0);
  EXPECT_EQ(proc->time_limit(child.pid(), socket.get()), 2 * kNanosPerSecond);
}

TEST(LiveProc, KnowsWhichProcessesShareMemory) {
  const auto proc = live_proc();
  const WaitingChild child;
  EXPECT_EQ(proc->same_memory(getpid(), getpid()), true);
  EXPECT_EQ(proc->same_memory(getpid(), child.pid()), false);
#ifndef __SANITIZE_THREAD__  // it turns vfork into fork
  volatile bool same = false;
  const pid_t parent = getpid();
  const pid_t sharing = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): its sharing is what we test
  if (sharing == 0) {
    // NOLINTNEXTLINE(clang-analyzer-unix.Vfork): a system call that leaves nothing
    const auto self = static_cast<pid_t>(syscall(SYS_getpid));
    same = proc->same_memory(parent, self) == true && !have_separate_memory(parent, self);
    _exit(0);
  }
  waitpid(sharing, nullptr, 0);
  EXPECT_TRUE(same);
#endif
}

TEST(LiveProc, TellsSeparateMemoryApartWithoutKcmp) {
  const auto proc = live_proc();
  const WaitingChild child;
  const WaitingChild second;
  for (const WaitingChild* one : {&child, &second}) (void)one->wait_until_it_reads(proc.get());
  EXPECT_TRUE(have_separate_memory(getpid(), child.pid()));
  EXPECT_TRUE(have_separate_memory(child.pid(), getpid()));
  EXPECT_TRUE(have_separate_memory(child.pid(), second.pid()));
  EXPECT_FALSE(have_separate_memory(getpid(), getpid()));
  std::promise<pid_t> tid;
  std::promise<void> done;
  std::thread other([&] {
    tid.set_value(gettid());
    done.get_future().wait();
  });
  const pid_t thread = tid.get_future().get();
  EXPECT_FALSE(have_separate_memory(getpid(), thread));
  EXPECT_FALSE(have_separate_memory(thread, getpid()));
  EXPECT_TRUE(have_separate_memory(thread, child.pid()));
  done.set_value();
  other.join();
  EXPECT_FALSE(have_separate_memory(getpid(), thread));  // it is no more
}

TEST(LiveProc, IsRecordedAndReplayed) {
  const auto live = live_proc();
  const WaitingChild child;
  ProcRecorder recorder(live.get());
  const auto descriptors = read_descriptors(&recorder, child.pid());
  const auto maps = recorder.read(child.path("maps"));
  const auto command = recorder.read(child.path("cmdline"));
  const auto sockets = recorder.unix_sockets();
  ASSERT_TRUE(descriptors && maps && command && sockets);
  const auto replayed = recorded_proc(recorder.recording());
  ASSERT_TRUE(replayed) << replayed.error().message;
  const auto again = read_descriptors(replayed->get(), child.pid());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->size(), descriptors->size());
  EXPECT_EQ((*replayed)->read(child.path("maps")), maps);
  EXPECT_EQ((*replayed)->read(child.path("cmdline")), command);
  EXPECT_EQ((*replayed)->unix_sockets(), sockets);
}

TEST(LiveProc, OurOwnDescriptorsAreReadWithoutTheOneThatReads) {
  const auto proc = live_proc();
  const auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const auto descriptors = read_descriptors(proc.get(), getpid());
  ASSERT_TRUE(descriptors);
  EXPECT_TRUE(std::any_of(descriptors->begin(), descriptors->end(),
                          [&](const Descriptor& descriptor) { return descriptor.number == pipe->read.get(); }));
}

}  // namespace
}  // namespace mprun
