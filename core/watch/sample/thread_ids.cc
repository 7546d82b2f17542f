#include "watch/sample/thread_ids.h"

#include <charconv>
#include <string_view>

#include "watch/sample/architecture.h"

namespace mprun {
namespace {

/// The numbers of the line "NSpid:" of a status file: the id in our namespace first, in its own last (proc(5)).
std::vector<std::uint64_t> namespace_ids(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const auto at = status.find(kKey);
  if (at == std::string_view::npos) return {};
  std::string_view line = status.substr(at + kKey.size());
  line = line.substr(0, line.find('\n'));
  std::vector<std::uint64_t> ids;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
    std::uint64_t id = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    if (error != std::errc()) return ids;
    ids.push_back(id);
    line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
  }
}

std::uint64_t own_id(ProcSource* proc, const std::string& status_path, std::uint64_t otherwise) {
  const auto ids = namespace_ids(proc->read(status_path).value_or(""));
  return ids.empty() ? otherwise : ids.back();
}

}  // namespace

ThreadIds::ThreadIds(ProcSource* proc, pid_t pid) {
  const std::string folder = std::to_string(pid);
  const std::string tasks = folder + "/task/";
  const bool translated = namespace_ids(proc->read(folder + "/status").value_or("")).size() > 1;
  for (const std::string& name : proc->list(folder + "/task").value_or(std::vector<std::string>{})) {
    pid_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec != std::errc() || tid <= 0) continue;
    const auto number = static_cast<std::uint64_t>(tid);
    std::string status = tasks;
    status.append(name).append("/status");
    by_own_id_[translated ? own_id(proc, status, number) : number] = tid;
  }
}

pid_t ThreadIds::of_own_id(std::uint64_t own_id) const {
  const auto found = by_own_id_.find(own_id);
  return found == by_own_id_.end() ? 0 : found->second;
}

pid_t ThreadIds::of_pthread(std::uint64_t pthread, ProcessMemory* memory) const {
  constexpr architecture::PthreadLayout kLayout = architecture::kPthread;
  if (memory->read<std::uint64_t>(pthread + kLayout.self) != pthread + kLayout.self_target) return 0;
  const auto tid = memory->read<std::int32_t>(pthread + kLayout.tid);  // glibc corrects it in a forked child
  return tid && *tid > 0 ? of_own_id(static_cast<std::uint64_t>(*tid)) : 0;
}

}  // namespace mprun
