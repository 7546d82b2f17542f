#include "run/resolve_request.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "launch/environment.h"
#include "os/library_search.h"
#include "procfs/cpu_room.h"
#include "procfs/memory_room.h"

namespace mprun {

std::string current_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

namespace {

/// ~/.config/mprun/config.json where it exists; never anything from the working directory.
Result<std::optional<Document>> user_layer(const Environment& env, const std::string& directory) {
  std::string folder;
  if (const auto it = env.find("XDG_CONFIG_HOME"); it != env.end() && !it->second.empty()) {
    folder = it->second;
  } else if (const auto home = env.find("HOME"); home != env.end()) {
    folder = home->second + "/.config";
  }
  const std::string path = folder + "/mprun/config.json";
  std::error_code error;
  if (folder.empty() || !std::filesystem::exists(path, error)) return std::optional<Document>();
  auto document = read_document(path, directory);
  if (!document) return document.error();
  document->lenient = true;
  return std::optional(std::move(*document));
}

Surroundings surroundings() {
  Surroundings around;
  around.current_directory = current_directory();
  around.env = own_environment();
  around.usable_cpus = cpu_room().cpus;
  around.allocation = recognise(around.env);
  if (around.allocation.cpus && *around.allocation.cpus < around.usable_cpus) {
    around.usable_cpus = *around.allocation.cpus;
    around.cpus_source = "the CPUs of " + around.allocation.cpus_source;
  }
  // What hwloc takes from a description or a file is not what the kernel says.
  const bool described = around.env.count("HWLOC_SYNTHETIC") + around.env.count("HWLOC_XMLFILE") > 0;
  around.one_memory_node = !described && count_memory_nodes() == 1;
  around.read_topology = read_topology;
  around.find_libraries = find_libraries;
  around.stdin_is_terminal = isatty(STDIN_FILENO) == 1;
  const MemoryRoom memory = memory_room();
  around.memory_bytes = memory.bytes;
  around.memory_source = memory.source;
  const HugePagePool pool = huge_page_pool();
  around.huge_page_bytes = pool.page_bytes;
  around.free_huge_pages = pool.free;
  if (const auto it = around.env.find("MPRUN_DEVICE_ROOT"); it != around.env.end()) around.device_root = it->second;
  return around;
}

Result<Resolved> resolve_aloud(const std::vector<Document>& layers, const Surroundings& around) {
  auto resolved = resolve(layers, around);
  for (const std::string& warning : resolved ? resolved->warnings : std::vector<std::string>()) {
    std::fprintf(stderr, "mprun: warning: %s\n", warning.c_str());
  }
  return resolved;
}

}  // namespace

Result<Resolved> resolve_recorded(Document recorded, const JobRequest& request) {
  recorded.lenient = true;
  return resolve_aloud({default_layer(), std::move(recorded), request.layer}, surroundings());
}

Result<Resolved> resolve_request(const JobRequest& request) {
  const Surroundings around = surroundings();
  std::vector<Document> layers{default_layer()};
  auto user = user_layer(around.env, around.current_directory);
  if (!user) return user.error();
  if (*user) layers.push_back(std::move(**user));
  if (!request.spec_path.empty()) {
    auto spec = read_document(request.spec_path, around.current_directory);
    if (!spec) return spec.error();
    layers.push_back(std::move(*spec));
  }
  layers.push_back(request.layer);
  return resolve_aloud(layers, around);
}

}  // namespace mprun
