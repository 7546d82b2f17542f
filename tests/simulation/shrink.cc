#include <algorithm>

#include "schedule.h"

namespace mprun::simulation {
namespace {

/// Tries changes to a list; keeps those after which the same rule is still broken.
class Shrinker {
 public:
  Shrinker(std::vector<std::uint32_t> list, std::string failure)
      : best_(std::move(list)), failure_(std::move(failure)) {}

  std::vector<std::uint32_t> run() {
    for (bool better = true; better && tries_ > 0;) {
      better = drop_parts();
      better = zero_parts() || better;
      better = lower_values() || better;
    }
    return best_;
  }

 private:
  bool keep(std::vector<std::uint32_t> list) {
    if (tries_ == 0) return false;
    --tries_;
    while (!list.empty() && list.back() == 0) list.pop_back();  // zeros follow anyway
    if (list == best_) return false;
    Choices choices(list);
    Stats stats;
    if (run_schedule(&choices, &stats, nullptr) != failure_) return false;
    best_ = std::move(list);
    return true;
  }

  bool drop_parts() {
    bool better = false;
    for (std::size_t size = std::max<std::size_t>(best_.size() / 2, 1); size > 0; size /= 2) {
      for (std::size_t from = 0; from < best_.size();) {
        std::vector<std::uint32_t> shorter = best_;
        const auto begin = shorter.begin() + static_cast<std::ptrdiff_t>(from);
        shorter.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, best_.size() - from)));
        if (keep(std::move(shorter))) {
          better = true;
        } else {
          from += size;
        }
      }
    }
    return better;
  }

  bool zero_parts() {
    bool better = false;
    for (const std::size_t size : {16U, 4U, 1U}) {
      for (std::size_t from = 0; from < best_.size(); from += size) {
        std::vector<std::uint32_t> duller = best_;
        const auto begin = duller.begin() + static_cast<std::ptrdiff_t>(from);
        std::fill(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, duller.size() - from)), 0);
        better = keep(std::move(duller)) || better;
      }
    }
    return better;
  }

  bool lower_values() {
    bool better = false;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      for (const std::uint32_t value : {i < best_.size() ? best_[i] / 2 : 0, i < best_.size() ? best_[i] - 1 : 0}) {
        if (i >= best_.size() || best_[i] == 0 || value >= best_[i]) continue;
        std::vector<std::uint32_t> lower = best_;
        lower[i] = value;
        better = keep(std::move(lower)) || better;
      }
    }
    return better;
  }

  std::vector<std::uint32_t> best_;
  std::string failure_;
  int tries_ = 20'000;
};

}  // namespace

std::vector<std::uint32_t> shrink(std::vector<std::uint32_t> list, const std::string& failure) {
  return Shrinker(std::move(list), failure).run();
}

}  // namespace mprun::simulation
