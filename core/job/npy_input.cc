#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "job/input_sources.h"
#include "job/npy_header.h"
#include "os/fd.h"

namespace mprun::job {

namespace {

/// Gives row numbers only: the workers map the file and cut their rows out of it.
class RowSource final : public InputSource {
 public:
  RowSource(std::int64_t rows, std::optional<std::int64_t> batch) : rows_(rows), batch_(batch) {}
  Pull pull(std::string* out) override {
    if (next_ >= rows_) return Pull::kEnd;
    if (!batch_) {
      *out += std::to_string(next_++);
      return Pull::kItem;
    }
    const std::int64_t stop = next_ + std::min(*batch_, rows_ - next_);
    *out += "[" + std::to_string(next_) + "," + std::to_string(stop) + "]";
    next_ = stop;
    return Pull::kItem;
  }
  [[nodiscard]] std::optional<std::uint64_t> total() const override {
    const std::int64_t step = batch_.value_or(1);
    return static_cast<std::uint64_t>(rows_ / step + (rows_ % step == 0 ? 0 : 1));
  }
  [[nodiscard]] std::optional<std::uint64_t> rows() const override {
    return batch_ ? std::optional(static_cast<std::uint64_t>(rows_)) : std::nullopt;
  }

 private:
  std::int64_t rows_;
  std::optional<std::int64_t> batch_;
  std::int64_t next_ = 0;
};

Result<NpyHeader> read_header(const std::string& path) {
  // O_NONBLOCK: a FIFO of that name must not make mprun wait
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0)
    return usage_error(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return usage_error("is not a regular file, which npy inputs must be");
  std::string head(kLongestNpyHeader, '\0');
  const ssize_t n = pread(file.get(), head.data(), head.size(), 0);
  if (n < 0) return usage_error(std::string("cannot be read: ") + std::strerror(errno));
  head.resize(static_cast<std::size_t>(n));
  return parse_npy_header(head, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace

SourceResult open_npy(const NpyInput& input) {
  Result<NpyHeader> header = read_header(input.path);
  if (!header) return usage_error(input.path + ": " + header.error().message);
  if (header->shape.empty()) return usage_error(input.path + ": holds a single number, which has no rows");
  if (header->fortran_order && header->shape.size() > 1) {
    return usage_error(input.path +
                       ": is in Fortran order, its rows are not contiguous; save numpy.ascontiguousarray(a)");
  }
  if (header->shape.front() == 0) return usage_error(input.path + ": has no inputs: the array has no rows");
  return std::unique_ptr<InputSource>(std::make_unique<RowSource>(header->shape.front(), input.batch));
}

}  // namespace mprun::job
