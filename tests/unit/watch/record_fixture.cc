// record_fixture PID: prints a recording of what the judge asks about a process and all its descendants, two samples
// long, for fixtures/NAME.recording. It omits other processes. `blocked`, next to this, blocks in every possible way.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "procfs/process_table.h"
#include "procfs/process_tree.h"
#include "watch/judge/judge.h"

namespace mprun {
namespace {

// The live system, as if only one tree existed.
class TreeAlone : public ProcSource {
 public:
  TreeAlone(ProcSource* live, pid_t root) : live_(live), tree_(process_tree(live, root, true)) {}
  std::optional<std::string> read(const std::string& path) override { return live_->read(path); }
  std::optional<std::string> link(const std::string& path) override { return live_->link(path); }
  std::optional<std::vector<std::string>> list(const std::string& path) override {
    auto names = live_->list(path);
    if (path != "." || !names) return names;
    std::erase_if(*names, [this](const std::string& name) {
      return std::find(tree_.begin(), tree_.end(), std::atol(name.c_str())) == tree_.end();
    });
    return names;
  }
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    return live_->memory(pid, address, to, size);
  }
  std::optional<std::vector<UnixSocket>> unix_sockets() override {
    auto sockets = live_->unix_sockets();
    if (!sockets) return sockets;
    std::vector<std::uint64_t> ours;
    for (const pid_t pid : tree_) {
      for (const Descriptor& descriptor : read_descriptors(live_, pid).value_or(std::vector<Descriptor>())) {
        if (descriptor.kind == Descriptor::Kind::kSocket) ours.push_back(descriptor.inode);
      }
    }
    std::erase_if(*sockets, [&ours](const UnixSocket& socket) {
      return std::find(ours.begin(), ours.end(), socket.inode) == ours.end();
    });
    return sockets;
  }
  std::optional<Nanos> time_limit(pid_t pid, int fd) override { return live_->time_limit(pid, fd); }
  std::optional<bool> same_memory(pid_t one, pid_t other) override { return live_->same_memory(one, other); }
  std::optional<bool> same_files(pid_t one, pid_t other) override { return live_->same_files(one, other); }

 private:
  ProcSource* live_;
  std::vector<pid_t> tree_;
};

int record(pid_t root) {
  const auto live = live_proc();
  TreeAlone tree(live.get(), root);
  ProcRecorder recorder(&tree);
  const auto sample = [&] { return take_sample(&recorder, process_tree(&recorder, root, true)); };
  const Sample before = sample();
  const timespec pause{0, 50 * kNanosPerMilli};
  nanosleep(&pause, nullptr);
  const Sample after = sample();
  if (before.threads.empty() || !stood_still(before, after)) {
    std::fprintf(stderr, "process %d does not rest\n", root);
    return 1;
  }
  TreeSnapshot snapshot(&recorder, &after, {});
  const Judgement judgement = judge(after, &snapshot);
  for (const JudgedThread& thread : judgement.threads) {
    std::fprintf(stderr, "%d/%d: %s; %s\n", thread.sample->pid, thread.sample->tid, to_string(thread.wait.kind),
                 thread.wait.why_live.empty() ? "stuck unless others help" : thread.wait.why_live.c_str());
  }
  std::printf("# root %d\n%s", root, recorder.recording().c_str());
  return 0;
}

}  // namespace
}  // namespace mprun

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: record_fixture PID\n", stderr);
    return 2;
  }
  return mprun::record(static_cast<pid_t>(std::atol(argv[1])));
}
