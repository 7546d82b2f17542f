#include "record/block_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include "json/document.h"
#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"
#include "record/atomic_file.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCutting = "/cutting.json";

Error cannot_make(const std::string& path, int error_number) {
  return usage_error("cannot make " + path + ": " + std::strerror(error_number) +
                     "; choose another place with --output");
}

/// Brings the name of the directory `path` to disk, whichever process made the directory.
Result<void> keep_name(const std::string& path) {
  const int failed = sync_directory(fs::path(path).parent_path());
  return failed == 0 ? Result<void>() : cannot_make(path, failed);
}

/// Makes the directory `path` and has `fill` fill it, unless it exists; `ours` is a name next to it that only we use.
Result<void> make_whole(const std::string& path, const std::string& ours,
                        const std::function<Result<void>(const std::string&)>& fill) {
  std::error_code error;
  if (fs::exists(path, error)) return keep_name(path);
  if (mkdir(ours.c_str(), kPrivateFolder) != 0 && errno != EEXIST) return cannot_make(ours, errno);
  if (auto filled = fill(ours); !filled) return filled;
  if (const int failed = sync_directory(ours); failed != 0) return cannot_make(path, failed);
  if (std::rename(ours.c_str(), path.c_str()) == 0) return keep_name(path);
  const int error_number = errno;
  const bool there = error_number == ENOTEMPTY || error_number == EEXIST || fs::exists(path, error);
  if (!there) return cannot_make(path, error_number);
  fs::remove_all(ours, error);  // another process was quicker
  return keep_name(path);
}

std::optional<std::uint64_t> number_in(const Json& document, const char* key) {
  const Json number = document.is_object() ? document.value(key, Json()) : Json();
  return number.is_number_unsigned() ? std::optional(number.get<std::uint64_t>()) : std::nullopt;
}

Result<Cutting> read_cutting(const std::string& folder) {
  const auto document = read_document(folder + kCutting, folder);
  if (!document) return document.error();
  const auto tasks = number_in(document->value, "tasks");
  const auto shards = number_in(document->value, "shards");
  if (tasks && *tasks > 0 && shards && *shards > 0 && *shards <= kMostShards) return Cutting{*tasks, *shards};
  return usage_error(folder + kCutting + " was not written by this mprun");
}

std::string words(const Cutting& cutting) {
  return std::to_string(cutting.tasks) + " tasks in " + std::to_string(cutting.shards) + " shards";
}

}  // namespace

Result<BlockDirectory> BlockDirectory::open(const std::string& run_dir, const Cutting& cutting, Shard shard) {
  const std::string folder = run_dir + "/" + kBlocksName;
  const Json wanted = {{"tasks", cutting.tasks}, {"shards", cutting.shards}};
  auto made = make_whole(folder, folder + "-" + folder_of(shard), [&](const std::string& path) {
    return write_atomically(path + kCutting, indented(wanted), OnDisk::kNow);
  });
  if (!made) return made.error();
  const auto there = read_cutting(folder);
  if (!there) return there.error();
  if (there->tasks != cutting.tasks || there->shards != cutting.shards) {
    return usage_error("shard " + to_string(shard) + " would share " + words(cutting) + ", and the run in " + run_dir +
                       " is one of " + words(*there) +
                       "\n  give all shards the same inputs, or choose another directory with --output");
  }
  return BlockDirectory(run_dir, cutting, shard.index);
}

Result<std::optional<BlockDirectory>> BlockDirectory::find(const std::string& run_dir) {
  const std::string folder = run_dir + "/" + kBlocksName;
  std::error_code error;
  const bool there = fs::exists(folder, error);
  if (error) return system_error("cannot look at " + folder, error.value());
  if (!there) return std::optional<BlockDirectory>();
  const auto cutting = read_cutting(folder);
  if (!cutting) return cutting.error();
  return std::optional(BlockDirectory(run_dir, *cutting, 0));
}

std::string BlockDirectory::folder(std::uint64_t share) const {
  return run_dir_ + "/" + kBlocksName + "/" + folder_of({share, cutting_.shards});
}

Result<void> BlockDirectory::make(std::uint64_t share) const {
  const std::string ours = folder(share) + "-" + folder_of({shard_, cutting_.shards});
  return make_whole(folder(share), ours, [&](const std::string& path) -> Result<void> {
    for (std::uint64_t index = 0; index < cutting_.blocks_in(share); ++index) {
      const std::string file = path + "/" + to_string(BlockName{BlockState::kFree, index, 0});
      if (!open_fd(file, O_WRONLY | O_CREAT, 0600)) return cannot_make(file, errno);
    }
    return {};
  });
}

Result<std::vector<BlockName>> BlockDirectory::list(std::uint64_t share) const {
  std::vector<BlockName> blocks;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder(share), error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (const auto name = parse_block_name(entry->path().filename().string())) blocks.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return internal_error("cannot read " + folder(share) + ": " + error.message());
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockName& one, const BlockName& other) { return one.index < other.index; });
  return blocks;
}

Result<DoneBlocks> BlockDirectory::look_at_all() const {
  DoneBlocks found;
  found.cutting = cutting_;
  found.shards.assign(cutting_.shards * kBlocksPerShare, UINT64_MAX);
  found.free = cutting_.tasks;
  for (std::uint64_t share = 0; share < cutting_.shards; ++share) {
    const auto blocks = list(share);
    if (!blocks) return blocks.error();
    for (const BlockName& name : *blocks) {
      const std::uint64_t tasks = cutting_.tasks_in({share, name.index}).size().value_or(0);
      if (name.state != BlockState::kFree) found.free -= tasks;
      if (name.state == BlockState::kHeld) found.held[name.shard] += tasks;
      if (name.state == BlockState::kDone) found.shards[share * kBlocksPerShare + name.index] = name.shard;
    }
  }
  return found;
}

// A network file system may have renamed the file, lost its answer, and found nothing when the request was repeated.
// Then the new name, which only we use, exists.
bool BlockDirectory::rename(std::uint64_t share, const BlockName& from, const BlockName& to) const {
  const std::string path = folder(share) + "/";
  const bool renamed = std::rename((path + to_string(from)).c_str(), (path + to_string(to)).c_str()) == 0;
  if (!renamed && (to.state == BlockState::kFree || !has(share, to))) return false;
  // The results it stands for are on disk already. If the name does not get there, this shard still holds the block.
  if (to.state == BlockState::kDone) (void)sync_directory(path);
  return true;
}

// open(2) asks the server of a network file system; stat(2) may answer from a cache.
bool BlockDirectory::has(std::uint64_t share, const BlockName& name) const {
  return static_cast<bool>(open_fd(folder(share) + "/" + to_string(name), O_RDONLY));
}

std::string BlockDirectory::heartbeat_path(std::uint64_t shard) const {
  return run_dir_ + "/shards/" + folder_of({shard, cutting_.shards}) + "/heartbeat";
}

void BlockDirectory::beat(std::string_view text) const {
  // A heartbeat that cannot be written has stopped, as far as other shards can see. They act on that.
  (void)write_atomically(heartbeat_path(shard_), text, OnDisk::kLater);
}

std::string BlockDirectory::heartbeat(std::uint64_t shard) const { return read_if_there(heartbeat_path(shard)); }

}  // namespace mprun
