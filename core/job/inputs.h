// InputSource: the tasks' inputs, read one by one and never held: ten million tasks cost no objects.
// Used by the supervisor, which pulls when a worker can take more. Owns its open file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/shard.h"
#include "job/spec.h"

namespace mprun {

class InputSource {
 public:
  enum class Pull {
    kItem,  ///< one input was appended to `out`
    kEnd,   ///< there are no more
    kWait,  ///< none yet (standard input): wait until wait_fd() is readable
    kBad,   ///< this input is unreadable; `out` holds the reason; later pulls go on behind it
  };
  virtual ~InputSource() = default;

  /// Appends the next input as one JSON text without newlines to `*out`. For command jobs
  /// the text of a JSON string is what replaces {} (other values: their JSON text).
  virtual Pull pull(std::string* out) = 0;

  /// Passes over that many inputs, as so many pulls would.
  virtual void skip(std::uint64_t count);

  /// The number of inputs where it is known before they are read.
  [[nodiscard]] virtual std::optional<std::uint64_t> total() const = 0;

  /// The number of rows of all batches together, where inputs are batches of rows: [begin, end) as JSON.
  [[nodiscard]] virtual std::optional<std::uint64_t> rows() const { return std::nullopt; }

  /// The file descriptor to wait for after kWait; -1 where pull() never waits.
  [[nodiscard]] virtual int wait_fd() const { return -1; }
};

/// Opens what `spec.inputs` names and checks all that can be checked before a launch: existence,
/// JSON of every line of a regular jsonl file (arrays were checked by resolve()). kUsage errors say file and line.
/// Empty inputs are an error too, except on standard input, where they are not known yet.
/// For ranks (no inputs): a source with one `null` per process, of all shards.
[[nodiscard]] Result<std::unique_ptr<InputSource>> open_inputs(const JobSpec& spec);

/// Of all inputs those from tasks.begin on to before tasks.end, one after the other, whatever tasks.step is; nothing in
/// front of them is read where that can be avoided. total() becomes that of the part.
[[nodiscard]] std::unique_ptr<InputSource> open_part(std::unique_ptr<InputSource> all, const ShardTasks& tasks);

}  // namespace mprun
