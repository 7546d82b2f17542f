// ProcRecorder and recorded_proc of proc_source.h.
#include <cstring>
#include <unordered_map>

#include "procfs/proc_source.h"
#include "procfs/recording_text.h"

namespace mprun {
namespace {

template <typename T>
ProcAnswer to_answer(const std::optional<T>& given) {
  return given ? ProcAnswer(*given) : ProcAnswer();
}

/// The answers to one question in their order, and how far they have been given.
class Series {
 public:
  void add(RecordedAnswer recorded) { answers_.push_back(std::move(recorded)); }

  const ProcAnswer& next() {
    const RecordedAnswer& now = answers_[at_];
    if (++given_ >= now.times && at_ + 1 < answers_.size()) {
      ++at_;
      given_ = 0;
    }
    return now.answer;
  }

 private:
  std::vector<RecordedAnswer> answers_;  ///< never empty
  std::size_t at_ = 0;
  std::uint64_t given_ = 0;
};

class RecordedProc : public ProcSource {
 public:
  explicit RecordedProc(std::vector<RecordedAnswer> answers) {
    for (RecordedAnswer& recorded : answers) {
      Series& series = series_[recorded.question];
      series.add(std::move(recorded));
    }
  }

  std::optional<std::string> read(const std::string& path) override {
    return ask<std::string>(path_question("read", path));
  }
  std::optional<std::string> link(const std::string& path) override {
    return ask<std::string>(path_question("link", path));
  }
  std::optional<std::vector<std::string>> list(const std::string& path) override {
    return ask<std::vector<std::string>>(path_question("list", path));
  }
  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    const auto bytes = ask<std::string>(memory_question(pid, address, size));
    if (!bytes || bytes->size() != size) return false;
    std::memcpy(to, bytes->data(), size);
    return true;
  }
  std::optional<std::vector<UnixSocket>> unix_sockets() override {
    return ask<std::vector<UnixSocket>>(kSocketsQuestion);
  }
  std::optional<Nanos> time_limit(pid_t pid, int fd) override { return ask<bool>(pair_question("timeout", pid, fd)); }
  std::optional<bool> same_memory(pid_t one, pid_t other) override {
    return ask<bool>(pair_question("same-memory", one, other));
  }
  std::optional<bool> same_files(pid_t one, pid_t other) override {
    return ask<bool>(pair_question("same-files", one, other));
  }
  std::optional<std::vector<std::string>> names_of(pid_t pid, const std::string& folder, std::uint64_t inode) override {
    return ask<std::vector<std::string>>(names_question(pid, folder, inode));
  }
  std::optional<bool> is_private_folder(pid_t pid, const std::string& folder) override {
    return ask<bool>(path_question("private", std::to_string(pid) + "/root" + folder));
  }

 private:
  template <typename T>
  std::optional<T> ask(const std::string& question) {
    const auto it = series_.find(question);
    const T* answer = it == series_.end() ? nullptr : std::get_if<T>(&it->second.next());
    return answer != nullptr ? std::optional<T>(*answer) : std::nullopt;
  }

  std::unordered_map<std::string, Series> series_;
};

}  // namespace

/// The answers of one question stay together, the questions in the order in which they were first asked.
struct ProcRecorder::Impl {
  ProcSource* asked;
  std::vector<std::vector<RecordedAnswer>> series;
  std::unordered_map<std::string, std::size_t> index;

  void keep(std::string question, ProcAnswer answer) {
    const auto [it, is_new] = index.try_emplace(question, series.size());
    if (is_new) series.emplace_back();
    std::vector<RecordedAnswer>& answers = series[it->second];
    if (!answers.empty() && answers.back().answer == answer) {
      ++answers.back().times;
    } else {
      answers.push_back({std::move(question), std::move(answer), 1});
    }
  }
};

ProcRecorder::ProcRecorder(ProcSource* asked) : impl_(std::make_unique<Impl>()) { impl_->asked = asked; }
ProcRecorder::~ProcRecorder() = default;

std::optional<std::string> ProcRecorder::read(const std::string& path) {
  auto answer = impl_->asked->read(path);
  impl_->keep(path_question("read", path), to_answer(answer));
  return answer;
}

std::optional<std::string> ProcRecorder::link(const std::string& path) {
  auto answer = impl_->asked->link(path);
  impl_->keep(path_question("link", path), to_answer(answer));
  return answer;
}

std::optional<std::vector<std::string>> ProcRecorder::list(const std::string& path) {
  auto answer = impl_->asked->list(path);
  impl_->keep(path_question("list", path), to_answer(answer));
  return answer;
}

bool ProcRecorder::memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  const bool good = impl_->asked->memory(pid, address, to, size);
  impl_->keep(memory_question(pid, address, size),
              good ? ProcAnswer(std::string(static_cast<const char*>(to), size)) : ProcAnswer());
  return good;
}

std::optional<std::vector<UnixSocket>> ProcRecorder::unix_sockets() {
  auto answer = impl_->asked->unix_sockets();
  impl_->keep(kSocketsQuestion, to_answer(answer));
  return answer;
}

std::optional<Nanos> ProcRecorder::time_limit(pid_t pid, int fd) {
  const auto answer = impl_->asked->time_limit(pid, fd);
  impl_->keep(pair_question("timeout", pid, fd), to_answer(answer ? std::optional(*answer != 0) : std::nullopt));
  return answer;
}

std::optional<bool> ProcRecorder::same_memory(pid_t one, pid_t other) {
  const auto answer = impl_->asked->same_memory(one, other);
  impl_->keep(pair_question("same-memory", one, other), to_answer(answer));
  return answer;
}

std::optional<bool> ProcRecorder::same_files(pid_t one, pid_t other) {
  const auto answer = impl_->asked->same_files(one, other);
  impl_->keep(pair_question("same-files", one, other), to_answer(answer));
  return answer;
}

std::optional<std::vector<std::string>> ProcRecorder::names_of(pid_t pid, const std::string& folder,
                                                               std::uint64_t inode) {
  auto answer = impl_->asked->names_of(pid, folder, inode);
  impl_->keep(names_question(pid, folder, inode), to_answer(answer));
  return answer;
}

std::optional<bool> ProcRecorder::is_private_folder(pid_t pid, const std::string& folder) {
  const auto answer = impl_->asked->is_private_folder(pid, folder);
  impl_->keep(path_question("private", std::to_string(pid) + "/root" + folder), to_answer(answer));
  return answer;
}

std::string ProcRecorder::recording() const {
  std::vector<RecordedAnswer> all;
  for (const auto& answers : impl_->series) all.insert(all.end(), answers.begin(), answers.end());
  return write_recording(all);
}

Result<std::unique_ptr<ProcSource>> recorded_proc(std::string_view recording) {
  auto answers = parse_recording(recording);
  if (!answers) return answers.error();
  return std::unique_ptr<ProcSource>(std::make_unique<RecordedProc>(std::move(*answers)));
}

}  // namespace mprun
