#include "cluster/blocks.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace mprun {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"free", "held", "done"};

/// Which of `count` parts of [0, total) contains `item`.
std::uint64_t part_with(std::uint64_t item, std::uint64_t total, std::uint64_t count) {
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (tasks_of({middle, count}, total).begin <= item ? low : high) = middle;
  }
  return low;
}

/// Takes a dot and a number off the start of `*text`.
std::optional<std::uint64_t> take_number(std::string_view* text) {
  std::uint64_t number = 0;
  if (text->empty() || text->front() != '.') return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data() + 1, end, number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(stop - text->data()));
  return number;
}

}  // namespace

std::uint64_t Cutting::blocks_in(std::uint64_t share) const {
  return std::min(kBlocksPerShare, tasks_of({share, shards}, tasks).size().value_or(0));
}

ShardTasks Cutting::tasks_in(BlockId block) const {
  const ShardTasks all = tasks_of({block.share, shards}, tasks);
  const ShardTasks part = tasks_of({block.index, blocks_in(block.share)}, all.size());
  return {all.begin + part.begin, all.begin + part.end, 1};
}

BlockId Cutting::block_of(std::uint64_t task) const {
  const std::uint64_t share = part_with(task, tasks, shards);
  const ShardTasks all = tasks_of({share, shards}, tasks);
  return {share, part_with(task - all.begin, all.end - all.begin, blocks_in(share))};
}

std::string to_string(const BlockName& name) {
  std::string text(kStates[static_cast<std::size_t>(name.state)]);
  text += "." + std::to_string(name.index);
  if (name.state != BlockState::kFree) text += "." + folder_of({name.shard, kMostShards});
  return text;
}

std::optional<BlockName> parse_block_name(std::string_view text) {
  const auto* const state = std::find(kStates.begin(), kStates.end(), text.substr(0, text.find('.')));
  if (state == kStates.end()) return std::nullopt;
  BlockName name;
  name.state = static_cast<BlockState>(state - kStates.begin());
  text.remove_prefix(state->size());
  const auto index = take_number(&text);
  if (!index || *index >= kBlocksPerShare) return std::nullopt;
  name.index = *index;
  if (name.state != BlockState::kFree) {
    const auto shard = take_number(&text);
    if (!shard || *shard < 1 || *shard > kMostShards) return std::nullopt;
    name.shard = *shard - 1;
  }
  if (!text.empty()) return std::nullopt;
  return name;
}

bool Heartbeats::has_stopped(std::uint64_t shard, std::string_view text, Nanos now) {
  const auto [last, first] = last_.try_emplace(shard, Heartbeat{std::string(text), now});
  if (!first && last->second.text != text) last->second = {std::string(text), now};
  return text == kLeft || now - last->second.since >= patience_;
}

void Heartbeats::look(Nanos now) {
  if (now - looked_ > patience_ / 2) last_.clear();
  looked_ = now;
}

}  // namespace mprun
