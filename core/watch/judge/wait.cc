#include "watch/judge/wait.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "watch/judge/library_waits.h"
#include "watch/judge/partners.h"
#include "watch/judge/spinning_calls.h"
#include "watch/judge/time_limit.h"
#include "watch/sample/architecture.h"
#include "watch/sample/linked_functions.h"
#include "watch/sample/syscall_numbers.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// Whether orphans below the process may become its children: it has asked for that (PR_SET_CHILD_SUBREAPER).
bool may_adopt(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto& maps = snapshot->maps(process.pid);
  return maps_file(maps, "_ctypes.cpython") || may_call("prctl", snapshot->proc(), process.speaker, maps);
}

// Parents are read one after the other, so they could lead in a cycle.
std::vector<pid_t> all_below(const TreeSnapshot::Process& process, const TreeSnapshot& snapshot) {
  std::vector<pid_t> below = process.children;
  for (std::size_t i = 0; i < below.size() && below.size() < snapshot.processes().size(); ++i) {
    const auto& children = snapshot.process(below[i])->children;
    below.insert(below.end(), children.begin(), children.end());
  }
  return below;
}

Wait wait_for_children(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  if (process.children.empty()) return live_wait(WaitKind::kChild, "it has no child that is alive");
  if (!snapshot->blind_spot().empty()) return live_wait(WaitKind::kChild, snapshot->blind_spot());
  if (snapshot->is_tracer(process.pid)) return live_wait(WaitKind::kChild, "it traces a process");
  Wait wait{WaitKind::kChild, "any of its children", {}, {}};
  add_processes(process.children, &wait);
  const auto& children = process.children;
  const bool has_grandchild = std::any_of(children.begin(), children.end(),
                                          [&](pid_t child) { return !snapshot->process(child)->children.empty(); });
  if (has_grandchild && may_adopt(process, snapshot)) add_processes(all_below(process, *snapshot), &wait);
  return wait;
}

Wait decode_wait4(const ThreadSample& thread, const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto pid = static_cast<std::int32_t>(thread.call.arguments[0]);
  if (pid > 0) return wait_for_child(pid, *snapshot, thread.pid);
  Wait wait = wait_for_children(process, snapshot);
  const auto command = pid == -1 && wait.why_live.empty() ? command_of_shell(thread, process, snapshot) : std::nullopt;
  if (!command) return wait;
  wait = wait_for_child(*command, *snapshot, thread.pid);
  wait.of_command = true;
  return wait;
}

Wait decode_waitid(const ThreadSample& thread, const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto id = static_cast<std::int32_t>(thread.call.arguments[1]);
  switch (static_cast<std::int32_t>(thread.call.arguments[0])) {
    case P_PID:
      return wait_for_child(id, *snapshot, thread.pid);
    case P_ALL:
    case P_PGID:
      return wait_for_children(process, snapshot);
    default: {  // P_PIDFD
      const Descriptor* descriptor = snapshot->descriptor(thread.pid, id);
      if (descriptor == nullptr || descriptor->process <= 0 || !snapshot->blind_spot().empty())
        return live_wait(WaitKind::kChild, "of an unknown child");
      return wait_for_child(descriptor->process, *snapshot, thread.pid);
    }
  }
}

// A poll of nothing: so glibc makes pause() where the kernel has no such call.
bool is_pause(const ThreadSample& thread) {
  return call_of(thread.call.number) == Call::kPpoll && thread.call.arguments[1] == 0 && thread.call.arguments[2] == 0;
}

constexpr std::uint64_t bit_of_signal(int number) { return std::uint64_t{1} << (number - 1); }

// Besides SIGCHLD, it handles no signal that a program would wait for: faults, a broken pipe, Python's SIGINT.
bool handles_no_other_signal(const TreeSnapshot::Process& process) {
  std::uint64_t others = process.caught_signals;
  for (const int signal :
       {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE, SIGINT, 32, 33}) {
    others &= ~bit_of_signal(signal);
  }
  return others == 0;
}

