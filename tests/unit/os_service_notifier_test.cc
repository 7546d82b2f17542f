// What a service manager hears: a socket of the test takes its place.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "os/service_notifier.h"

namespace mprun {
namespace {

class ServiceNotifierTest : public testing::Test {
 protected:
  ~ServiceNotifierTest() override {
    for (const std::string_view name : kServiceVariables) unsetenv(std::string(name).c_str());
  }
  /// `name` as in NOTIFY_SOCKET.
  void listen(std::string name) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    if (name[0] == '@') name[0] = '\0';
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    manager_ = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(bind(manager_.get(), reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  [[nodiscard]] std::string heard() const {
    std::array<char, 100> text{};
    const ssize_t size = recv(manager_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
  }
  [[nodiscard]] std::string path() const { return testing::TempDir() + "mprun-notify-" + std::to_string(getpid()); }
  Fd manager_;
};

TEST_F(ServiceNotifierTest, SendsToAPath) {
  listen(path());
  const auto notifier = ServiceNotifier::from_environment(getpid());
  notifier.ready();
  EXPECT_EQ(heard(), "READY=1");
  notifier.alive();
  EXPECT_EQ(heard(), "WATCHDOG=1");
  EXPECT_EQ(heard(), "");
  EXPECT_EQ(notifier.alive_every(), 0);
  std::filesystem::remove(path());
}

TEST_F(ServiceNotifierTest, SendsToAnAbstractName) {
  listen("@mprun-notify-" + std::to_string(getpid()));
  ServiceNotifier::from_environment(getpid()).ready();
  EXPECT_EQ(heard(), "READY=1");
}

TEST_F(ServiceNotifierTest, HalvesThePeriodOfItsOwnWatchdog) {
  listen("@mprun-notify-" + std::to_string(getpid()));
  setenv("WATCHDOG_USEC", "3000000", 1);
  EXPECT_EQ(ServiceNotifier::from_environment(12).alive_every(), 1500 * kNanosPerMilli);
  setenv("WATCHDOG_PID", "12", 1);
  EXPECT_EQ(ServiceNotifier::from_environment(12).alive_every(), 1500 * kNanosPerMilli);
  EXPECT_EQ(ServiceNotifier::from_environment(13).alive_every(), 0);
  setenv("WATCHDOG_USEC", "3s", 1);
  EXPECT_EQ(ServiceNotifier::from_environment(12).alive_every(), 0);
}

TEST_F(ServiceNotifierTest, IsSilentWithoutASocketAndWithOneThatIsGone) {
  setenv("WATCHDOG_USEC", "3000000", 1);
  const auto none = ServiceNotifier::from_environment(getpid());
  none.ready();
  EXPECT_EQ(none.alive_every(), 0);
  for (const std::string& address : {std::string("relative"), path() + "-gone", std::string(200, '/')}) {
    setenv("NOTIFY_SOCKET", address.c_str(), 1);
    ServiceNotifier::from_environment(getpid()).ready();
  }
}

}  // namespace
}  // namespace mprun
