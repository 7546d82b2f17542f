// Descriptors, the event loop and spawning: errors name their stage, nothing leaks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "os/event_loop.h"
#include "os/fd.h"
#include "os/file_clock.h"
#include "os/library_search.h"
#include "os/memory_policy.h"
#include "os/process.h"
#include "os/shared_memory.h"
#include "os/uninterrupted.h"

namespace mprun {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(Files, OnlyRegularOnesAreReplaced) {
  std::string folder = (std::filesystem::temp_directory_path() / "mprun-os-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string plain = folder + "/plain", pipe = folder + "/pipe", link = folder + "/link", out = folder + "/out";
  EXPECT_EQ(why_not_replaced(plain), "") << "it is not there";
  ASSERT_TRUE(open_fd(plain, O_WRONLY | O_CREAT));
  EXPECT_EQ(why_not_replaced(plain), "");
  std::filesystem::create_symlink(plain, link);
  EXPECT_EQ(why_not_replaced(link), "") << "the link is replaced";
  EXPECT_EQ(why_not_replaced(folder), "is a directory");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(why_not_replaced(pipe), "is no regular file");
  EXPECT_EQ(why_not_replaced("/dev/null"), "is no regular file");
  const Fd file = open_fd(plain, O_RDONLY);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(file.get()), out);  // as /dev/stdout is one
  EXPECT_EQ(why_not_replaced(out), "is no regular file");
  std::filesystem::remove_all(folder);
}

TEST(Uninterrupted, MakesTheCallAgain) {
  int calls = 0;
  const auto interrupted_twice = [&] {
    errno = EINTR;
    return ++calls < 3 ? -1 : 7;
  };
  EXPECT_EQ(uninterrupted(interrupted_twice), 7);
  EXPECT_EQ(calls, 3);
}

TEST(Uninterrupted, LeavesOtherFailuresAlone) {
  int calls = 0;
  const auto fails = [&] {
    ++calls;
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(uninterrupted(fails), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(calls, 1);
}

TEST(MemoryPolicy, IsKeptWithTheFile) {
  constexpr std::size_t kBytes = 1 << 16;
  auto file = create_memory_file("policy", kBytes);
  ASSERT_TRUE(file);
  const auto spread = interleave_file(file->get(), {0});
  if (!spread) GTEST_SKIP() << spread.error().message;  // a container may not allow it
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memset(mapped, 1, kBytes);
  int policy = -1;
  EXPECT_EQ(syscall(SYS_get_mempolicy, &policy, nullptr, 0, mapped, MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, MPOL_INTERLEAVE);
  munmap(mapped, kBytes);
  EXPECT_FALSE(interleave_file(file->get(), {1023}));  // no such node
}

TEST(MemoryPolicy, HasOneBitForEachNode) {
  const NodeMask mask = node_mask({0, 3, 64, 5000});
  EXPECT_EQ(mask[0], 0b1001U);
  EXPECT_EQ(mask[1], 1U);
}

TEST(FindLibraries, AsksTheDynamicLinker) {
  const auto found = find_libraries({"libc.so.6", "libnosuchlibrary.so.1"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(access(found.at("libc.so.6").c_str(), R_OK), 0);
}

TEST(WholeReadsAndWrites, EndWithTheFileOrWithAReason) {
  auto file = create_memory_file("test", 8);
  ASSERT_TRUE(file);
  EXPECT_TRUE(pwrite_all(file->get(), "abcdef", 6, 1));
  std::array<char, 16> text{};
  EXPECT_EQ(pread_all(file->get(), text.data(), text.size(), 2), 6);
  EXPECT_EQ(std::string_view(text.data(), 6), std::string_view("bcdef\0", 6));
  EXPECT_FALSE(pwrite_all(file->get(), "abcdef", 6, 4));  // it is sealed: no room for the last two
  const Fd full = open_fd("/dev/full", O_RDWR);
  EXPECT_FALSE(pwrite_all(full.get(), "x", 1, 0));
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(pread_all(-1, text.data(), 1, 0), -1);
  EXPECT_FALSE(open_fd("/dev/null/x", O_RDONLY));
  EXPECT_EQ(errno, ENOTDIR);
}

TEST(WholeReadsAndWrites, GoOnWhereTheKernelCutsThemShort) {
  const Fd file = open_fd("/proc/self/smaps", O_RDONLY);  // it returns one page at a time
  std::array<char, 16384> text{};
  EXPECT_EQ(pread_all(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

TEST(Fd, IsClosedByExecFromItsBirthOn) {
  const auto is_closed_by_exec = [](const Fd& fd) { return (fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0; };
  EXPECT_TRUE(is_closed_by_exec(open_fd("/dev/null", O_RDONLY)));
  const auto pipe = make_pipe();
  const auto sockets = make_socket_pair();
  ASSERT_TRUE(pipe && sockets);
  EXPECT_TRUE(is_closed_by_exec(pipe->read) && is_closed_by_exec(pipe->write));
  EXPECT_TRUE(is_closed_by_exec(sockets->ours) && is_closed_by_exec(sockets->theirs));
}

TEST(Limits, AreNoneWhereTheyCannotBeAsked) {
  EXPECT_EQ(limits_of(-1).rlim_cur, RLIM_INFINITY);
  EXPECT_NE(limits_of(RLIMIT_NOFILE).rlim_cur, 0U);
}

TEST(EventLoop, HandlesWhatIsReadableAndDropsWhatIsRemoved) {
  auto loop = EventLoop::create();
  ASSERT_TRUE(loop);
  auto first = make_pipe();
  auto second = make_pipe();
  ASSERT_TRUE(first && second);
  int handled = 0;
  // Whichever runs first removes the other: a stale event must not reach it.
  ASSERT_TRUE(loop->add(first->read.get(), EPOLLIN, [&](std::uint32_t) {
    ++handled;
    loop->remove(second->read.get());
  }));
  ASSERT_TRUE(loop->add(second->read.get(), EPOLLIN, [&](std::uint32_t) {
    ++handled;
    loop->remove(first->read.get());
  }));
  ASSERT_TRUE(write_all(first->write.get(), "x"));
  ASSERT_TRUE(write_all(second->write.get(), "x"));
  ASSERT_TRUE(loop->run_once());
  EXPECT_EQ(handled, 1);
}

// A descriptor that is closed and reopened has the same number; events reported for the old one must not reach
// it.
TEST(EventLoop, HandsNoEventToTheNextOwnerOfANumber) {
  auto loop = EventLoop::create();
  ASSERT_TRUE(loop);
  auto first = make_pipe();
  auto second = make_pipe();
  ASSERT_TRUE(first && second);
  int of_the_old = 0, of_the_new = 0;
  const auto replace = [&](const Pipe& other) {
    ++of_the_old;
    loop->remove(other.read.get());
    ASSERT_TRUE(loop->add(other.read.get(), EPOLLIN, [&](std::uint32_t) { ++of_the_new; }));
  };
  ASSERT_TRUE(loop->add(first->read.get(), EPOLLIN, [&](std::uint32_t) { replace(*second); }));
  ASSERT_TRUE(loop->add(second->read.get(), EPOLLIN, [&](std::uint32_t) { replace(*first); }));
  ASSERT_TRUE(write_all(first->write.get(), "x"));
  ASSERT_TRUE(write_all(second->write.get(), "x"));
  ASSERT_TRUE(loop->run_once());
  EXPECT_EQ(of_the_old, 1);
  EXPECT_EQ(of_the_new, 0);
}

TEST(EventLoop, SleepsUntilATimerIsDue) {
  auto loop = EventLoop::create();
  ASSERT_TRUE(loop);
  bool due = false;
  loop->at(monotonic_now() + 5'900'000, [&due] { due = true; });
  int waits = 0;
  for (; !due; ++waits) ASSERT_TRUE(loop->run_once(kNanosPerSecond));
  EXPECT_LE(waits, 3);  // not one after the other in the last millisecond
}

Nanos birth_of(const std::string& path) {
  struct statx facts {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &facts) != 0 || (facts.stx_mask & STATX_BTIME) == 0) return 0;
  return facts.stx_btime.tv_sec * kNanosPerSecond + facts.stx_btime.tv_nsec;
}

TEST(FileClock, DatesNothingThatIsMadeLaterBeforeTheMoment) {
  const std::string path = testing::TempDir() + "mprun-file-clock-" + std::to_string(getpid());
  for (int i = 0; i < 20; ++i) {
    const Nanos moment = wall_now();
    wait_for_file_clock(moment);
    ASSERT_TRUE(open_fd(path, O_CREAT | O_WRONLY | O_EXCL));
    const Nanos birth = birth_of(path);
    unlink(path.c_str());
    if (birth == 0) GTEST_SKIP() << "this file system does not know when a file was made";
    ASSERT_GE(birth, moment);
  }
}

TEST(EventLoop, RunsTimersInOrder) {
  auto loop = EventLoop::create();
  ASSERT_TRUE(loop);
  std::string order;
  const Nanos now = monotonic_now();
  loop->at(now + 2, [&] { order += "b"; });
  loop->at(now + 1, [&] { order += "a"; });
  loop->at(now + 4, [&] { order += "c"; });
  while (order.size() < 3) ASSERT_TRUE(loop->run_once());
  EXPECT_EQ(order, "abc");
}

SpawnPlan shell(const std::string& script) {
  SpawnPlan plan;
  plan.argv = {"/bin/sh", "-c", script};
  plan.env = {"WORD=hello"};
  return plan;
}

int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Spawn, PassesEnvironmentDirectoryAndDescriptors) {
  const std::size_t before = open_descriptors();
  {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    const std::string ours = "/proc/self/fd/" + std::to_string(pipe->read.get());  // close on exec, like all of ours
    SpawnPlan plan = shell("echo $WORD $PWD >&7; test -e " + ours + " || echo closed >&7");
    plan.directory = "/";
    plan.fds = {{STDIN_FILENO, 0}, {STDOUT_FILENO, 1}, {STDERR_FILENO, 2}, {pipe->write.get(), 7}};
    SpawnFailure failure;
    const pid_t pid = spawn_process(plan, &failure);
    ASSERT_GT(pid, 0) << failure.stage;
    pipe->write.reset();
    std::string text(100, '\0');
    EXPECT_EQ(wait_for(pid), 0);
    text.resize(static_cast<std::size_t>(read(pipe->read.get(), text.data(), text.size())));
    EXPECT_EQ(text, "hello /\nclosed\n");
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Spawn, SwapsDescriptorsThatStandInEachOthersWay) {
  auto a = make_pipe();
  auto b = make_pipe();
  ASSERT_TRUE(a && b);
  SpawnPlan plan = shell("echo a >&" + std::to_string(b->write.get()) + "; echo b >&" + std::to_string(a->write.get()));
  plan.fds = {{a->write.get(), b->write.get()}, {b->write.get(), a->write.get()}};
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(wait_for(pid), 0);
  char letter = 0;
  ASSERT_EQ(read(a->read.get(), &letter, 1), 1);
  EXPECT_EQ(letter, 'a');
}

TEST(Spawn, ReportsWhichStageFailed) {
  const std::size_t before = open_descriptors();
  SpawnFailure failure;
  SpawnPlan plan = shell("true");
  plan.directory = "/nowhere";
  EXPECT_EQ(spawn_process(plan, &failure), -1);
  EXPECT_STREQ(failure.stage, "working directory");
  EXPECT_EQ(failure.error_number, ENOENT);
  plan = shell("true");
  plan.argv[0] = "/etc/passwd";
  EXPECT_EQ(spawn_process(plan, &failure), -1);
  EXPECT_STREQ(failure.stage, "exec");
  EXPECT_EQ(failure.error_number, EACCES);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Spawn, ChildHasDefaultSignalsAndItsOwnSession) {
  signal(SIGINT, SIG_IGN);
  SpawnPlan plan = shell("kill -INT $$; exit 3");
  SpawnFailure failure;
  const pid_t pid = spawn_process(plan, &failure);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(getsid(pid), pid);
  EXPECT_EQ(wait_for(pid), -SIGINT);
  signal(SIGINT, SIG_DFL);
}

TEST(FindProgram, SearchesPathAndSaysWhatIsNotExecutable) {
  bool not_executable = false;
  EXPECT_EQ(find_program("sh", "/nowhere:/bin", "", &not_executable), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program", "/bin", "", &not_executable), "");
  EXPECT_FALSE(not_executable);
  EXPECT_EQ(find_program("passwd", "/etc", "", &not_executable), "");
  EXPECT_TRUE(not_executable);
  EXPECT_EQ(find_program("bin/sh", "", "/", &not_executable), "//bin/sh");
}

}  // namespace
}  // namespace mprun