// sigwait() for the end of a child and for nothing else.
bool awaits_children_alone(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;  // the signals, what is told of one, the limit, the size of the set
  return arguments[2] == 0 && arguments[3] == sizeof(std::uint64_t) &&
         snapshot->word<std::uint64_t>(thread.pid, arguments[0]) == bit_of_signal(SIGCHLD);
}

// Signals come from outside, except that of a child's end, for which shells and others suspend themselves.
Wait wait_for_signal(const ThreadSample& thread, const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  Wait other = live_wait(WaitKind::kSignal, kOnlyASignal);
  const bool has_handler = (process.caught_signals & bit_of_signal(SIGCHLD)) != 0;
  const bool is_for_children = thread.call.number == SYS_rt_sigtimedwait
                                   ? awaits_children_alone(thread, snapshot)
                                   : has_handler && process.ended_children.empty();
  if (!is_for_children || !snapshot->blind_spot().empty()) return other;
  const bool has_child = !process.children.empty();
  Wait wait{has_child ? WaitKind::kChild : WaitKind::kSignal, "the signal of a child's end", {}, {}};
  add_processes(process.children, &wait);
  // Any other thread may send the signal, too. A shell then looks for children that have ended, and waits on.
  if (has_child && !is_known_shell(process, snapshot)) {
    std::vector<pid_t> senders = snapshot->everybody();
    if (process.threads.size() == 1) std::erase(senders, process.pid);
    add_processes(senders, &wait);
  }
  if (has_child) return wait;
  if (snapshot->assumptions().no_limit_from == 0 || !handles_no_other_signal(process)) return other;
  snapshot->assume("process " + std::to_string(process.pid) + " may be sent a signal");
  add_processes({process.pid}, &wait);
  return wait;
}

// Blocked in the kernel until the vfork child, which has our memory, execs or ends.
Wait decode_new_process(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  Wait wait{WaitKind::kVfork, "its vfork child", {}, {}};
  for (const pid_t other : snapshot->sharing_memory(process.pid)) {
    if (snapshot->process(other)->parent == process.pid) wait.wakers.push_back({other, 0});
  }
  return wait.wakers.empty() ? live_wait(WaitKind::kVfork, "it is starting a process") : wait;
}

// A 32-bit program numbers its calls differently. Its stack is below 4 GiB; if a 64-bit program makes such a call, the
// instruction before it shows that. Empty: the number means what it says.
std::string why_not_of_64_bits(const ThreadSample& thread, TreeSnapshot* snapshot) {
  constexpr std::uint64_t kFourGiB = std::uint64_t{1} << 32;
  std::array<char, architecture::kSystemCall.size()> before{};
  if (thread.call.number < 0) return {};  // it is in no call at all
  const char* const of_32_bits = "a call of 32 bits";
  const std::uint64_t end = thread.call.program_counter;
  if (thread.call.stack_pointer < kFourGiB || end < before.size()) return of_32_bits;
  if (!snapshot->memory(thread.pid, end - before.size(), before.data(), before.size())) {
    return "its memory cannot be read";
  }
  return std::string_view(before.data(), before.size()) == architecture::kSystemCall ? "" : of_32_bits;
}

// Why the thread stands still, if not because of its call: it is frozen, or a process serves a fault of its memory or
// answers for the kernel. Names of kernel functions differ between kernels, so an unknown name says nothing.
std::string why_held_up(const ThreadSample& thread, TreeSnapshot* snapshot) {
  constexpr std::array<std::string_view, 7> kHeldUp{
      "freez", "refrigerator", "get_signal", "signal_stop", "handle_userfault", "seccomp", "fuse"};
  const std::string path = std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/wchan";
  const std::string function = snapshot->proc()->read(path).value_or("");
  const bool held_up = std::any_of(kHeldUp.begin(), kHeldUp.end(), [&function](std::string_view name) {
    return function.find(name) != std::string::npos;
  });
  return held_up ? "it is held up in " + function : "";
}

// Whatever comes through the pipe, no thread goes on but the one that reads it.
void leave_out_receiver(const ThreadSample& thread, TreeSnapshot* snapshot, Wait* wait) {
  if (wait->kind != WaitKind::kPipeRead || thread.tid == thread.pid) return;
  if (!receives_for_nobody(thread.tid, snapshot->python(thread.pid).threads)) return;
  wait->kind = WaitKind::kOther;
  wait->object += ", messages that no thread waits for";
  wait->why_live.clear();
  wait->wakers = {{thread.pid, 0}};
}

