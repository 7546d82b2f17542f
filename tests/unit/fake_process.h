// FakeProcess: a ProcSource with made-up files, links and memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "procfs/proc_source.h"

namespace mprun {

class FakeProcess : public ProcSource {
 public:
  std::map<std::string, std::string> files, links;
  std::map<std::uint64_t, std::vector<std::string>> names;  ///< by inode, in any folder
  std::map<std::string, std::vector<std::string>> folders;

  /// Puts a value into memory, replacing what was there.
  template <typename T>
  void put(std::uint64_t address, const T& value) {
    put_bytes(address, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  void put_bytes(std::uint64_t address, std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) memory_[address + i] = bytes[i];
  }
  /// Makes memory readable, full of zeros.
  void map(std::uint64_t begin, std::size_t size) { put_bytes(begin, std::string(size, '\0')); }

  std::optional<std::string> read(const std::string& path) override { return answer(files, path); }
  std::optional<std::string> link(const std::string& path) override { return answer(links, path); }
  std::optional<std::vector<std::string>> names_of(pid_t pid, const std::string& folder, std::uint64_t inode) override {
    if (folders.count(std::to_string(pid) + "/root" + folder) == 0) return std::nullopt;
    return names[inode];
  }
  std::optional<std::vector<std::string>> list(const std::string& path) override { return answer(folders, path); }
  bool memory(pid_t, std::uint64_t address, void* to, std::size_t size) override {
    for (std::size_t i = 0; i < size; ++i) {
      const auto byte = memory_.find(address + i);
      if (byte == memory_.end()) return false;
      static_cast<char*>(to)[i] = byte->second;
    }
    return true;
  }
  std::optional<std::vector<UnixSocket>> sockets;
  std::set<std::string> private_folders;
  std::optional<std::vector<UnixSocket>> unix_sockets() override { return sockets; }
  std::optional<bool> is_private_folder(pid_t, const std::string& folder) override {
    return private_folders.count(folder) != 0;
  }
  std::optional<Nanos> time_limit(pid_t, int) override { return std::nullopt; }
  std::optional<bool> same_memory(pid_t, pid_t) override { return std::nullopt; }

 private:
  template <typename T>
  static std::optional<T> answer(const std::map<std::string, T>& known, const std::string& path) {
    const auto found = known.find(path);
    return found == known.end() ? std::nullopt : std::optional<T>(found->second);
  }
  std::map<std::uint64_t, char> memory_;
};

}  // namespace mprun
