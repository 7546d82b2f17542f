// Threads of NVIDIA's driver for CUDA (libcuda.so), as seen with version 580. Every process that uses CUDA has two of
// them. "cuda-EvtHandlr" polls the devices every 100 ms, and wakes threads that wait for the GPU; these wait on a futex
// in libcuda. "cuda" and eleven digits polls without a limit. A third one, which has the name of the program, calls
// what was given to cudaLaunchHostFunc() or cudaStreamAddCallback(); it exists from the first such call on, and also
// waits in libcuda. So when the GPU has finished something, no thread goes on but those that wait in libcuda. But a
// function of the program may run in the event handler when a graph is destroyed (cudaUserObjectCreate()), so nothing
// is proved of the process. A child by fork() has the driver, but not its threads.
#include <algorithm>
#include <array>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

constexpr std::string_view kDriver = "libcuda.so";

// The name of a thread alone proves nothing: any program may use it.
bool has_driver(const std::vector<Mapping>& maps) { return maps_file(maps, kDriver); }

bool uses_cuda(const ThreadSample& thread, const TreeSnapshot& snapshot) {
  const TreeSnapshot::Process* process = snapshot.process(thread.pid);
  return process != nullptr && process->uses_cuda;
}

// "cuda00001400006\n": no name that a program would give to a thread of its own.
bool is_name_of_poller(std::string_view comm) {
  constexpr std::string_view kBegin = "cuda", kDigits = "0123456789abcdef";
  constexpr std::size_t kLength = 16;
  return comm.size() == kLength && comm.starts_with(kBegin) && comm.back() == '\n' &&
         comm.find_first_not_of(kDigits, kBegin.size()) == kLength - 1;
}

// "libc.so.6" of "sem_wait (libc.so.6)" and of "libc.so.6+0x98e51"; "": of no file.
std::string_view library_of(std::string_view frame) {
  const std::size_t file = frame.rfind(" (");
  if (file != frame.npos && frame.ends_with(')')) return frame.substr(file + 2, frame.size() - file - 3);
  return frame.substr(0, std::min(frame.rfind("+0x"), frame.starts_with("0x") ? 0 : frame.npos));
}

// Libraries that wait only because another one has called them; mprun's own is between some calls and libc.
bool is_for_others(std::string_view library) {
  constexpr std::array<std::string_view, 5> kFiles{"libc.so", "libpthread.so", "libstdc++.so", "libmprun_preload.so",
                                                   "[vdso]"};
  return std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) { return library.starts_with(file); });
}

// The driver, and libraries of NVIDIA's that may wait for it on their own: for video, pictures and files.
bool is_of_driver(std::string_view library) {
  constexpr std::array<std::string_view, 3> kFiles{kDriver, "libcufile.so", "libnv"};
  return std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) { return library.starts_with(file); });
}

}  // namespace

std::optional<Wait> decode_cuda_helper(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto call = call_of(thread.call.number);
  if ((call != Call::kPoll && call != Call::kPpoll) || !uses_cuda(thread, *snapshot)) return std::nullopt;
  const std::string path = std::to_string(thread.pid) + "/task/" + std::to_string(thread.tid) + "/comm";
  if (!thread.ticks && !is_name_of_poller(snapshot->proc()->read(path).value_or(""))) return std::nullopt;
  if (!snapshot->assumptions().handlers_release_no_thread || !has_driver(snapshot->maps(thread.pid))) {
    return std::nullopt;
  }
  snapshot->assume("CUDA may call a function of process " + std::to_string(thread.pid));
  Wait wait{WaitKind::kPoll, "events of a GPU, for threads that wait for them", {}, {}};
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  return wait;
}

bool may_wait_for_gpu(const ThreadSample& thread, TreeSnapshot* snapshot) {
  if (!uses_cuda(thread, *snapshot)) return false;
  for (const std::string& frame : snapshot->native_frames(thread)) {
    const std::string_view library = library_of(frame);
    if (!is_for_others(library)) return library.empty() || is_of_driver(library);
  }
  return true;
}

}  // namespace mprun