// For a thread that has run between the samples. One that waits for a GIL runs again and again, and yet gets nowhere
// while another thread holds it: the judgement is made twice, and counts if the GIL has not changed hands meanwhile.
// nullopt: it waits for none.
std::optional<Wait> decode_wait_for_gil(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Wait runs = live_wait(WaitKind::kRunning, "it runs");
  if (call_of(thread.call.number) != Call::kFutex || thread.call.arguments[3] == 0) return std::nullopt;
  for (const PythonGil& gil : snapshot->gils(thread.pid)) {
    const std::uint64_t address = thread.call.arguments[0];
    if (address < gil.wait_begin || address >= gil.wait_end) continue;
    if (!gil.locked || gil.last_holder == 0 || gil.last_holder == thread.tid) return runs;
    return Wait{WaitKind::kGil,
                "the GIL, which thread " + std::to_string(gil.last_holder) + " holds",
                {},
                {{thread.pid, gil.last_holder}}};
  }
  return std::nullopt;
}

// While ranks of torch.distributed meet, to begin or to make a group, they ask the store of one of them a hundred times
// a second which have come.
bool serves_rendezvous(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Call call = call_of(thread.call.number);
  if (!snapshot->assumptions().no_outside_peers || (call != Call::kPoll && call != Call::kRead)) return false;
  if (rank_phase(snapshot->python(thread.pid).threads) == RankPhase::kMeets) return true;
  const auto& processes = snapshot->processes();
  const bool one_asks = std::any_of(processes.begin(), processes.end(), [&](const auto& process) {
    return asks_whether_all_have_come(snapshot->python(process.first).threads);
  });
  return one_asks && snapshot->rank_phase(thread.pid) == RankPhase::kMet;
}

// Any process may continue it, and one outside perhaps soon.
Wait decode_stop(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const TreeSnapshot::Process* process = snapshot->process(thread.pid);
  const bool is_below_another = process != nullptr && snapshot->process(process->parent) != nullptr;
  if (thread.state != 'T' || !snapshot->assumptions().stopped_stay_stopped || !is_below_another) {
    return live_wait(WaitKind::kStopped, "it was stopped");
  }
  snapshot->assume("process " + std::to_string(thread.pid) + " may be continued");
  Wait wait{WaitKind::kStopped, {}, {}, {}};
  add_processes(snapshot->everybody(), &wait);
  return wait;
}

// A thread that takes no part in what spinning ranks compute: one of MPI's own, or of the program that started the
// ranks.
std::optional<Wait> decode_mpi_helper(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().spins.empty()) return std::nullopt;
  const auto& maps = snapshot->maps(thread.pid);
  const PythonThread* python = snapshot->python_thread(thread.pid, thread.tid);
  const bool is_of_library =
      may_spin(maps) && thread.tid != thread.pid && (python == nullptr || python->frames.empty());
  if (!is_of_library && !is_mpi_launcher(maps)) return std::nullopt;
  Wait wait{WaitKind::kPoll, "news of ranks", {}, {}};
  add_processes(possible_partners(thread.pid, may_spin, snapshot), &wait);
  return wait;
}

// A thread that runs in a call that only waits for what others have to send.
std::optional<Wait> decode_spin(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& spins = snapshot->assumptions().spins;
  const auto spin = spins.find(thread.tid);
  if (spin == spins.end()) return std::nullopt;
  snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) + " runs in " +
                   spin->second + " and may find what it waits for");
  Wait wait{WaitKind::kPoll, std::string(kMessagesOf) + spin->second, {}, {}};
  add_processes(possible_partners(thread.pid, may_spin, snapshot), &wait);
  return wait;
}

