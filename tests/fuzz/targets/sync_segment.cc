// The memory that the processes of a job share by name, as mprun reads it: any of them may write anything there.
#include "sync/sync_segment.h"

#include <sys/resource.h>

#include <set>

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr std::uint64_t kWindow = 4096;  // of the bodies, at the start of their memory and at its very end
constexpr unsigned kMostNames = 4;       // many are slow

/// A small segment, as where file sizes are limited: mapping and unmapping one of 256 MiB is slow.
Result<SyncSegment> create_small() {
  rlimit files{};
  require(getrlimit(RLIMIT_FSIZE, &files) == 0, "there is a limit");
  const rlimit small{MPRUN_SYNC_LEAST_BYTES, files.rlim_max};
  require(setrlimit(RLIMIT_FSIZE, &small) == 0, "a limit can be lowered");
  auto segment = SyncSegment::create();
  require(setrlimit(RLIMIT_FSIZE, &files) == 0, "a limit can be raised");
  return segment;
}

/// An offset of a body: in one of the windows, or anywhere.
std::uint64_t take_offset(Bytes* bytes, std::uint64_t size) {
  const auto kind = bytes->take<std::uint8_t>();
  const auto within = bytes->take<std::uint16_t>();
  if (kind % 4 == 0) return sizeof(mprun_sync) + within % kWindow / 8 * 8;
  if (kind % 4 == 1) return size - within % kWindow;
  if (kind % 4 == 2) return within;
  return bytes->take<std::uint64_t>();
}

/// Writes names and bodies as the input directs.
void fill(mprun_sync* memory, Bytes* bytes) {
  const std::uint64_t size = memory->size;
  const auto used = bytes->take<std::uint8_t>();
  memory->used = used == 0xff ? ~std::uint32_t{0} : used % (2 * kMostNames);
  const unsigned names = bytes->take<std::uint8_t>() % kMostNames;
  for (unsigned i = 0; i < names; ++i) {
    mprun_sync_name& name = memory->names[i];
    name.kind = bytes->take<std::uint8_t>() % 8;
    name.body = take_offset(bytes, size);
    const std::string_view text = bytes->take(bytes->take<std::uint8_t>() % (MPRUN_SYNC_NAME + 1));
    std::memcpy(static_cast<char*>(name.name), text.data(), text.size());
  }
  while (!bytes->at_end()) {
    const std::uint64_t at = take_offset(bytes, size);
    const std::string_view body = bytes->take(bytes->take<std::uint8_t>());
    if (at < size && body.size() <= size - at)
      std::memcpy(reinterpret_cast<char*>(memory) + at, body.data(), body.size());
  }
}

}  // namespace

void sync_segment(std::string_view input) {
  auto segment = create_small();
  require(segment.has_value(), "there is a segment");
  const std::uint64_t size = segment->memory()->size;
  Bytes bytes(input);
  fill(segment->memory(), &bytes);

  for (const SyncLoss& loss : segment->on_death()) {
    require(loss.holder.pid > 0, "a loss names its process");
    require(loss.name.size() <= MPRUN_SYNC_NAME, "a name ends with its field");
    require(!to_string(loss).empty(), "a loss has words");
  }
  require(segment->on_death().empty(), "each loss is reported once");
  segment->wake_forgotten();

  std::set<std::uint64_t> asked = {offsetof(mprun_sync, lock), size, ~std::uint64_t{0}};
  for (unsigned i = 0; i < kMostNames; ++i) {
    const std::uint64_t body = segment->memory()->names[i].body;
    asked.insert({body, body + offsetof(mprun_sync_barrier, generation), body + offsetof(mprun_sync_queue, items)});
  }
  for (const std::uint64_t offset : asked) {
    const auto word = segment->find_word(offset);
    require(!word || offset < size, "a word lies in the memory");
    require(!word || word->name.size() <= MPRUN_SYNC_NAME, "a name ends with its field");
    require(!word || sync_kind_name(word->kind) != nullptr, "a kind has a name");
  }
}

}  // namespace mprun::fuzz
