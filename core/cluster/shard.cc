#include "cluster/shard.h"

#include <charconv>

namespace mprun {
namespace {

/// floor(total * part / count) without overflow.
std::uint64_t share(std::uint64_t total, std::uint64_t part, std::uint64_t count) {
  return total / count * part + total % count * part / count;
}

}  // namespace

std::optional<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto count = std::from_chars(index.ptr + 1, end, shard.count);
  if (count.ec != std::errc() || count.ptr != end || shard.count > kMostShards) return std::nullopt;
  if (shard.index < 1 || shard.index > shard.count) return std::nullopt;
  --shard.index;
  return shard;
}

std::string to_string(Shard shard) { return std::to_string(shard.index + 1) + "/" + std::to_string(shard.count); }

std::string folder_of(Shard shard) { return std::to_string(shard.index + 1); }

std::optional<std::uint64_t> ShardTasks::size() const {
  if (end == UINT64_MAX) return std::nullopt;
  return empty() ? 0 : (end - begin - 1) / step + 1;
}

ShardTasks tasks_of(Shard shard, std::optional<std::uint64_t> total) {
  if (!total) return {shard.index, UINT64_MAX, shard.count};
  return {share(*total, shard.index, shard.count), share(*total, shard.index + 1, shard.count), 1};
}

std::string tasks_text(const ShardTasks& tasks) {
  const std::uint64_t last = tasks.end - 1;
  if (last == tasks.begin) return "task " + std::to_string(last);
  return "tasks " + std::to_string(tasks.begin) + " to " + std::to_string(last);
}

std::string describe(Shard shard, const ShardTasks& tasks) {
  std::string text = "shard " + folder_of(shard) + " of " + std::to_string(shard.count) + ": ";
  if (tasks.empty()) return text + "no tasks, there are more shards than tasks";
  if (tasks.end == UINT64_MAX) {
    return text + "tasks " + std::to_string(tasks.begin) + ", " + std::to_string(tasks.begin + tasks.step) + ", " +
           std::to_string(tasks.begin + 2 * tasks.step) + " and so on";
  }
  return text + tasks_text(tasks);
}

}  // namespace mprun
