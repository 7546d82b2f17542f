#include "watch/stalls/lost_poller.h"

#include <algorithm>

#include "procfs/process_facts.h"
#include "watch/judge/time_limit.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

bool polls_nothing(const ThreadSample& thread) {
  if (thread.state == 'Z') return true;
  if (thread.call.running || thread.hidden) return false;
  const Call call = call_of(thread.call.number);
  return call == Call::kFutex || call == Call::kSleep;
}

bool has_grpc(ProcSource* proc, pid_t pid) {
  const auto maps = parse_maps(proc->read(std::to_string(pid) + "/maps").value_or(""));
  return std::any_of(maps.begin(), maps.end(),
                     [](const Mapping& one) { return one.path.find("/cygrpc.") != std::string::npos; });
}

}  // namespace

std::set<pid_t> processes_that_poll_nothing(const Sample& sample) {
  std::set<pid_t> found, polling;
  for (const ThreadSample& thread : sample.threads) {
    if (!polls_nothing(thread)) {
      polling.insert(thread.pid);
    } else if (thread.tid == thread.pid && thread.state != 'Z' && without_limit(thread)) {
      found.insert(thread.pid);
    }
  }
  std::erase_if(found, [&polling](pid_t pid) { return polling.count(pid) != 0; });
  return found;
}

bool waits_for_grpc(ProcSource* proc, pid_t pid) {
  if (!has_grpc(proc, pid)) return false;
  const PythonStacks stacks = read_python_stacks(proc, pid);
  const auto main = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                 [pid](const PythonThread& thread) { return thread.tid == pid; });
  if (main == stacks.threads.end() || main->frames.size() < 2) return false;
  const PythonFrame& frame = main->frames.front();
  constexpr std::string_view kBlocking = "MultiCallable._blocking";
  const bool blocks = frame.file.ends_with("/grpc/_channel.py") && frame.function.ends_with(kBlocking);
  // __call__(self, request, timeout=None, ...) calls _blocking().
  return blocks && first_default_is_used(proc, pid, pid, main->frames[1].function) == true;
}

}  // namespace mprun