// A thread that replaces the ended workers of a multiprocessing.Pool, and wakes up for each result too. While no other
// thread takes that, it looks for ended workers again and again.
std::optional<Wait> decode_pool_keeper(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().pool_keepers.count(thread.tid) == 0) return std::nullopt;
  if (!thread.call.running && !thread.moved) return std::nullopt;
  const TreeSnapshot::Process* process = snapshot->process(thread.pid);
  if (process == nullptr || !process->ended_children.empty()) return std::nullopt;
  snapshot->assume("thread " + std::to_string(thread.tid) + " of process " + std::to_string(thread.pid) +
                   " keeps the workers of a pool, and lets no other thread go on until one of them ends");
  Wait wait{WaitKind::kPoll, "the end of a worker of the pool", {}, {}};
  add_processes(process->children, &wait);
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

}  // namespace

const char* to_string(WaitKind kind) {
  switch (kind) {
    case WaitKind::kRunning:
      return "running";
    case WaitKind::kEnded:
      return "ended";
    case WaitKind::kStopped:
      return "stopped";
    case WaitKind::kTimer:
      return "timer";
    case WaitKind::kFutex:
      return "futex";
    case WaitKind::kMutex:
      return "mutex";
    case WaitKind::kSharedFutex:
      return "shared-futex";
    case WaitKind::kThreadEnd:
      return "thread-end";
    case WaitKind::kGil:
      return "gil";
    case WaitKind::kChild:
      return "child";
    case WaitKind::kPipeRead:
      return "pipe-read";
    case WaitKind::kPipeWrite:
      return "pipe-write";
    case WaitKind::kSocket:
      return "socket";
    case WaitKind::kEventfd:
      return "eventfd";
    case WaitKind::kPoll:
      return "poll";
    case WaitKind::kVfork:
      return "vfork";
    case WaitKind::kFileLock:
      return "file-lock";
    case WaitKind::kSemaphore:
      return "semaphore";
    case WaitKind::kMessageRead:
      return "message-read";
    case WaitKind::kMessageWrite:
      return "message-write";
    case WaitKind::kSignal:
      return "signal";
    case WaitKind::kOther:
      return "other";
  }
  return "";
}

Wait live_wait(WaitKind kind, std::string why) {
  Wait wait;
  wait.kind = kind;
  wait.why_live = std::move(why);
  return wait;
}

void add_wakers(const std::vector<Waker>& wakers, Wait* wait) {
  for (const Waker& waker : wakers) {
    if (std::find(wait->wakers.begin(), wait->wakers.end(), waker) == wait->wakers.end()) {
      wait->wakers.push_back(waker);
    }
  }
}

void add_processes(const std::vector<pid_t>& processes, Wait* wait) {
  for (const pid_t pid : processes) add_wakers({{pid, 0}}, wait);
}

Wait wait_for_child(pid_t child, const TreeSnapshot& snapshot, pid_t parent) {
  Wait wait{WaitKind::kChild, "process " + std::to_string(child), {}, {}};
  if (snapshot.process(child) == nullptr || snapshot.process(child)->parent != parent) {
    return live_wait(WaitKind::kChild,
                     "it waits for process " + std::to_string(child) + ", which is not its child here");
  }
  wait.wakers.push_back({child, 0});
  return wait;
}

Wait decode_call(const ThreadSample& thread, const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  const auto descriptor = static_cast<std::int32_t>(arguments[0]);
  switch (call_of(thread.call.number)) {
    case Call::kFutex:
      return decode_futex(thread, snapshot);
    case Call::kRead:
      return decode_descriptor(thread, descriptor, TreeSnapshot::End::kRead, snapshot);
    case Call::kWrite:
      return decode_descriptor(thread, descriptor, TreeSnapshot::End::kWrite, snapshot);
    case Call::kPoll:
    case Call::kRestart:
    case Call::kPpoll:
    case Call::kSelect:
    case Call::kEpollWait:
    case Call::kEpollWait2:
      return decode_poll(thread, snapshot);
    case Call::kWait4:
      return decode_wait4(thread, process, snapshot);
    case Call::kWaitid:
      return decode_waitid(thread, process, snapshot);
    case Call::kNewProcess:
      return decode_new_process(process, snapshot);
    case Call::kFlock:
      return decode_file_lock(thread, snapshot);
    case Call::kFcntl: {
      const auto command = static_cast<std::int32_t>(arguments[1]);
      if (command == F_SETLKW || command == F_OFD_SETLKW) return decode_file_lock(thread, snapshot);
      return live_wait(WaitKind::kOther, "fcntl");
    }
    case Call::kAccept:
      return decode_descriptor(thread, descriptor, TreeSnapshot::End::kRead, snapshot);
    case Call::kOpen:
      return decode_open(thread, snapshot);
    case Call::kSemaphore:
      return decode_semaphore(thread, snapshot);
    case Call::kMessageQueue:
      return decode_message_queue(thread, snapshot);
    case Call::kPosixQueue:
      return decode_posix_queue(thread, snapshot);
    case Call::kSleep:
      return live_wait(WaitKind::kTimer, "it sleeps");
    case Call::kSignal:
      return wait_for_signal(thread, process, snapshot);
    case Call::kOther:
      break;
  }
  return live_wait(WaitKind::kOther, "system call " + std::to_string(thread.call.number));
}

