// FuzzMemory: a process with one piece of memory, which a fuzz target fills, and the few files that the target names.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "procfs/proc_source.h"

namespace mprun::fuzz {

class FuzzMemory : public ProcSource {
 public:
  FuzzMemory(std::uint64_t base, std::string bytes) : base_(base), bytes_(std::move(bytes)) {}

  std::map<std::string, std::string> files, links;
  std::map<std::string, std::vector<std::string>> folders;

  /// How often the memory was read.
  [[nodiscard]] std::size_t reads() const { return reads_; }

  std::optional<std::string> read(const std::string& path) override { return answer(files, path); }
  std::optional<std::string> link(const std::string& path) override { return answer(links, path); }
  std::optional<std::vector<std::string>> list(const std::string& path) override { return answer(folders, path); }
  bool memory(pid_t /*pid*/, std::uint64_t address, void* to, std::size_t size) override {
    ++reads_;
    if (address < base_ || address - base_ > bytes_.size() || size > bytes_.size() - (address - base_)) return false;
    std::memcpy(to, bytes_.data() + (address - base_), size);
    return true;
  }
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return std::nullopt; }
  std::optional<Nanos> time_limit(pid_t /*pid*/, int /*fd*/) override { return std::nullopt; }
  std::optional<bool> same_memory(pid_t /*one*/, pid_t /*other*/) override { return std::nullopt; }

 private:
  template <typename T>
  static std::optional<T> answer(const std::map<std::string, T>& known, const std::string& path) {
    const auto found = known.find(path);
    return found == known.end() ? std::nullopt : std::optional<T>(found->second);
  }

  std::uint64_t base_;
  std::string bytes_;
  std::size_t reads_ = 0;
};

}  // namespace mprun::fuzz
