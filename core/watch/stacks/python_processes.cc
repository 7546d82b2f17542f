#include "watch/stacks/python_processes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "watch/stacks/python_object.h"

namespace mprun {
namespace {

class PythonObjects {
 public:
  PythonObjects(const PythonLayout& layout, ProcessMemory* memory) : layout_(layout), memory_(memory) {}

  [[nodiscard]] std::vector<std::uint64_t> attributes_of(std::uint64_t object) const {
    return attribute_values(object, kMostAttributes, layout_, memory_);
  }
  [[nodiscard]] bool is_a(std::uint64_t object, std::string_view type) const {
    std::array<char, 16> name{};
    const std::uint64_t name_at = object == 0 ? 0 : word(word(object + kTypeOf) + kNameOf);
    return name_at != 0 && memory_->read(name_at, name.data(), type.size() + 1) &&
           std::string_view(name.data(), type.size() + 1) == std::string_view(type.data(), type.size() + 1);
  }
  // nullopt: it is too long.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> items_of(std::uint64_t list) const {
    const std::uint64_t size = word(list + kSize);
    if (size > kMostItems) return std::nullopt;
    std::vector<std::uint64_t> items(size);
    if (!memory_->read(word(list + kItemsOf), items.data(), size * sizeof items[0])) return std::nullopt;
    return items;
  }
  // A number of one digit, not negative.
  [[nodiscard]] std::optional<pid_t> number_of(std::uint64_t object) const {
    if (!is_a(object, "int") || word(object + kDigitsOf) != (layout_.minor < 12 ? 1 : 1U << 3U)) return std::nullopt;
    return memory_->read<pid_t>(object + kFirstDigitOf);
  }
  // For a bool.
  [[nodiscard]] bool is_true(std::uint64_t object) const {
    return memory_->read<std::uint32_t>(object + kFirstDigitOf).value_or(1) != 0;
  }

 private:
  static constexpr std::uint64_t kTypeOf = 8, kNameOf = 24, kSize = 16, kItemsOf = 24, kDigitsOf = 16,
                                 kFirstDigitOf = 24;
  static constexpr std::size_t kMostAttributes = 64, kMostItems = 4096;

  [[nodiscard]] std::uint64_t word(std::uint64_t address) const {
    return memory_->read<std::uint64_t>(address).value_or(0);
  }
  const PythonLayout& layout_;
  ProcessMemory* memory_;
};

// Process._popen is a Popen of popen_fork.py, popen_spawn_posix.py or popen_forkserver.py; its `pid` is a number.
bool add_numbers(std::uint64_t process, const PythonObjects& objects, std::set<pid_t>* numbers) {
  bool found = false;
  for (const std::uint64_t attribute : objects.attributes_of(process)) {
    if (!objects.is_a(attribute, "Popen")) continue;
    for (const std::uint64_t value : objects.attributes_of(attribute)) {
      const auto number = objects.number_of(value);
      if (number) numbers->insert(*number);
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
