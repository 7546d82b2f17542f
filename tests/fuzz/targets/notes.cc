// Datagrams to the notes socket, as any process of the same user may send them.
#include "wire/notes.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

constexpr std::size_t kMostDatagrams = 8;  // a socket's queue has room for ten

std::size_t send_notes(const NoteBox& box, std::string_view input) {
  static const Fd sender(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path) + 1, box.address().data(), box.address().size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + box.address().size());
  std::size_t sent = 0;
  for (Bytes bytes(input); !bytes.at_end() && sent < kMostDatagrams; ++sent) {
    const std::string_view text = bytes.take(bytes.take<std::uint8_t>() * std::size_t{12});
    require(sendto(sender.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&address), size) >= 0,
            "a datagram can be sent");
  }
  return sent;
}

}  // namespace

void notes(std::string_view input) {
  auto box = NoteBox::open();
  require(box.has_value(), "there is a box");
  const std::size_t sent = send_notes(*box, input);
  const auto notes = box->take();
  require(notes.size() <= sent, "no note is made up");
  for (const AdapterNote& note : notes) {
    require(note.pid == getpid(), "the kernel names the sender");
    require(note.adapter.size() + note.text.size() <= 2048, "notes are bounded");
    require(note.adapter.find('\n') == std::string::npos, "the first line names the adapter");
    require(!to_string(note).empty(), "a note has words");
  }
  (void)send_notes(*box, input);
  for (const AdapterNote& note : box->take()) {
    require(note.adapter == kHistoryNotes, "a repeated note is reported once, except for the history");
  }
}

}  // namespace mprun::fuzz
