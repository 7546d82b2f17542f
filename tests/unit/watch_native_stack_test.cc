// Native stacks of child processes, forked or started for the test, whose threads block in known calls.
#include <alloca.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "os/fd.h"
#include "watch/stacks/native_stack.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#elif __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

namespace {

constexpr auto kUnwindPatience = std::chrono::seconds(60);

// What the children block in; C functions, so that their names are as written here.
extern "C" {
[[gnu::noinline]] void* hung_in_condition(void* /*unused*/) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&condition, &mutex);
}

[[gnu::noinline]] void* hung_in_join(void* /*unused*/) {
  pthread_t never = 0;
  pthread_create(&never, nullptr, hung_in_condition, nullptr);
  pthread_join(never, nullptr);
  return nullptr;
}

[[gnu::noinline]] void* hung_in_sleep(void* /*unused*/) {
  const timespec hours{36000, 0};
  nanosleep(&hours, nullptr);
  return nullptr;
}

int echo_from = -1, echo_to = -1;

// Sends back every byte it receives.
[[gnu::noinline]] void* hung_in_read(void* /*unused*/) {
  char byte = 0;
  while (read(echo_from, &byte, 1) == 1 && write(echo_to, &byte, 1) == 1) {
  }
  return nullptr;
}

// Its frame is of a size that only the frame pointer tells.
[[gnu::noinline]] void* hung_in_sized_frame(void* unused) {
  volatile std::size_t size = 512;
  auto* const space = static_cast<volatile char*>(alloca(size));
  space[0] = 0;
  hung_in_read(unused);
  space[1] = space[0];
  return nullptr;
}

[[gnu::noinline]] void* hung_around_sized_frame(void* unused) {
  hung_in_sized_frame(unused);
  return &echo_to;
}

// An optimised build jumps from it to the other.
[[gnu::noinline]] void* hung_in_tail_call(void* unused) {
  asm volatile("");
  return hung_in_sized_frame(unused);
}

[[gnu::noinline]] void* hung_around_tail_call(void* unused) {
  hung_in_tail_call(unused);
  return &echo_to;
}

[[gnu::noinline]] int hung_comparison(const void* /*one*/, const void* /*other*/) {
  hung_in_read(nullptr);
  return 0;
}

[[gnu::noinline]] void* hung_in_qsort(void* /*unused*/) {
  std::array<int, 2> numbers{2, 1};
  qsort(numbers.data(), numbers.size(), sizeof(int), hung_comparison);
  return nullptr;
}

int recursion_left = 1000;
[[gnu::noinline]] void* hung_in_recursion(void* argument) {
  if (--recursion_left == 0) return hung_in_read(argument);
  void* result = hung_in_recursion(argument);
  recursion_left += result == nullptr ? 1 : 2;  // so that this is not a tail call
  return result;
}
}

}  // namespace

