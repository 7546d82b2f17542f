// A stream of frames that arrives in pieces, as from a worker that writes arbitrary bytes.
#include "wire/frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "fuzz_support.h"
#include "os/fd.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr std::size_t kMostPieces = 64;  // about; every one is two system calls
constexpr std::size_t kReadSize = 512;   // filling small buffers is fast

using Frames = std::vector<std::pair<std::uint16_t, std::string>>;

Pipe open_pipe() {
  auto made = make_pipe();
  require(made.has_value(), "there is a pipe");
  set_nonblocking(made->read.get());
  return std::move(*made);
}

/// The frames of the stream up to its end or to the first invalid header, for which `corrupt` is set.
Frames expected_frames(std::string_view stream, bool* corrupt) {
  Frames frames;
  Bytes bytes(stream);
  while (bytes.rest().size() >= sizeof(mprun_frame)) {
    const auto header = bytes.take<mprun_frame>();
    *corrupt = header.magic != MPRUN_FRAME_MAGIC || header.size > MPRUN_MAX_PAYLOAD;
    if (*corrupt || header.size > bytes.rest().size()) break;
    frames.emplace_back(header.type, bytes.take(header.size));
  }
  return frames;
}

}  // namespace

void frames(std::string_view input) {
  static const Pipe pipe = open_pipe();
  Bytes bytes(input);
  const std::size_t wanted = std::size_t{1} + std::size_t{8} * bytes.take<std::uint8_t>();
  const std::string_view stream = bytes.rest().substr(0, std::size_t{16} * 1024);  // what a pipe takes at once
  const std::size_t piece = std::max(wanted, stream.size() / kMostPieces);
  FrameReader reader(kReadSize);
  Frames frames;
  for (Bytes left(stream); !left.at_end();) {
    const std::string_view part = left.take(piece);
    require(write(pipe.write.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()), "a pipe has room");
    for (std::size_t read = 0; read < part.size(); read += kReadSize) {
      require(reader.fill(pipe.read.get()) == FrameReader::Fill::kMore, "what was written is there");
      for (Frame frame; reader.next(&frame);) frames.emplace_back(frame.type, frame.payload);
    }
  }
  bool corrupt = false;
  require(frames == expected_frames(stream, &corrupt), "frames do not depend on the pieces they come in");
  require(reader.corrupt() == corrupt, "a stream is corrupt where a header is none");
}

}  // namespace mprun::fuzz
