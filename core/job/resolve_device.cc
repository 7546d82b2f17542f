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

/// Whether a word of CUDA_VISIBLE_DEVICES names a device, or a part of one, by its UUID.
bool is_uuid(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

/// The words of a variable such as CUDA_VISIBLE_DEVICES, up to the first that names no device, where CUDA ends the
/// list.
std::vector<std::string> listed_devices(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!is_uuid(word) && to_index(word).value_or(-1) < 0) break;
    names.emplace_back(word);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

std::vector<std::string> usable_devices(const Resolving& job, const DeviceFamily& family) {
  const std::vector<int> present = present_devices(job.around.device_root, family);
  std::vector<std::string> usable;
  if (const std::string* variable = job.variable(family.variable)) {
    for (std::string& name : listed_devices(*variable)) {
      // Only the driver knows which device a UUID means.
      const bool is_present =
          is_uuid(name) ? !present.empty() : std::count(present.begin(), present.end(), to_index(name)) != 0;
      if (is_present) usable.push_back(std::move(name));
    }
    return usable;
  }
  std::transform(present.begin(), present.end(), std::back_inserter(usable),
                 [](int index) { return std::to_string(index); });
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
  std::vector<std::string> usable = usable_devices(job, family);
  if (usable.empty()) return absent(job, family, wish, std::string("no ") + family.name + " device is usable here");
  const std::size_t colon = found.find(':');
  if (colon != std::string::npos) {
    const std::string index = std::to_string(to_index(std::string_view(found).substr(colon + 1)).value_or(-1));
    if (std::find(usable.begin(), usable.end(), index) == usable.end()) {
      std::string list;
      for (const std::string& other : usable) list += (list.empty() ? "" : ", ") + other;
      return absent(job, family, wish, "the usable devices are " + list);
    }
    usable.assign(1, index);
  }
  job.spec.device = Device{family.kind, std::move(usable), 1};
  return {};
}

}  // namespace mprun::job
