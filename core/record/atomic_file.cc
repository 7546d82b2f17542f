#include "record/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"

namespace mprun {

Result<void> take_name(AppendFile* file, const std::string& path, OnDisk when) {
  file->flush();
  if (const int failed = when == OnDisk::kNow && !file->failure() ? sync_now(file->fd()) : 0; failed != 0) {
    file->fail(failed);
  }
  if (file->failure()) {
    unlink(file->path().c_str());
    return *file->failure();
  }
  int failed = std::rename(file->path().c_str(), path.c_str()) == 0 ? 0 : errno;
  if (failed != 0) unlink(file->path().c_str());
  if (failed == 0 && when == OnDisk::kNow) failed = sync_directory(std::filesystem::path(path).parent_path());
  if (failed != 0) return internal_error(write_failure_text(path, failed, "--output"));
  return {};
}

Result<void> write_atomically(const std::string& path, std::string_view text, OnDisk when) {
  Result<AppendFile> file = AppendFile::create(path + ".tmp", "--output");
  if (!file) return std::move(file).error();
  file->append(text);
  return take_name(&*file, path, when);
}

std::string read_if_there(const std::string& path) {
  const Fd file = open_fd(path, O_RDONLY);
  auto text = file ? read_all(file.get()) : Result<std::string>(std::string());
  return text ? std::move(*text) : "";
}

Result<void> write_for_option(const std::string& option, const std::string& path, std::string_view text) {
  const std::string why = why_not_replaced(path);
  if (!why.empty()) return usage_error(option + ": " + path + " " + why);
  const auto written = write_atomically(path, text, OnDisk::kLater);
  if (written) return {};
  const std::string& message = written.error().message;
  return usage_error(option + ": " + message.substr(0, message.find(';')));
}

std::string indented(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mprun
