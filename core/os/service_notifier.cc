#include "os/service_notifier.h"

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace mprun {
namespace {

constexpr Nanos kNanosPerMicro = 1000;

std::optional<std::int64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

ServiceNotifier ServiceNotifier::from_environment(pid_t service) {
  ServiceNotifier notifier;
  const char* path = std::getenv("NOTIFY_SOCKET");
  const std::size_t length = path == nullptr ? 0 : std::strlen(path);
  const bool is_known = length > 1 && length < sizeof notifier.address_.sun_path && (*path == '/' || *path == '@');
  if (!is_known) return notifier;
  notifier.address_.sun_family = AF_UNIX;
  std::memcpy(notifier.address_.sun_path, path, length);
  if (*path == '@') notifier.address_.sun_path[0] = '\0';
  notifier.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  notifier.socket_ = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto period = number_in("WATCHDOG_USEC");
  if (period && *period > 0 && number_in("WATCHDOG_PID").value_or(service) == service) {
    notifier.alive_every_ = *period * kNanosPerMicro / 2;
  }
  return notifier;
}

// A service manager that does not read would stop us: its loss is its own.
void ServiceNotifier::send(std::string_view words) const {
  if (!socket_) return;
  sendto(socket_.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address_), size_);
}

}  // namespace mprun
