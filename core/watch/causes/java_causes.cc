// Waits of Java threads: rules of the table. A cycle of monitors is found by mutex_cycle (lock_causes.cc).
#include <algorithm>
#include <array>

#include "watch/causes/cause_rules.h"

namespace mprun {
namespace {

// Threads of the JDK that wait for work in every program. comm(5) has 15 characters.
constexpr std::array<std::string_view, 4> kOfJdk{"Reference Handl", "Finalizer", "Signal Dispatch", "Common-Cleaner"};

std::string name_of_thread(const Evidence& evidence, const JudgedThread& thread) {
  const ThreadSample& sample = *thread.sample;
  const std::string path = std::to_string(sample.pid) + "/task/" + std::to_string(sample.tid) + "/comm";
  const auto text = evidence.snapshot->proc()->read(path);
  return text ? text->substr(0, text->find('\n')) : "";
}

// nullptr: it is none of a program in Java.
const JvmThread* java_of(const Evidence& evidence, const JudgedThread& thread) {
  const Jvm* jvm = evidence.snapshot->jvm(thread.sample->pid);
  if (jvm == nullptr) return nullptr;
  const auto known = jvm->threads.find(thread.sample->tid);
  if (known == jvm->threads.end() || known->second.is_helper) return nullptr;
  const std::string name = name_of_thread(evidence, thread);
  return std::find(kOfJdk.begin(), kOfJdk.end(), name) == kOfJdk.end() ? &known->second : nullptr;
}

template <typename Matches>
const JudgedThread* find_java(const Evidence& evidence, const Matches& matches) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
    const JvmThread* java = java_of(evidence, thread);
    return java != nullptr && matches(*java);
  });
}

bool waits_to_be_notified(const JvmThread& java) { return java.waits_for_notify || java.is_parked; }

std::string java_text(const Evidence& evidence, const JudgedThread& thread) {
  return thread_text(thread) + " (\"" + name_of_thread(evidence, thread) + "\")";
}

}  // namespace

// A thread waits until a class has been initialised, which another one does that waits itself.
std::optional<Explanation> java_class_init(const Evidence& evidence) {
  constexpr std::size_t kInnermost = 8;  // one that initialises a class itself has this function further out
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return java_of(evidence, thread) != nullptr &&
           evidence.is_in_native(thread.sample->tid, "InstanceKlass::initialize_impl(", kInnermost);
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{java_text(evidence, *waits) +
                     " waits until a class has been initialised, and the thread that initialises it waits itself"};
}

std::optional<Explanation> java_threads_left(const Evidence& evidence) {
  const JudgedThread* ended = find_java(evidence, [](const JvmThread& java) { return java.has_returned; });
  const JudgedThread* left = find_java(evidence, waits_to_be_notified);
  if (ended == nullptr || left == nullptr || ended->sample->pid != left->sample->pid) return std::nullopt;
  return Explanation{"the main method in process " + std::to_string(ended->sample->pid) +
                         " has returned, and the Java virtual machine waits for its other threads: " +
                         java_text(evidence, *left) + " waits for work that no thread will give it",
                     {},
                     true};
}

std::optional<Explanation> java_never_notified(const Evidence& evidence) {
  const JudgedThread* waits = find_java(evidence, waits_to_be_notified);
  if (waits == nullptr) return std::nullopt;
  const bool in_wait = java_of(evidence, *waits)->waits_for_notify;
  return Explanation{java_text(evidence, *waits) +
                         (in_wait ? " waits in Object.wait() or Thread.join()"
                                  : " waits for a lock, latch, queue or result of java.util.concurrent") +
                         ", and every thread that could let it go on waits itself, or has ended",
                     {},
                     true};
}

}  // namespace mprun
