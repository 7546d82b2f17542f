#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <vector>

#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun::job {

namespace {

struct DeviceFamily {
  DeviceKind kind;
  const char* name;      ///< for messages
  const char* node;      ///< prefix of the files in /dev, before the index
  const char* variable;  ///< restricts which devices a process sees
};

constexpr DeviceFamily kCuda = {DeviceKind::kCuda, "CUDA", "nvidia", "CUDA_VISIBLE_DEVICES"};
constexpr DeviceFamily kAscend = {DeviceKind::kAscend, "Ascend", "davinci", "ASCEND_RT_VISIBLE_DEVICES"};

std::optional<int> to_index(std::string_view text) {
  int index = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = fault == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional<int>(index) : std::nullopt;
}

std::vector<int> present_devices(const std::string& root, const DeviceFamily& family) {
  std::vector<int> indices;
  const std::string prefix = family.node;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(root, fault)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    const std::optional<int> index = to_index(std::string_view(name).substr(prefix.size()));
    if (index && *index >= 0) indices.push_back(*index);
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

/// The list of a variable such as CUDA_VISIBLE_DEVICES, which ends at the first negative index as CUDA reads it;
/// nullopt if it is not set or names devices otherwise (GPU-uuid).
std::optional<std::vector<int>> visible_devices(const std::string* variable) {
  if (variable == nullptr) return std::nullopt;
  std::vector<int> indices;
  std::string_view rest = *variable;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    const std::optional<int> index = to_index(item);
    if (!index) return std::nullopt;
    if (*index < 0) break;
    indices.push_back(*index);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return indices;
}

std::vector<int> usable_devices(const Resolving& job, const DeviceFamily& family) {
  std::vector<int> present = present_devices(job.around.device_root, family);
  const auto visible = visible_devices(job.variable(family.variable));
  if (!visible) return present;
  std::vector<int> usable;
  for (const int index : *visible) {
    if (std::find(present.begin(), present.end(), index) != present.end()) usable.push_back(index);
  }
  return usable;
}

/// The field that asks for a device.
struct Wish {
  std::string pointer, found;  ///< and its value, for messages
};

Error absent(const Resolving& job, const DeviceFamily& family, const Wish& wish, const std::string& what) {
  std::string words = "found " + wish.found + ", but " + what;
  if (const std::string* visible = job.variable(family.variable)) {
    words += std::string(" (") + family.variable + "=" + clip(*visible) + ")";
  }
  const bool by_needs = wish.pointer != "/device";
  return job.layers.error(wish.pointer,
                          words + "\n  to compute on the CPU: " + (by_needs ? "leave it out" : "\"device\": \"cpu\""));
}

}  // namespace

Result<void> resolve_device(Resolving& job) {
  const Json* const gpus = job.layers.find("/needs/gpus");
  Wish wish{"/device", in_quotes(job.text("/device"))};
  if (job.text("/device") == "cpu") {
    if (gpus == nullptr) return {};
    wish = {"/needs/gpus", preview(*gpus)};
    if (job.layers.is_set("/device")) {
      return job.layers.error(
          wish.pointer, "found " + wish.found + ", but \"device\" is \"cpu\"\n  leave \"device\" out for CUDA devices");
    }
    job.layers.put("/device", "cuda");
  }
  const std::string found = job.text("/device");
  const DeviceFamily& family = found == "ascend" ? kAscend : kCuda;
  const bool python = job.spec.kind == JobKind::kFunction || job.spec.script_is_python;
  if (python && job.spec.start_method == StartMethod::kFork) {
    return job.layers.error(wish.pointer, "found " + wish.found +
                                              ", which does not go with start_method fork: CUDA and Ascend cannot be "
                                              "re-initialised in a forked child\n"
                                              "  use --start-method spawn (or forkserver), in the spec "
                                              "\"start_method\": \"spawn\"");
  }
  std::vector<int> usable = usable_devices(job, family);
  if (usable.empty()) return absent(job, family, wish, std::string("no ") + family.name + " device is usable here");
  const std::size_t colon = found.find(':');
  if (colon != std::string::npos) {
    const std::optional<int> index = to_index(std::string_view(found).substr(colon + 1));
    if (!index || std::find(usable.begin(), usable.end(), *index) == usable.end()) {
      std::string list;
      for (const int other : usable) list += (list.empty() ? "" : ", ") + std::to_string(other);
      return absent(job, family, wish, "the usable devices are " + list);
    }
    usable.assign(1, *index);
  }
  job.spec.device = Device{family.kind, std::move(usable), 1};
  return {};
}

}  // namespace mprun::job
