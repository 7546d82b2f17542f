#include "run/meeting_point.h"

#include <netdb.h>

#include <charconv>
#include <string>

#include "launch/environment.h"
#include "run/short_program.h"

namespace mprun {
namespace {

bool resolves(const std::string& host) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

/// "NodeAddr=10.0.0.1" from scontrol's description of a node; empty if it has none.
std::string address_by_slurm(const std::string& host) {
  const auto shown = run_program_for_text({"scontrol", "-o", "show", "node", host});
  if (!shown || shown->exit_code != 0) return "";
  constexpr std::string_view kKey = " NodeAddr=";
  const auto at = shown->out.find(kKey);
  if (at == std::string::npos) return "";
  const auto begin = at + kKey.size();
  return shown->out.substr(begin, shown->out.find_first_of(" \n", begin) - begin);
}

}  // namespace

Result<void> agree_on_meeting_point(Allocation* allocation) {
  const Environment environment = own_environment();
  const auto variable = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string port = variable("MASTER_PORT"); !port.empty()) {
    int number = 0;
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || stop != port.data() + port.size() || number < 1 || number > 65535) {
      return usage_error("MASTER_PORT is " + port + ", allowed: a port from 1 to 65535");
    }
    allocation->master_port = number;
  }
  if (const std::string host = variable("MASTER_ADDR"); !host.empty()) {
    allocation->first_host = host;
  } else if (allocation->one_host) {
    allocation->first_host = "127.0.0.1";
  } else if (!allocation->first_host.empty() && !resolves(allocation->first_host)) {
    const std::string address = address_by_slurm(allocation->first_host);
    if (!address.empty()) allocation->first_host = address;
  }
  if (!allocation->first_host.empty() && allocation->master_port != 0) return {};
  return usage_error("the ranks of all shards have to meet, and nothing says where: set MASTER_ADDR and MASTER_PORT");
}

}  // namespace mprun
