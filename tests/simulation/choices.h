// Choices: the source of all that is random in a schedule, so that a schedule can be replayed from the list of its
// choices, and shrunk by making that list shorter and smaller. By convention 0 is the least eventful choice: a list
// that has run out continues with zeros.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace mprun::simulation {

class Choices {
 public:
  /// New choices, recorded.
  explicit Choices(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1), random_(true) {}
  /// Replays these choices.
  explicit Choices(std::vector<std::uint32_t> list) : list_(std::move(list)) {}

  /// A number below `below`.
  std::uint32_t pick(std::uint32_t below) {
    if (!random_) {
      const std::uint32_t value = used_ < list_.size() ? list_[used_] : 0;
      ++used_;
      return value % below;
    }
    list_.push_back(static_cast<std::uint32_t>(next() >> 32) % below);
    return list_.back();
  }
  /// True once in `n` times, on average.
  bool one_in(std::uint32_t n) { return pick(n) == n - 1 && n > 1; }

  [[nodiscard]] const std::vector<std::uint32_t>& list() const { return list_; }

 private:
  std::uint64_t next() {  // splitmix64, of Steele, Lea and Flood
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_ = 0;
  bool random_ = false;
  std::size_t used_ = 0;
  std::vector<std::uint32_t> list_;
};

}  // namespace mprun::simulation
