#include "watch/stacks/python_waits.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mprun {
namespace {

// Files of the standard library, and of mprun, whose functions wait and then return to their caller.
constexpr std::array<std::string_view, 18> kWaitFiles = {
    "/threading.py",
    "/queue.py",
    "/selectors.py",
    "/subprocess.py",
    "/socket.py",
    "/ssl.py",
    "/signal.py",
    "/multiprocessing/connection.py",
    "/multiprocessing/queues.py",
    "/multiprocessing/synchronize.py",
    "/multiprocessing/popen_fork.py",
    "/multiprocessing/popen_forkserver.py",
    "/multiprocessing/process.py",
    "/multiprocessing/managers.py",
    "/multiprocessing/pool.py",
    "/concurrent/futures/_base.py",
    "/mprun/python/mprun/sync.py",
    "/mprun/python/mprun/sync_values.py",
};

// psutil sleeps between two measurements.
constexpr std::string_view kMeasures = "/psutil/__init__.py";

// Event loops: while they wait, the code that they will run is on no stack.
constexpr std::array<std::string_view, 8> kEventLoops = {
    "/asyncio/", "/trio/", "/twisted/internet/", "/tornado/", "/eventlet/", "/gevent/", "/curio/", "/sched.py"};

// What functions do when their time is up.
constexpr std::array<std::string_view, 10> kReturnFalse = {
    "Event.wait",       "Condition.wait", "Condition.wait_for",   "Semaphore.acquire", "Thread.join",
    "BaseProcess.join", "_wait",          "_ConnectionBase.poll", "ApplyResult.wait",  "_PollLikeSelector.select"};
constexpr std::array<std::string_view, 11> kRaise = {
    "Queue.get",  "Queue.put",         "JoinableQueue.put", "Future.result",     "Future.exception", "ApplyResult.get",
    "Popen.wait", "Popen.communicate", "Barrier.wait",      "IMapIterator.next", "as_completed"};

template <std::size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TimeUp end_of(const std::string& library) {
  if (library.empty()) return TimeUp::kInC;
  if (is_one_of(kReturnFalse, library)) return TimeUp::kReturnsFalse;
  return is_one_of(kRaise, library) ? TimeUp::kRaises : TimeUp::kNotKnown;
}

bool is_of_wait(const std::string& file) {
  return std::any_of(kWaitFiles.begin(), kWaitFiles.end(),
                     [&file](std::string_view part) { return file.ends_with(part); });
}

}  // namespace

void PythonWaits::add(const PythonFrame& frame, std::uint64_t code, const Look& look, const LookAfter& look_after) {
  add_to_beat(frame, code, look_after);
  if (is_over_) return;
  if (!is_library_file(frame.file)) {
    add_own(code, look);
    return;
  }
  const auto has = [&frame](std::string_view part) { return frame.file.find(part) != std::string::npos; };
  may_decide_ = std::any_of(kEventLoops.begin(), kEventLoops.end(), has);
  // The loop that waits is the library's, or the program's own code returns to a library.
  is_over_ = may_decide_ || own_ != 0 || !is_of_wait(frame.file);
  library_ = frame.function;
}

void PythonWaits::add_own(std::uint64_t code, const Look& look) {
  const LimitedCall called{own_ != 0 ? TimeUp::kNotKnown : end_of(library_), own_};
  // Only the instructions show whether a function in C that is called directly waits and then returns.
  const BetweenWaits unknown = called.end == TimeUp::kInC ? BetweenWaits::kLooksOn : BetweenWaits::kMayDecide;
  const BetweenWaits found = look ? look(called) : unknown;
  own_ = code;
  may_decide_ = found == BetweenWaits::kMayDecide;
  is_over_ = found != BetweenWaits::kLeaves;
}

void PythonWaits::add_to_beat(const PythonFrame& frame, std::uint64_t code, const LookAfter& look_after) {
  if (beat_is_over_) return;
  if (is_library_file(frame.file)) {
    beat_is_over_ = returned_ != 0 || !(is_of_wait(frame.file) || frame.file.ends_with(kMeasures));
    called_ = frame.function;
    return;
  }
  const LimitedCall called{returned_ != 0 ? TimeUp::kNotKnown : end_of(called_), returned_};
  PythonBeat beat;
  const AfterWait found = look_after ? look_after(called, &beat) : AfterWait::kMore;
  if (found == AfterWait::kBeats) beat_ = beat;
  beat_is_over_ = found != AfterWait::kReturns;
  returned_ = code;
}

}  // namespace mprun
