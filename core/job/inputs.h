// InputSource: the tasks' inputs, read one by one and not stored: ten million tasks cost no objects. Used by the
// supervisor, which pulls when a worker can take more. Owns its open file.
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
    kBad,   ///< this input is unreadable; `out` holds the reason; later pulls go on after it
  };
  virtual ~InputSource() = default;

  /// Appends the next input as one JSON text without newlines to `*out`. In command jobs the text of a JSON string
  /// replaces {} (other values: their JSON text).
  virtual Pull pull(std::string* out) = 0;

  /// Skips that many inputs, as that many pulls would.
  virtual void skip(std::uint64_t count);

  /// The number of inputs, if it is known before they are read.
  [[nodiscard]] virtual std::optional<std::uint64_t> total() const = 0;

  /// The total number of rows of all batches, if inputs are batches of rows: [begin, end) as JSON.
  [[nodiscard]] virtual std::optional<std::uint64_t> rows() const { return std::nullopt; }

  /// The file descriptor to wait for after kWait; -1 if pull() never waits.
  [[nodiscard]] virtual int wait_fd() const { return -1; }
};

/// Opens what `spec.inputs` names and checks everything that can be checked before a launch: existence, and the JSON of
/// every line of a regular jsonl file (resolve() has checked arrays). kUsage errors name file and line. Empty inputs
/// are an error too, except on standard input, where they are not known yet. For ranks (no inputs): a source with one
/// `null` for each process of all shards.
[[nodiscard]] Result<std::unique_ptr<InputSource>> open_inputs(const JobSpec& spec);

/// The inputs from tasks.begin to before tasks.end, one after the other, whatever tasks.step is. Inputs before them are
/// not read where that can be avoided. total() becomes that of the part.
[[nodiscard]] std::unique_ptr<InputSource> open_part(std::unique_ptr<InputSource> all, const ShardTasks& tasks);

}  // namespace mprun
