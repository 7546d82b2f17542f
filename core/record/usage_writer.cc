#include "record/usage_writer.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "record/line_format.h"
#include "record/line_reader.h"

namespace mprun {
namespace {

constexpr std::uint64_t kLinesOfOneDistance = 1000;
constexpr std::uint64_t kBytesOfOneDistance = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMostDoublings = 24;  // half a year
// Looks are not exactly a second apart.
constexpr Nanos kTolerance = 100 * kNanosPerMilli;

void append_worker(std::string* out, const WorkerView& worker) {
  char text[4 * kNumberRoom];
  char* end = put(text, "[");
  end = put_number(end, worker.worker);
  *end++ = ',';
  end = put_seconds<2>(end, from_seconds(worker.cpu));
  *end++ = ',';
  end = put_number(end, worker.memory);
  *end++ = ']';
  if (out->back() == ']') *out += ',';
  out->append(text, static_cast<std::size_t>(end - text));
}

}  // namespace

void UsageWriter::on_event(const JobEvent& event) {
  const auto* seen = std::get_if<WorkersSeen>(&event);
  if (seen == nullptr || failure_ || !is_due(seen->measured)) return;
  last_ = seen->measured;
  if (!file_) {
    auto opened = open();
    if (!opened) {
      failure_ = opened.error();
      return;
    }
    file_.emplace(std::move(*opened));
  }
  std::string& out = file_->buffer();
  char text[kNumberRoom];
  out += R"({"at":)";
  out.append(text, static_cast<std::size_t>(put_seconds<3>(text, seen->measured) - text));
  out += R"(,"workers":[)";
  for (const WorkerView& worker : seen->workers) {
    if (worker.pid != 0) append_worker(&out, worker);
  }
  out += "]}\n";
  ++lines_;
  if (!file_->flush()) failure_ = file_->failure();
}

bool UsageWriter::is_due(Nanos measured) const {
  const std::uint64_t bytes = file_ ? file_->size() : 0;
  const std::uint64_t doublings = std::max(lines_ / kLinesOfOneDistance, bytes / kBytesOfOneDistance);
  const Nanos distance = kNanosPerSecond << std::min(doublings, kMostDoublings);
  const bool clock_was_set_back = measured < last_;
  return measured != last_ && (clock_was_set_back || measured - last_ >= distance - kTolerance);
}

Result<AppendFile> UsageWriter::open() {
  if (access(path_.c_str(), F_OK) != 0 && errno == ENOENT) return AppendFile::create(path_, "--output");
  const auto bytes = for_each_line(path_, [this](std::string_view, std::uint64_t) { ++lines_; });
  if (!bytes) return bytes.error();
  return AppendFile::reopen(path_, *bytes, "--output");
}

}  // namespace mprun
