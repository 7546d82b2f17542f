// The lines of a file of inputs.
#include "job/input_lines.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

/// Reads all lines and compares them with a plain split of the text.
void check(job::InputLines* lines, std::string_view text, std::size_t longest) {
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::string_view expected = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(expected.size() + 1, text.size()));
    std::string_view line;
    const auto next = lines->next(&line);
    require(lines->number() == ++number, "lines are counted");
    if (expected.size() > longest) {
      require(next == job::InputLines::Next::kTooLong, "a line that is too long is reported");
    } else {
      require(next == job::InputLines::Next::kLine && line == expected, "a line is what stands between newlines");
    }
  }
  std::string_view line;
  require(lines->next(&line) == job::InputLines::Next::kEnd, "there is an end");
}

}  // namespace

void input_lines(std::string_view input) {
  static const Fd file(memfd_create("fuzz", MFD_CLOEXEC));
  static const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  Bytes bytes(input);
  const std::size_t longest = bytes.take<std::uint8_t>();
  const std::string_view text = bytes.rest();
  require(ftruncate(file.get(), 0) == 0 &&
              pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
          "a file can be written");
  auto lines = job::InputLines::open(path, longest);
  require(lines.has_value() && lines->is_regular(), "a file can be opened");
  const auto counted = lines->count();
  require(counted.has_value(), "lines can be counted");
  check(&*lines, text, longest);
  require(*counted == lines->number(), "as many lines are read as were counted");
  lines->rewind();
  check(&*lines, text, longest);
}

}  // namespace mprun::fuzz
