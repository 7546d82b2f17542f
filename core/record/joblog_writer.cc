#include "record/joblog_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "os/file_sync.h"
#include "record/line_format.h"
#include "record/line_reader.h"

namespace mprun {
namespace {

constexpr std::string_view kHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// Cuts what follows `begin` to the longest command, never within a UTF-8 character.
void cut_command(std::string& out, std::size_t begin) {
  if (out.size() - begin <= JoblogWriter::kLongestCommand) return;
  std::size_t end = begin + JoblogWriter::kLongestCommand - 3;
  while (end > begin && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  out.resize(end);
  out += "...";
}

/// Escapes what would break the table, from `begin` on, as two characters each; may stop after the longest command.
void escape_command(std::string& out, std::size_t begin) {
  const auto breaks = [](char c) { return c == '\t' || c == '\n' || c == '\r'; };
  const std::string_view command = std::string_view(out).substr(begin);
  const auto has = [command](char c) { return command.find(c) != command.npos; };
  if (!has('\t') && !has('\n') && !has('\r')) return;
  const std::string raw = out.substr(begin, JoblogWriter::kLongestCommand + 1);
  out.resize(begin);
  for (const char c : raw) {
    if (!breaks(c)) {
      out += c;
      continue;
    }
    out += '\\';
    out += c == '\t' ? 't' : c == '\n' ? 'n' : 'r';
  }
}

/// A task that did not succeed never has Exitval 0 and Signal 0; GNU parallel gives -1 to a job that it stopped.
[[nodiscard]] int exit_value(const TaskEnded& ended) {
  if (ended.end.exit_code != 0 || ended.end.signal != 0) return ended.end.exit_code;
  switch (ended.status) {
    case TaskStatus::kOk:
      return 0;
    case TaskStatus::kFailed:
      return 1;
    case TaskStatus::kCancelled:
      return -1;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<JoblogWriter>> JoblogWriter::open(const std::string& path, CommandText command) {
  Result<AppendFile> file = AppendFile::create(path, "--output");
  if (!file) return std::move(file).error();
  return std::unique_ptr<JoblogWriter>(new JoblogWriter(std::move(*file), std::move(command)));
}

Result<std::unique_ptr<JoblogWriter>> JoblogWriter::reopen(const std::string& path, CommandText command) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return open(path, std::move(command));
  const auto bytes = for_each_line(path, [](std::string_view, std::uint64_t) {});
  if (!bytes) return bytes.error();
  Result<AppendFile> file = AppendFile::reopen(path, *bytes, "--output");
  if (!file) return std::move(file).error();
  return std::unique_ptr<JoblogWriter>(new JoblogWriter(std::move(*file), std::move(command)));
}

JoblogWriter::JoblogWriter(AppendFile file, CommandText command)
    : file_(std::move(file)), command_(std::move(command)) {
  if (file_.size() == 0) file_.append(kHeader);
}

bool JoblogWriter::sync() {
  if (!flush()) return false;
  if (const int failed = sync_now(file_.fd()); failed != 0) file_.fail(failed);
  return !failure();
}

void JoblogWriter::on_event(const JobEvent& event) {
  if (const auto* ended = std::get_if<TaskEnded>(&event)) {
    append_line(*ended);
  } else if (std::holds_alternative<Pulse>(event)) {
    file_.flush();
  }
}

void JoblogWriter::append_line(const TaskEnded& ended) {
  std::string& out = file_.buffer();
  char text[256];  // eight numbers of at most 21 bytes, with their tabs
  char* end = put_number(text, ended.task + 1);
  end = put(end, "\t:\t");
  end = put_seconds<3>(end, ended.start);
  *end++ = '\t';
  end = put_seconds<3>(end, ended.duration);
  *end++ = '\t';
  end = put_number(end, ended.sent);
  *end++ = '\t';
  end = put_number(end, ended.received);
  *end++ = '\t';
  end = put_number(end, exit_value(ended));
  *end++ = '\t';
  end = put_number(end, ended.end.signal);
  *end++ = '\t';
  out.append(text, static_cast<std::size_t>(end - text));
  const std::size_t begin = out.size();
  if (command_) command_(&out, ended);
  escape_command(out, begin);
  cut_command(out, begin);
  out += '\n';
  file_.end_line();
}

CommandText function_command_text(const JobSpec& spec) {
  std::string prefix = std::filesystem::path(spec.script).filename().string();
  if (!spec.function.empty()) prefix += ":" + spec.function;
  return [prefix = std::move(prefix)](std::string* out, const TaskEnded& ended) {
    out->append(prefix);
    if (ended.input.empty()) return;
    out->push_back(' ');
    out->append(ended.input.substr(0, JoblogWriter::kLongestCommand + 1));
  };
}

void append_shell_word(std::string* out, std::string_view word) {
  constexpr std::string_view kSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kSafe) == word.npos) {
    out->append(word);
    return;
  }
  out->push_back('\'');
  for (const char c : word) {
    if (c == '\'') {
      out->append("'\\''");
    } else {
      out->push_back(c);
    }
  }
  out->push_back('\'');
}

}  // namespace mprun
