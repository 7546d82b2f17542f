// Threads of a HotSpot virtual machine. Its helpers wake up by themselves, look for work and wait again; a thread that
// waits for the monitor of an object wakes up once a second or so to try again.
#include <algorithm>
#include <array>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

/// A thread that is no Java thread, by the beginning of its name. Only what it is given, or the state of the heap,
/// makes it act, and it runs no Java.
struct JvmHelper {
  std::string_view name;
  const char* what;  ///< where in src/hotspot/share it is
};
constexpr std::array kJvmHelpers = {
    JvmHelper{"VM Thread", "runtime/vmThread.cpp: runs operations that others ask for; every second none"},
    JvmHelper{"VM Periodic Tas", "runtime/nonJavaThread.cpp: samples counters every 50 ms"},
    JvmHelper{"GC Thread#", "gc/shared/workgroup.cpp: its part of a collection"},
    JvmHelper{"G1 ", "gc/g1: marks and refines on request; g1ServiceThread.cpp measures every 300 ms"},
    JvmHelper{"Shenandoah", "gc/shenandoah: collects when the heap fills"},
    JvmHelper{"ZDirector", "gc/z/zDirector.cpp: asks ten times a second whether to collect"},
    JvmHelper{"ZDriver", "gc/z/zDriver.cpp: collects on request"},
    JvmHelper{"ZStat", "gc/z/zStat.cpp: prints statistics every second"},
    JvmHelper{"ZUncommitter", "gc/z/zUncommitter.cpp: gives memory back to the system"},
    JvmHelper{"ZUnmapper", "gc/z/zUnmapper.cpp: the same"},
    JvmHelper{"ZWorker#", "gc/shared/workgroup.cpp: its part of a collection"},
    JvmHelper{"RuntimeWorker#", "gc/z/zRuntimeWorkers.cpp: the same"},
};
// java.lang.ref.CleanerFactory: asks every minute for objects to clean, which only a collection finds.
constexpr std::string_view kCleaner = "Common-Cleaner";
// These may run Java when they have something to do, so they must not have run at all.
constexpr std::array<std::string_view, 4> kRunJava{kCleaner, "Service Thread", "Notification Th", "Attach Listener"};

std::string comm_of(pid_t pid, pid_t tid, TreeSnapshot* snapshot) {
  const auto text = snapshot->proc()->read(std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm");
  return text ? text->substr(0, text->find('\n')) : "";
}

// A program may call a thread of its own the same: then there are two.
bool is_only_cleaner(const ThreadSample& thread, const Jvm& jvm, TreeSnapshot* snapshot) {
  return std::all_of(jvm.threads.begin(), jvm.threads.end(), [&](const auto& other) {
    return (comm_of(thread.pid, other.first, snapshot) == kCleaner) == (other.first == thread.tid);
  });
}

bool is_jvm_helper(const ThreadSample& thread, const Jvm& jvm, TreeSnapshot* snapshot) {
  const std::string name = comm_of(thread.pid, thread.tid, snapshot);
  if (thread.moved && std::find(kRunJava.begin(), kRunJava.end(), name) != kRunJava.end()) return false;
  const auto java = jvm.threads.find(thread.tid);
  if (java != jvm.threads.end()) {
    return java->second.is_helper || (name == kCleaner && is_only_cleaner(thread, jvm, snapshot));
  }
  return std::any_of(kJvmHelpers.begin(), kJvmHelpers.end(),
                     [&](const JvmHelper& helper) { return name.starts_with(helper.name); });
}

Wait wait_for_monitor(const ThreadSample& thread, const JvmThread& java, TreeSnapshot* snapshot) {
  Wait wait{WaitKind::kFutex, "the monitor of a Java object", {}, {}};
  wait.address = thread.call.arguments[0];
  if (java.owner == 0) {
    add_processes(snapshot->sharing_memory(thread.pid), &wait);
    return wait;
  }
  wait.kind = WaitKind::kMutex;
  wait.owner = java.owner;
  wait.object += ", which thread " + std::to_string(java.owner) + " has";
  add_wakers({{thread.pid, java.owner}}, &wait);
  return wait;
}

}  // namespace

std::optional<Wait> decode_jvm_thread(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().no_limit_from == 0 || call_of(thread.call.number) != Call::kFutex) return std::nullopt;
  const Jvm* jvm = snapshot->jvm(thread.pid);
  if (jvm == nullptr) return std::nullopt;
  const auto java = jvm->threads.find(thread.tid);
  if (java != jvm->threads.end() && java->second.enters_monitor) {
    return wait_for_monitor(thread, java->second, snapshot);
  }
  if (!is_jvm_helper(thread, *jvm, snapshot)) return std::nullopt;
  snapshot->assume("threads of the Java virtual machine in process " + std::to_string(thread.pid) +
                   " wake up by themselves");
  Wait wait{WaitKind::kFutex, "work for the Java virtual machine", {}, {}};
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

}  // namespace mprun
