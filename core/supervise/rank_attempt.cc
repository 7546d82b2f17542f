#include "supervise/rank_attempt.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/run_layout.h"
#include "json/json.h"
#include "os/fd.h"

namespace mprun {
namespace {

constexpr off_t kLongestError = off_t{1} << 20U;

/// Not the one of before, which what is left of the attempt may still hold.
int other_free_port(int before) {
  int port = before;
  for (int tries = 0; tries < 10 && port == before; ++tries) port = find_free_port();
  return port;
}

std::string text_of(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

}  // namespace

std::optional<RankError> parse_error_file(std::string_view text) {
  const Json error = parse_escaped_json(text);
  if (!error.is_object() || !error.contains("message")) return std::nullopt;
  const Json& message = error["message"];
  RankError found{message.is_object() ? text_of(message, "message") : text_of(error, "message"), ""};
  if (message.is_object() && message.contains("extraInfo")) {
    found.traceback = text_of(message["extraInfo"], "py_callstack");
  }
  if (found.message.empty()) return std::nullopt;
  return found;
}

bool RankAttempt::begin(int attempt) {
  if (attempt == attempt_) return false;
  attempt_ = attempt;
  port_ = spec_->shard.value_or(Shard{}).count > 1 ? port_of_shards() : other_free_port(port_);
  return true;
}

// All shards know it without communication.
int RankAttempt::port_of_shards() const {
  constexpr int kLastPort = 65535;
  const int port = spec_->allocation.master_port;
  const int later = attempt_ - 1;
  return port + later <= kLastPort ? port + later : port - later;
}

Environment RankAttempt::prepare(int slot) const {
  const std::string file = error_file(run_dir_, slot);
  unlink(file.c_str());
  Environment result = rank_environment(*spec_, slot, port_);
  result["TORCHELASTIC_RESTART_COUNT"] = std::to_string(attempt_ - 1);
  result["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(spec_->retries.most());
  result["TORCHELASTIC_ERROR_FILE"] = file;
  return result;
}

// A rank may have made anything of that name.
std::optional<RankError> RankAttempt::error_of(int slot) const {
  const auto file = open_file(error_file(run_dir_, slot), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  struct stat info {};
  if (!file || fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kLongestError) {
    return std::nullopt;
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t size = pread_all(file->get(), text.data(), text.size(), 0);
  return size > 0 ? parse_error_file(std::string_view(text).substr(0, static_cast<std::size_t>(size))) : std::nullopt;
}

}  // namespace mprun
