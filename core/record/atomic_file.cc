#include "record/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "record/append_file.h"

namespace mprun {

Result<void> write_atomically(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  Result<AppendFile> file = AppendFile::create(temporary, "--output");
  if (!file) return std::move(file).error();
  file->append(text);
  if (!file->flush()) {
    unlink(temporary.c_str());
    return file->failure().value_or(Error{});
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    unlink(temporary.c_str());
    return internal_error(write_failure_text(path, error_number, "--output"));
  }
  return {};
}

std::string indented(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mprun
