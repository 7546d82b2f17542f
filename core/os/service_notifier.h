// ServiceNotifier: tells a service manager that mprun is ready and alive, by datagrams as sd_notify(3) sends them. Used
// by the engine, in the supervisor's process; owns its socket. Without NOTIFY_SOCKET it does nothing.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <array>
#include <string_view>

#include "base/clock.h"
#include "os/fd.h"

namespace mprun {

/// The variables that a service manager sets for mprun alone: what it starts does not get them.
inline constexpr std::array<std::string_view, 3> kServiceVariables = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

class ServiceNotifier {
 public:
  /// Reads kServiceVariables. `service`: the process that the service manager has started. A watchdog that is meant
  /// for another process, or a socket with an address of another kind than a path or an abstract name, is ignored.
  [[nodiscard]] static ServiceNotifier from_environment(pid_t service);

  /// Half the time within which the service manager expects alive(); 0: it has no watchdog.
  [[nodiscard]] Nanos alive_every() const { return alive_every_; }
  void ready() const { send("READY=1"); }
  void alive() const { send("WATCHDOG=1"); }

 private:
  void send(std::string_view words) const;

  Fd socket_;
  sockaddr_un address_{};
  socklen_t size_ = 0;  ///< of the address
  Nanos alive_every_ = 0;
};

}  // namespace mprun
