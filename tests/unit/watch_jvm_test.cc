// A Java virtual machine seen from outside: its helper threads, monitors, and what runs when it is asked to end.
#include "watch/stacks/jvm.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include "fake_jvm.h"
#include "fake_proc.h"
#include "watch/causes/causes.h"
#include "watch/sample/signal_handlers.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr pid_t kJvm = 10, kFirstOfJava = 11, kReferences = 12, kSecond = 13, kCompiler = 14, kCollector = 15,
                kCleaner = 16;
constexpr std::uint64_t kJvmLimitAt = 0x4000;
constexpr std::int32_t kBlockedInJvm = 10;

/// Process 10 with the threads of such a machine, whose structures are in our own memory.
class JvmProc : public FakeProc {
 public:
  JvmProc() : library_(dlopen(MPRUN_FAKE_JVM, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
    *static_cast<FakeThreadsList**>(dlsym(library_, "fake_threads")) = &list_;
    *static_cast<FakeLoaderData**>(dlsym(library_, "fake_loaders")) = &hidden_loader;
    Dl_info info{};
    dladdr(dlsym(library_, "gHotSpotVMStructs"), &info);
    TreeProcess& process = FakeProc::process(kJvm);
    process.maps = "7ffc00000000-7ffc00010000 rw-p 00000000 00:00 0 [stack]\n";
    process.maps.insert(0, line_of_library(reinterpret_cast<std::uint64_t>(info.dli_fbase)));
    process.put(kJvmLimitAt, timespec{1, 0});
    process.thread(kJvm).waits_on(0x5000);
    add(kFirstOfJava, "java", &plain_);
    add(kReferences, "Reference Handl", &plain_);
    add(kSecond, "Thread-0", &plain_);
    add(kCompiler, "C2 CompilerThre", &of_compilers_);
    add(kCleaner, "Common-Cleaner", &plain_);
    names[kCollector] = "GC Thread#0";
    process.thread(kCollector).waits_on(0x5000);
  }
  ~JvmProc() override { dlclose(library_); }
  JvmProc(const JvmProc&) = delete;
  JvmProc& operator=(const JvmProc&) = delete;

  FakeJavaThread& java(pid_t tid) { return java_[tid]; }
  TreeThread& thread(pid_t tid) { return processes[kJvm].thread(tid); }
  /// With a limit of a second.
  void waits_with_limit(pid_t tid) { thread(tid).call(SYS_futex, {0x5000, FUTEX_WAIT_PRIVATE, 0, kJvmLimitAt}); }

  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    if (FakeProc::memory(pid, address, to, size)) return true;
    const iovec local{to, size}, remote{reinterpret_cast<void*>(address), size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
  }
  std::optional<std::string> read(const std::string& path) override {
    for (const auto& [tid, name] : names) {
      if (path == "10/task/" + std::to_string(tid) + "/comm") return name + "\n";
    }
    return FakeProc::read(path);
  }

  std::map<pid_t, std::string> names;
  FakeSymbol string_name{16, "java/lang/String"};
  FakeKlass string_class{&string_name, nullptr};
  FakeLoaderData boot_loader{nullptr, &string_class, nullptr}, hidden_loader{nullptr, nullptr, &boot_loader};

 private:
  static std::string line_of_library(std::uint64_t begin) {
    std::array<char, 128> line{};
    snprintf(line.data(), line.size(), "%lx-%lx r-xp 00000000 fe:00 42 /usr/lib/jvm/lib/server/libjvm.so\n", begin,
             begin + 0x10000);
    return line.data();
  }
  void add(pid_t tid, const char* name, const int* kind) {
    names[tid] = name;
    FakeProc::processes[kJvm].thread(tid).waits_on(0x5000);
    os_[tid] = {0, tid};
    java_[tid] = {kind, &os_[tid], nullptr, nullptr, kBlockedInJvm, 0, 1, nullptr, 0};
    pointers_.push_back(&java_[tid]);
    list_ = {static_cast<std::uint32_t>(pointers_.size()), pointers_.data()};
  }

  void* library_;
  int plain_ = 0, of_compilers_ = 0;
  std::map<pid_t, FakeOsThread> os_;
  std::map<pid_t, FakeJavaThread> java_;
  std::vector<FakeJavaThread*> pointers_;
  FakeThreadsList list_{};
};

std::optional<Jvm> jvm_of(JvmProc* proc) { return read_jvm(proc, kJvm, parse_maps(proc->processes[kJvm].maps)); }

struct WaitInJvm {
  Wait wait;
  std::vector<std::string> assumed;
};

/// With the assumptions of an early report.
WaitInJvm wait_in_jvm(JvmProc* proc, pid_t tid, bool moved = false, Nanos no_limit_from = 60 * kNanosPerSecond) {
  Sample sample = take_sample(proc, process_tree(proc, 1, false));
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = no_limit_from;
  TreeSnapshot snapshot(proc, &sample, std::move(boundary));
  for (ThreadSample& thread : sample.threads) {
    if (thread.tid != tid) continue;
    thread.moved = moved;
    Wait wait = decode_wait(thread, &snapshot);
    return {std::move(wait), snapshot.assumed()};
  }
  ADD_FAILURE() << "no thread " << tid;
  return {};
}

TEST(Jvm, ShowsWhatItsThreadsWaitFor) {
  JvmProc proc;
  FakeMonitor of_main{0, &proc.java(kFirstOfJava)}, free{0, nullptr};
  proc.java(kFirstOfJava).waiting = &free;
  proc.java(kSecond).pending = &of_main;
  const auto jvm = jvm_of(&proc);
  ASSERT_TRUE(jvm);
  EXPECT_EQ(jvm->threads.size(), 5U) << "the collector is no Java thread";
  EXPECT_TRUE(jvm->threads.at(kFirstOfJava).waits_for_notify);
  EXPECT_FALSE(jvm->threads.at(kFirstOfJava).is_parked);
  EXPECT_TRUE(jvm->threads.at(kSecond).enters_monitor);
  EXPECT_EQ(jvm->threads.at(kSecond).owner, kFirstOfJava);
  EXPECT_TRUE(jvm->threads.at(kCleaner).is_parked);
  EXPECT_TRUE(jvm->threads.at(kCompiler).is_helper);
  EXPECT_FALSE(jvm->threads.at(kSecond).is_helper);
}

TEST(Jvm, FindsAnOwnerByItsStack) {
  JvmProc proc;
  std::array<char, 64> stack{};
  FakeMonitor monitor{0, &stack[8]};
  proc.java(kFirstOfJava).stack_base = stack.data() + stack.size();
  proc.java(kFirstOfJava).stack_size = stack.size();
  proc.java(kSecond).pending = &monitor;
  EXPECT_EQ(jvm_of(&proc)->threads.at(kSecond).owner, kFirstOfJava);
  monitor.owner = stack.data() + stack.size();
  EXPECT_EQ(jvm_of(&proc)->threads.at(kSecond).owner, 0);
}

TEST(Jvm, KnowsThatMainHasReturned) {
  JvmProc proc;
  EXPECT_FALSE(jvm_of(&proc)->threads.at(kFirstOfJava).has_returned);
  proc.java(kFirstOfJava).last_java_sp = 0;
  EXPECT_TRUE(jvm_of(&proc)->threads.at(kFirstOfJava).has_returned);
}

TEST(Jvm, SaysNothingOfWhatItCannotRead) {
  JvmProc proc;
  proc.java(kSecond).os = nullptr;
  EXPECT_FALSE(jvm_of(&proc));
  FakeProc other;
  other.process(kJvm).thread(kJvm);
  EXPECT_FALSE(read_jvm(&other, kJvm, parse_maps(other.processes[kJvm].maps)));
}

TEST(Jvm, LetsHelpersWaitForItsOtherThreads) {
  JvmProc proc;
  for (const pid_t helper : {kCompiler, kCollector, kCleaner}) {
    proc.waits_with_limit(helper);
    const WaitInJvm found = wait_in_jvm(&proc, helper);
    EXPECT_THAT(found.wait.why_live, IsEmpty()) << helper;
    EXPECT_THAT(found.wait.wakers, ElementsAre(Waker{kJvm, 0})) << helper;
    EXPECT_THAT(found.assumed, ElementsAre("threads of the Java virtual machine in process 10 wake up by themselves"));
    EXPECT_EQ(wait_in_jvm(&proc, helper, true).wait.why_live, helper == kCleaner ? "it runs" : "") << helper;
    EXPECT_EQ(wait_in_jvm(&proc, helper, false, 0).wait.why_live, "a wait with a time limit") << "this proves nothing";
  }
}

TEST(Jvm, WaitsForAClassToBeInitialised) {
  JvmProc proc;
  FakeMonitor monitor{0, nullptr};
  proc.java(kSecond).waiting = &monitor;
  Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = 60 * kNanosPerSecond;
  TreeSnapshot snapshot(&proc, &sample, std::move(boundary));
  const Judgement judgement = judge(sample, &snapshot);
  ASSERT_THAT(judgement.stuck, ElementsAre(kJvm));
  const ProcessHistory history = std::move(*ProcessHistory::create(&proc));
  Evidence evidence;
  evidence.judgement = &judgement;
  evidence.snapshot = &snapshot;
  evidence.history = &history;
  EXPECT_EQ(find_cause(evidence, RuleSet::kStuck).id, "never-notified");
  const std::string initialises = "InstanceKlass::initialize_impl(JavaThread*) (libjvm.so)";
  evidence.native[kSecond] = {"ObjectMonitor::wait(long, bool, JavaThread*) (libjvm.so)", initialises};
  HangCause cause = find_cause(evidence, RuleSet::kStuck);
  EXPECT_EQ(cause.id, "lock-cycle");
  EXPECT_THAT(cause.explanation, HasSubstr("(\"Thread-0\") waits until a class has been initialised"));
  evidence.native[kSecond] = std::vector<std::string>(8, "JavaCalls::call (libjvm.so)");
  evidence.native[kSecond].push_back(initialises);
  EXPECT_EQ(find_cause(evidence, RuleSet::kStuck).id, "never-notified") << "it initialises one itself";
}

// A program may give its threads any name.
TEST(Jvm, TakesNoThreadOfTheProgramForAHelper) {
  JvmProc proc;
  proc.waits_with_limit(kSecond);
  proc.waits_with_limit(kCleaner);
  for (const char* name : {"Thread-0", "VM Thread", "C2 CompilerThre", "Common-Cleaner"}) {
    proc.names[kSecond] = name;
    EXPECT_EQ(wait_in_jvm(&proc, kSecond).wait.why_live, "a wait with a time limit") << name;
  }
  EXPECT_EQ(wait_in_jvm(&proc, kCleaner).wait.why_live, "a wait with a time limit")
      << "which of the two is the machine's?";
  proc.names[kCollector] = "of JNI";
  proc.waits_with_limit(kCollector);
  EXPECT_EQ(wait_in_jvm(&proc, kCollector).wait.why_live, "a wait with a time limit");
}

TEST(Jvm, LetsAHelperInAnotherCallLive) {
  JvmProc proc;
  proc.thread(kCollector).sleeps();
  EXPECT_EQ(wait_in_jvm(&proc, kCollector).wait.why_live, "it sleeps");
}

// A thread that wants a monitor tries again every second, and gets it only from its owner.
TEST(Jvm, WaitsForTheOwnerOfAMonitor) {
  JvmProc proc;
  FakeMonitor monitor{0, &proc.java(kFirstOfJava)};
  proc.java(kSecond).pending = &monitor;
  proc.waits_with_limit(kSecond);
  for (const bool moved : {false, true}) {
    const Wait wait = wait_in_jvm(&proc, kSecond, moved).wait;
    EXPECT_THAT(wait.why_live, IsEmpty());
    EXPECT_EQ(wait.kind, WaitKind::kMutex);
    EXPECT_EQ(wait.owner, kFirstOfJava);
    EXPECT_THAT(wait.wakers, ElementsAre(Waker{kJvm, kFirstOfJava}));
  }
  monitor.owner = &monitor;
  EXPECT_EQ(wait_in_jvm(&proc, kSecond).wait.kind, WaitKind::kFutex) << "the owner is not known";
  EXPECT_THAT(wait_in_jvm(&proc, kSecond).wait.wakers, ElementsAre(Waker{kJvm, 0}));
}

bool only_ends(JvmProc* proc) { return jvm_only_ends(proc, kJvm, parse_maps(proc->processes[kJvm].maps)); }

TEST(Jvm, OnlyEndsWithoutHooksAndHandlers) {
  JvmProc proc;
  EXPECT_TRUE(only_ends(&proc));
  FakeSymbol hooks{34, "java/lang/ApplicationShutdownHooks"}, handlers{15, "sun/misc/Signal"};
  for (FakeSymbol* name : {&hooks, &handlers}) {
    FakeKlass klass{name, nullptr};
    proc.string_class.next = &klass;
    EXPECT_FALSE(only_ends(&proc)) << name->body;
    proc.boot_loader.loader = &proc;
    EXPECT_TRUE(only_ends(&proc)) << "another loader's class of that name";
    proc.boot_loader.loader = nullptr;
    proc.string_class.next = nullptr;
  }
  proc.boot_loader.next = reinterpret_cast<FakeLoaderData*>(8);
  EXPECT_FALSE(only_ends(&proc)) << "not all of it can be read";
}

TEST(Jvm, IsEndedByItsOwnHandler) {
  EXPECT_TRUE(ends_jvm(SIGTERM, {"/usr/lib/jvm/lib/server/libjvm.so", 1}));
  EXPECT_FALSE(ends_jvm(SIGUSR1, {"/usr/lib/jvm/lib/server/libjvm.so", 1}));
  EXPECT_FALSE(ends_jvm(SIGTERM, {"/usr/lib/libprogram.so", 1}));
}

}  // namespace
}  // namespace mprun
