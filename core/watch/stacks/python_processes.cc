#include "watch/stacks/python_processes.h"

#include <algorithm>
#include <vector>

#include "procfs/process_facts.h"

#include "watch/stacks/python_object.h"

namespace mprun {
namespace {

// Process._popen is a Popen of popen_fork.py, popen_spawn_posix.py or popen_forkserver.py; its `pid` is a number.
bool add_numbers(std::uint64_t process, const PythonObjects& objects, std::set<pid_t>* numbers) {
  bool found = false;
  for (const std::uint64_t attribute : objects.attributes_of(process)) {
    if (!objects.is_a(attribute, "Popen")) continue;
    for (const std::uint64_t value : objects.attributes_of(attribute)) {
      const auto number = objects.number_of(value);
      if (number) numbers->insert(static_cast<pid_t>(*number));
      found = found || number;
    }
  }
  return found;
}

// The only list of booleans that is as long as `list`; nullptr: there is none, or more than one.
const std::vector<std::uint64_t>* flags_for(const std::vector<std::uint64_t>& list,
                                            const std::vector<std::vector<std::uint64_t>>& lists,
                                            const PythonObjects& objects) {
  const std::vector<std::uint64_t>* flags = nullptr;
  for (const std::vector<std::uint64_t>& other : lists) {
    const auto is_flag = [&](std::uint64_t item) { return objects.is_a(item, "bool"); };
    if (other.size() != list.size() || !std::all_of(other.begin(), other.end(), is_flag)) continue;
    if (flags != nullptr) return nullptr;
    flags = &other;
  }
  return flags;
}

}  // namespace

bool is_forkserver(ProcSource* proc, pid_t pid) {
  const auto command = proc->read(std::to_string(pid) + "/cmdline");
  if (!command || command->find("from multiprocessing.forkserver import main") == std::string::npos) return false;
  const auto text = proc->read(std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  return stat && !stat->forked;
}

std::optional<std::set<pid_t>> numbers_of_processes(std::uint64_t object, const PythonLayout& layout,
                                                    ProcessMemory* memory) {
  const PythonObjects objects(layout, memory);
  std::vector<std::vector<std::uint64_t>> lists;
  for (const std::uint64_t attribute : objects.attributes_of(object)) {
    if (!objects.is_a(attribute, "list")) continue;
    auto items = objects.items_of(attribute);
    if (!items) return std::nullopt;
    lists.push_back(std::move(*items));
  }
  std::set<pid_t> numbers;
  for (const std::vector<std::uint64_t>& list : lists) {
    const std::vector<std::uint64_t>* flags = flags_for(list, lists, objects);
    std::size_t found = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::set<pid_t> of_process;
      if (!add_numbers(list[i], objects, &of_process)) continue;
      ++found;
      if (flags == nullptr || objects.is_true((*flags)[i])) numbers.merge(of_process);
    }
    if (found != 0 && found != list.size()) return std::nullopt;
  }
  return numbers.empty() ? std::nullopt : std::optional(numbers);
}

}  // namespace mprun