namespace mprun {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A process that is killed and reaped at the end of the test.
class LiveChild {
 public:
  explicit LiveChild(pid_t pid) : pid_(pid) {}
  ~LiveChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  LiveChild(const LiveChild&) = delete;
  LiveChild& operator=(const LiveChild&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// A forked child with one more thread, which runs `function`; a pipe reports its tid.
class ThreadedChild {
 public:
  explicit ThreadedChild(void* (*function)(void*))
      : to_child_(make_pipe().value()), from_child_(make_pipe().value()), child_(start(function)) {
    EXPECT_EQ(read(from_child_.read.get(), &tid_, sizeof tid_), static_cast<ssize_t>(sizeof tid_));
  }
  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  [[nodiscard]] pid_t tid() const { return tid_; }
  /// Whether the thread continues: it answers a byte with the same byte.
  [[nodiscard]] bool echoes() const {
    char byte = 'x';
    return write(to_child_.write.get(), &byte, 1) == 1 && read(from_child_.read.get(), &byte, 1) == 1 && byte == 'x';
  }

 private:
  struct Start {
    void* (*function)(void*);
    int fd;
  };
  static void* run(void* argument) {
    const auto* start = static_cast<const Start*>(argument);
    const pid_t tid = gettid();
    if (write(start->fd, &tid, sizeof tid) != sizeof tid) _exit(1);
    return start->function(nullptr);
  }
  pid_t start(void* (*function)(void*)) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    echo_from = to_child_.read.get();
    echo_to = from_child_.write.get();
    Start start{function, echo_to};
    pthread_t thread = 0;
    pthread_create(&thread, nullptr, run, &start);
    for (;;) pause();
  }

  Pipe to_child_, from_child_;
  LiveChild child_;
  pid_t tid_ = 0;
};

struct Blocked {
  std::uint64_t stack_pointer = 0, program_counter = 0;
};

/// Waits until the thread is blocked in one of these system calls.
[[nodiscard]] Blocked wait_until_blocked(pid_t pid, pid_t tid, const std::vector<std::int64_t>& numbers) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/syscall";
  const auto deadline = std::chrono::steady_clock::now() + kUnwindPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream file(path);
    std::vector<std::string> words;
    for (std::string word; file >> word;) words.push_back(word);
    if (words.size() == 9 && std::find(numbers.begin(), numbers.end(), std::stoll(words[0])) != numbers.end()) {
      return {std::stoull(words[7], nullptr, 16), std::stoull(words[8], nullptr, 16)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ADD_FAILURE() << "thread " << tid << " does not block";
  return {};
}

[[nodiscard]] std::string text_of(const NativeStack& stack) {
  std::string text = stack.approximate ? "approximate:" : "complete:";
  for (const std::string& frame : stack.frames) text += "\n  " + frame;
  return text;
}

/// True if frames with these words appear in this order, others between them (a sanitizer has its own read() before
/// read()).
[[nodiscard]] bool in_order(const NativeStack& stack, const std::vector<std::string>& words) {
  auto at = stack.frames.begin();
  for (const std::string& word : words) {
    at = std::find_if(at, stack.frames.end(), [&](const std::string& frame) { return frame.find(word) != frame.npos; });
    if (at == stack.frames.end()) return false;
    ++at;
  }
  return true;
}

#define SKIP_WITH_THREAD_SANITIZER() \
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer allows no new thread after a fork of several threads"
#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif
#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;  // its frames need all registers
#else
constexpr bool kAddressSanitizer = false;
#endif

TEST(WatchNativeStack, NamesTheCallAndItsCallers) {
  SKIP_WITH_THREAD_SANITIZER();
  struct Case {
    void* (*function)(void*);
    std::vector<std::int64_t> numbers;
    std::vector<std::string> names;
  };
  const std::vector<Case> cases{
      {hung_in_condition, {SYS_futex}, {"pthread_cond_wait", "hung_in_condition (mprun_unit_tests)"}},
      {hung_in_join, {SYS_futex}, {"hung_in_join (mprun_unit_tests)"}},
      {hung_in_sleep, {SYS_nanosleep, SYS_clock_nanosleep}, {"nanosleep", "hung_in_sleep (mprun_unit_tests)"}},
      {hung_in_read, {SYS_read}, {"read", "hung_in_read (mprun_unit_tests)"}},
  };
  for (const Case& one : cases) {
    const ThreadedChild child(one.function);
    const Blocked blocked = wait_until_blocked(child.pid(), child.tid(), one.numbers);
    NativeStacks stacks(child.pid());
    NativeStack stack = stacks.of_thread(child.tid(), blocked.stack_pointer, blocked.program_counter);
    EXPECT_TRUE(stack.approximate || stack.frames.back().starts_with("libc.so.6")) << text_of(stack);
    if (kAddressSanitizer) stack = stacks.complete_with_ptrace(child.tid(), stack);
    EXPECT_TRUE(in_order(stack, one.names)) << one.names.back() << ": " << text_of(stack);
    EXPECT_THAT(stack.frames.front(), HasSubstr("lib")) << "the call itself is in a library";
  }
}

#if defined(__x86_64__)
TEST(WatchNativeStack, FindsTheFramePointerInTheStack) {
  SKIP_WITH_THREAD_SANITIZER();
  const std::pair<void* (*)(void*), std::vector<std::string>> cases[] = {
      {hung_around_sized_frame, {"hung_in_sized_frame", "hung_around_sized_frame"}},
      {hung_around_tail_call, {"hung_in_sized_frame", "hung_around_tail_call"}},
  };
  for (const auto& [function, names] : cases) {
    const ThreadedChild child(function);
    const Blocked blocked = wait_until_blocked(child.pid(), child.tid(), {SYS_read});
    const NativeStack stack =
        NativeStacks(child.pid()).of_thread(child.tid(), blocked.stack_pointer, blocked.program_counter);
    const bool is_found = in_order(stack, {"read", "hung_in_read"}) && in_order(stack, names);
    if (!is_found && in_order(stack, {"interceptor_read"})) GTEST_SKIP() << "the sanitizer's read() hides its caller";
    EXPECT_TRUE(is_found) << text_of(stack);
    EXPECT_TRUE(stack.approximate) << "it may be a remainder of an earlier call";
  }
}
#endif

TEST(WatchNativeStack, PtraceCompletesItAndTheThreadGoesOn) {
  SKIP_WITH_THREAD_SANITIZER();
  const ThreadedChild child(hung_in_qsort);
  const Blocked blocked = wait_until_blocked(child.pid(), child.tid(), {SYS_read});
  NativeStacks stacks(child.pid());
  NativeStack cut = stacks.of_thread(child.tid(), blocked.stack_pointer, blocked.program_counter);
  cut.frames.resize(1);
  cut.approximate = true;
  for (int round = 0; round < 20; ++round) {
    (void)wait_until_blocked(child.pid(), child.tid(), {SYS_read});
    const NativeStack complete = stacks.complete_with_ptrace(child.tid(), cut);
    EXPECT_TRUE(in_order(complete, {"read", "hung_in_read", "hung_comparison", "qsort", "hung_in_qsort"}))
        << text_of(complete);
    EXPECT_FALSE(complete.approximate) << text_of(complete);
    ASSERT_TRUE(child.echoes());
  }
  std::ifstream status("/proc/" + std::to_string(child.pid()) + "/task/" + std::to_string(child.tid()) + "/status");
  std::stringstream text;
  text << status.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("TracerPid:\t0\n"));
}

TEST(WatchNativeStack, PtraceIsForApproximateStacksOfSleepingThreadsOfThatProcess) {
  SKIP_WITH_THREAD_SANITIZER();
  const ThreadedChild child(hung_in_read);
  (void)wait_until_blocked(child.pid(), child.tid(), {SYS_read});
  NativeStacks stacks(child.pid());
  EXPECT_THAT(stacks.complete_with_ptrace(child.tid(), {{"a"}, false}).frames, testing::ElementsAre("a"));
  EXPECT_THAT(stacks.complete_with_ptrace(getpid(), {{"a"}, true}).frames, testing::ElementsAre("a"));
  EXPECT_THAT(stacks.complete_with_ptrace(0, {{"a"}, true}).frames, testing::ElementsAre("a"));
  EXPECT_THAT(NativeStacks(getpid()).complete_with_ptrace(gettid(), {{"a"}, true}).frames, testing::ElementsAre("a"))
      << "no process may trace itself";
  kill(child.pid(), SIGSTOP);
  siginfo_t stopped{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &stopped, WSTOPPED), 0);
  EXPECT_THAT(stacks.complete_with_ptrace(child.tid(), {{"a"}, true}).frames, testing::ElementsAre("a"));
  kill(child.pid(), SIGCONT);
  EXPECT_TRUE(child.echoes());
}

TEST(WatchNativeStack, DeepStacksAreCut) {
  SKIP_WITH_THREAD_SANITIZER();
  const ThreadedChild child(hung_in_recursion);
  (void)wait_until_blocked(child.pid(), child.tid(), {SYS_read});
  NativeStacks stacks(child.pid());
  const NativeStack stack = stacks.complete_with_ptrace(child.tid(), {});
  EXPECT_THAT(stack.frames, SizeIs(kMostNativeFrames));
  EXPECT_TRUE(stack.approximate);
}

/// Starts a copy of sleep(1) from a folder of the test.
[[nodiscard]] pid_t start_copy(const std::filesystem::path& program) {
  std::filesystem::remove_all(program.parent_path());
  std::filesystem::create_directories(program.parent_path());
  std::filesystem::copy_file("/bin/sleep", program);
  const std::string name = program.string();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  execl(name.c_str(), "sleep", "36000", nullptr);
  _exit(127);
}

TEST(WatchNativeStack, AnOptimisedProgramNeedsNoPtraceAndFilesMayBeDeletedOrReplaced) {
  const std::filesystem::path program = testing::TempDir() + "mprun-native-stack/sleeper";
  const LiveChild child(start_copy(program));
  const Blocked blocked = wait_until_blocked(child.pid(), child.pid(), {SYS_clock_nanosleep, SYS_nanosleep});
  const auto stack_now = [&] {
    return NativeStacks(child.pid()).of_thread(child.pid(), blocked.stack_pointer, blocked.program_counter);
  };
  const NativeStack before = stack_now();
  EXPECT_FALSE(before.approximate) << text_of(before);
  EXPECT_TRUE(in_order(before, {"clock_nanosleep (libc.so.6)", "nanosleep (libc.so.6)", "sleeper+0x",
                                "__libc_start_main (libc.so.6)", "sleeper+0x"}))
      << text_of(before);
  EXPECT_THAT(before.frames, testing::Contains("nanosleep (libc.so.6)")) << "not __nanosleep";

  std::filesystem::remove(program);
  EXPECT_EQ(text_of(stack_now()), text_of(before)) << "deleted";
  const std::string deleted = program.string() + " (deleted)";  // as the kernel now calls it
  std::filesystem::copy_file("/bin/cat", deleted);
  EXPECT_EQ(text_of(stack_now()), text_of(before)) << "another program in its place";
  std::filesystem::remove(deleted);
  ASSERT_EQ(mkfifo(deleted.c_str(), 0600), 0);
  EXPECT_EQ(text_of(stack_now()), text_of(before)) << "a FIFO in its place";
  std::filesystem::remove(deleted);
  std::ofstream(deleted) << "\x7f"
                            "ELF";
  EXPECT_EQ(text_of(stack_now()), text_of(before)) << "rubbish in its place";
}

TEST(WatchNativeStack, GarbageIsSurvived) {
  const std::filesystem::path program = testing::TempDir() + "mprun-native-stack/sleeper";
  const LiveChild child(start_copy(program));
  const Blocked blocked = wait_until_blocked(child.pid(), child.pid(), {SYS_clock_nanosleep, SYS_nanosleep});
  NativeStacks stacks(child.pid());
  for (const std::uint64_t pointer :
       {std::uint64_t{0}, ~std::uint64_t{0}, blocked.program_counter, blocked.stack_pointer + 3}) {
    for (const std::uint64_t counter :
         {std::uint64_t{0}, ~std::uint64_t{0}, blocked.stack_pointer, blocked.program_counter + 1}) {
      EXPECT_LE(stacks.of_thread(child.pid(), pointer, counter).frames.size(), kMostNativeFrames);
    }
  }
}

TEST(WatchNativeStack, AProcessThatIsGoneHasNoFrames) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  NativeStacks stacks(pid);
  EXPECT_THAT(stacks.of_thread(pid, 4096, 4096).frames, IsEmpty());
  EXPECT_THAT(stacks.complete_with_ptrace(pid, {}).frames, IsEmpty());
  EXPECT_THAT(NativeStacks(0).of_thread(0, 0, 0).frames, IsEmpty());
  EXPECT_THAT(NativeStacks(-1).of_thread(-1, 0, 0).frames, IsEmpty());
}

