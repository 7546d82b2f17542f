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

}  // namespace

std::optional<std::set<pid_t>> numbers_of_processes(std::uint64_t object, const PythonLayout& layout,
                                                    ProcessMemory* memory) {
  const PythonObjects objects(layout, memory);
  std::set<pid_t> numbers;
  for (const std::uint64_t attribute : objects.attributes_of(object)) {
    if (!objects.is_a(attribute, "list")) continue;
    const auto items = objects.items_of(attribute);
    if (!items) return std::nullopt;
    std::set<pid_t> of_list;
    const auto is_process = [&](std::uint64_t item) { return add_numbers(item, objects, &of_list); };
    const auto count = static_cast<std::size_t>(std::count_if(items->begin(), items->end(), is_process));
    if (count != 0 && count != items->size()) return std::nullopt;
    numbers.merge(of_list);
  }
  return numbers.empty() ? std::nullopt : std::optional(numbers);
}

}  // namespace mprun
