// A file of JSON lines: as a regular file, checked when opened, and as a pipe, checked line by line.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "fuzz_support.h"
#include "job/inputs.h"
#include "json/json_syntax.h"
#include "os/fd.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr std::size_t kMostText = std::size_t{32} * 1024;  // a pipe takes it at once

/// All inputs of a source; `bad` counts those it refused.
std::vector<std::string> pull_all(InputSource* source, std::size_t* bad) {
  std::vector<std::string> items;
  for (;;) {
    std::string item;
    switch (source->pull(&item)) {
      case InputSource::Pull::kItem:
        require(item.find('\n') == std::string::npos, "an input is one line");
        require(!check_json(item), "an input is JSON");
        items.push_back(std::move(item));
        break;
      case InputSource::Pull::kBad:
        require(!item.empty() && item.size() < 500, "what is bad has a reason, in few words");
        ++*bad;
        break;
      default:
        return items;
    }
  }
}

JobSpec spec_of(const Fd& fd) {
  JobSpec spec;
  spec.inputs = JsonlInput{"/proc/self/fd/" + std::to_string(fd.get())};
  return spec;
}

}  // namespace

void jsonl(std::string_view input) {
  static const Fd file(memfd_create("fuzz", MFD_CLOEXEC));
  const std::string_view text = input.substr(0, kMostText);
  require(ftruncate(file.get(), 0) == 0 &&
              pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
          "a file can be written");
  auto from_file = open_inputs(spec_of(file));
  require(from_file || from_file.error().message.size() < 500, "messages are short");

  auto pipe = make_pipe();
  require(pipe && write(pipe->write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "a pipe");
  auto from_pipe = open_inputs(spec_of(pipe->read));
  require(from_pipe.has_value(), "a pipe is not read beforehand");
  pipe->write.reset();
  std::size_t bad = 0;
  const auto piped = pull_all(from_pipe->get(), &bad);
  require(from_file.has_value() == (bad == 0 && !piped.empty()), "a file and a pipe of the same text are as good");
  if (!from_file) return;
  require(pull_all(from_file->get(), &bad) == piped && bad == 0, "a file and a pipe of the same text hold the same");
  require((*from_file)->total() == piped.size(), "as many inputs are read as were counted");
}

}  // namespace mprun::fuzz