TEST(WatchNativeStack, EndingWhileWatchedIsSurvived) {
  const std::filesystem::path program = testing::TempDir() + "mprun-native-stack/sleeper";
  auto child = std::make_unique<LiveChild>(start_copy(program));
  const pid_t pid = child->pid();
  const Blocked blocked = wait_until_blocked(pid, pid, {SYS_clock_nanosleep, SYS_nanosleep});
  NativeStacks stacks(pid);
  child.reset();
  EXPECT_LE(stacks.of_thread(pid, blocked.stack_pointer, blocked.program_counter).frames.size(), 1U);
}

TEST(WatchNativeStack, SymbolsAreDemangledUnlessTheyWouldExplode) {
  EXPECT_EQ(demangled("_ZN2at12parallel_forElll"), "at::parallel_for(long, long, long)");
  EXPECT_EQ(demangled("GOMP_parallel"), "GOMP_parallel");
  EXPECT_EQ(demangled("_Z"), "_Z");
  std::string bomb = "_Z1fIiE1AIS_S_E";  // each pair doubles what is before it
  for (int i = 0; i < 60; ++i) bomb += "1AIS" + std::string(1, static_cast<char>('0' + i % 10)) + "_S_E";
  EXPECT_EQ(demangled(bomb), bomb);
}

}  // namespace
}  // namespace mprun
