// The names of what launchers, worker pools and records all use in a run directory. Those of one module alone are in
// that module.
#pragma once

#include <string>
#include <string_view>

namespace mprun {

inline std::string logs_folder(const std::string& run_dir) { return run_dir + "/logs"; }
inline std::string tensors_folder(const std::string& run_dir) { return run_dir + "/tensors"; }

/// `process`: worker_name(), or kHostName. `stream`: "out" or "err".
inline std::string log_file(const std::string& run_dir, std::string_view process, std::string_view stream) {
  return logs_folder(run_dir).append("/").append(process).append(".").append(stream);
}
inline std::string worker_name(int slot) { return "worker-" + std::to_string(slot); }
/// Where a rank may write why it failed (TORCHELASTIC_ERROR_FILE).
inline std::string error_file(const std::string& run_dir, int slot) {
  return log_file(run_dir, worker_name(slot), "error.json");
}
inline constexpr std::string_view kHostName = "host";

}  // namespace mprun
