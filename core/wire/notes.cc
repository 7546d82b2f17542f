#include "wire/notes.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

constexpr std::size_t kMostText = 2048;
// Beyond this many different texts the rest is dropped: a program must not fill mprun's memory.
constexpr std::size_t kMostTexts = 1000;
// Notes taken at once: however fast a program sends them, mprun has time for other work.
constexpr int kMostAtOnce = 1000;

std::string unguessable_name() {
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) bytes.fill(0);  // the sender's user is checked anyway
  std::string name = "mprun-" + std::to_string(getpid()) + "-";
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    name += kDigits[byte >> 4U];
    name += kDigits[byte & 15U];
  }
  return name;
}

// The sender's credentials, which the kernel vouches for.
std::optional<ucred> sender_of(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    return sender;
  }
  return std::nullopt;
}

}  // namespace

Result<NoteBox> NoteBox::open() {
  Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("cannot make a socket", errno);
  const int on = 1;
  std::string name = unguessable_name();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path) + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return system_error("cannot listen for the adapters", errno);
  }
  return NoteBox(std::move(fd), std::move(name));
}

std::vector<AdapterNote> NoteBox::take() {
  std::vector<AdapterNote> notes;
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    std::array<char, kMostText> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = uninterrupted([&] { return recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC); });
    if (size < 0) return notes;
    const auto sender = sender_of(&message);
    const std::string_view said(text.data(), static_cast<std::size_t>(size));
    const auto end = said.find('\n');
    if (!sender || (sender->uid != geteuid() && sender->uid != 0) || end == std::string_view::npos) continue;
    if (said.substr(0, end) == kHistoryNotes) {
      notes.push_back({sender->pid, kHistoryNotes, std::string(said.substr(end + 1))});
      continue;
    }
    if (seen_.size() > kMostTexts || !seen_.emplace(said).second) continue;
    if (seen_.size() > kMostTexts) {
      notes.push_back(
          {sender->pid, "notes",
           "the adapters said more than " + std::to_string(kMostTexts) + " different things: the rest is left out"});
      continue;
    }
    notes.push_back({sender->pid, std::string(said.substr(0, end)), std::string(said.substr(end + 1))});
  }
  return notes;
}

std::string to_string(const AdapterNote& note) {
  return note.text + " [" + note.adapter + ", pid " + std::to_string(note.pid) + "]";
}

}  // namespace mprun