Wait decode_wait(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (thread.state == 'Z') return {WaitKind::kEnded, {}, {}, {}};
  if (thread.state == 'T' || thread.state == 't') return decode_stop(thread, snapshot);
  if (thread.hidden) return live_wait(WaitKind::kOther, "mprun may not look at it");
  if (auto spin = decode_spin(thread, snapshot)) return std::move(*spin);
  if (auto helper = decode_mpi_helper(thread, snapshot)) return std::move(*helper);
  if (auto keeper = decode_pool_keeper(thread, snapshot)) return std::move(*keeper);
  if (thread.call.running) return live_wait(WaitKind::kRunning, "it runs");
  if (is_sleep(thread)) {
    if (auto wait = decode_sleep_loop(thread, snapshot)) return std::move(*wait);
  }
  auto of_runtime = decode_jvm_thread(thread, snapshot);
  if (!of_runtime) of_runtime = decode_cuda_helper(thread, snapshot);
  const bool is_runtimes = of_runtime.has_value();
  if (thread.moved) {
    if (auto wait = decode_wait_for_gil(thread, snapshot)) return std::move(*wait);
    const Assumptions& assumptions = snapshot->assumptions();
    const bool polls =
        is_runtimes || assumptions.polls.count(thread.tid) != 0 || assumptions.beats.count(thread.tid) != 0;
    if (!polls && !serves_rendezvous(thread, snapshot)) return live_wait(WaitKind::kRunning, "it runs");
  }
  const TreeSnapshot::Process* process = snapshot->process(thread.pid);
  if (process == nullptr) return live_wait(WaitKind::kOther, "its process is not known");
  const bool starting = call_of(thread.call.number) == Call::kNewProcess;
  if (thread.state != 'S' && !(thread.state == 'D' && starting)) {
    return live_wait(WaitKind::kOther, std::string("its state is ") + thread.state);
  }
  if (std::string why = why_not_of_64_bits(thread, snapshot); !why.empty()) {
    return live_wait(WaitKind::kOther, std::move(why));
  }
  Wait wait = is_runtimes        ? std::move(*of_runtime)
              : is_pause(thread) ? wait_for_signal(thread, *process, snapshot)
                                 : decode_call(thread, *process, snapshot);
  if (wait.timed) {
    if (auto endless = decode_as_endless(thread, *process, snapshot)) wait = std::move(*endless);
  }
  leave_out_receiver(thread, snapshot, &wait);
  if (wait.why_live.empty()) wait.why_live = why_held_up(thread, snapshot);
  const bool may_be_at_gpu = wait.why_live.empty() && !is_runtimes && may_wait_for_gpu(thread, snapshot);
  if (may_be_at_gpu) wait.why_live = "it may wait for the GPU";
  if (wait.why_live.empty() && !process->acts_alone.empty()) wait.why_live = "its process " + process->acts_alone;
  if (wait.why_live.empty() && wait.wakers.empty()) wait.why_live = "no thread is known that could wake it";
  // A handler for the end of a child runs in any thread of the process, and may wake the others. A shell that waits for
  // a child keeps waiting.
  const bool keeps_waiting = wait.kind == WaitKind::kChild && is_known_shell(*process, snapshot);
  if (!keeps_waiting) add_processes(snapshot->children_that_signal(*process), &wait);
  return wait;
}

}  // namespace mprun
