#include "record/run_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/run_layout.h"
#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"
#include "os/uninterrupted.h"
#include "record/journal.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPublic = 0777;  // less the umask
constexpr int kMostSuffixes = 10'000;
// Files that may exist before the journal has its first line.
constexpr std::array kFirstNames = {"logs", "job.json.tmp", "job.json", "results.jsonl", "joblog.tsv", kJournalName};

[[nodiscard]] Error cannot_create(const std::string& path, int error_number) {
  return usage_error("cannot create the run directory " + path + ": " + std::strerror(error_number) +
                     "; choose another place with --output");
}

[[nodiscard]] std::string local_timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

/// Brings the name of a new directory to disk (kNow).
[[nodiscard]] Result<void> keep_name(const fs::path& directory, OnDisk when) {
  const int failed = when == OnDisk::kNow ? sync_directory(directory.parent_path()) : 0;
  if (failed != 0) return cannot_create(directory.string(), failed);
  return {};
}

[[nodiscard]] Result<void> create_parents(const fs::path& directory, OnDisk when) {
  const fs::path parent = directory.parent_path();
  std::error_code failed;
  if (parent.empty() || parent == directory || fs::is_directory(parent, failed)) return {};
  if (Result<void> made = create_parents(parent, when); !made) return made;
  if (mkdir(parent.c_str(), kPublic) != 0 && errno != EEXIST) return cannot_create(directory.string(), errno);
  return keep_name(parent, when);
}

/// Makes the directories above a shard's own, as private as that. Other shards make them too, and a process that finds
/// one cannot know whether its name is on disk.
[[nodiscard]] Result<void> create_for_all(const fs::path& shard, OnDisk when) {
  const fs::path shards = shard.parent_path();
  if (Result<void> made = create_parents(shards.parent_path(), when); !made) return made;
  for (const fs::path& path : {shards.parent_path(), shards}) {
    if (mkdir(path.c_str(), kPrivateFolder) != 0 && errno != EEXIST) return cannot_create(path.string(), errno);
    if (Result<void> kept = keep_name(path, when); !kept) return kept;
  }
  return {};
}

/// The job's name as a single file name.
[[nodiscard]] std::string name_of(const JobSpec& spec) {
  std::string name = spec.name;
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '-';
  }
  return name.empty() || name == "." || name == ".." ? "job" : name;
}

/// Makes runs/<name>/<timestamp>[-N]; mkdir decides which of two runs in the same second gets which name.
[[nodiscard]] Result<std::string> create_default(const JobSpec& spec, OnDisk when) {
  std::error_code failed;
  const fs::path current = fs::current_path(failed);
  if (failed) return cannot_create("runs", failed.value());
  const std::string base = (current / "runs" / name_of(spec) / local_timestamp()).string();
  if (Result<void> made = create_parents(base, when); !made) return std::move(made).error();
  for (int suffix = 1; suffix < kMostSuffixes; ++suffix) {
    const std::string path = suffix == 1 ? base : base + "-" + std::to_string(suffix);
    if (mkdir(path.c_str(), kPrivateFolder) == 0) return path;
    if (errno != EEXIST) return cannot_create(path, errno);
  }
  return cannot_create(base, EEXIST);
}

/// Makes the directory that the user named, or takes it if it is empty. `created` says which.
[[nodiscard]] Result<std::string> create_named(const fs::path& asked, OnDisk when, bool* created) {
  fs::path path = asked.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (Result<void> made = create_parents(path, when); !made) return std::move(made).error();
  *created = mkdir(path.c_str(), kPrivateFolder) == 0;
  if (*created) return path.string();
  if (errno != EEXIST) return cannot_create(path.string(), errno);
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return cannot_create(path.string(), ENOTDIR);
  const bool empty = fs::is_empty(path, failed);
  if (failed) return cannot_create(path.string(), failed.value());
  if (!empty) {
    return usage_error("the run directory " + path.string() +
                       " exists and is not empty; choose another with --output, or remove it");
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) return cannot_create(path.string(), errno);
  return path.string();
}

/// Points `latest`, next to the directory, to it in one step; returns an errno, or 0.
[[nodiscard]] int point_latest(const fs::path& directory) {
  const std::string name = directory.filename().string();
  const std::string temporary = (directory.parent_path() / (".latest-" + name)).string();
  const std::string latest = (directory.parent_path() / "latest").string();
  unlink(temporary.c_str());
  if (symlink(name.c_str(), temporary.c_str()) != 0) return errno;
  if (std::rename(temporary.c_str(), latest.c_str()) == 0) return 0;
  const int error_number = errno;
  unlink(temporary.c_str());
  return error_number;
}

/// Locks out other mpruns until every copy of the descriptor is closed.
[[nodiscard]] Result<Fd> lock_directory(const std::string& path) {
  Fd fd = open_fd(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return usage_error("cannot open the run directory " + path + ": " + std::strerror(errno));
  if (uninterrupted([&] { return flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) return fd;
  if (errno != EWOULDBLOCK) return fd;  // a file system without locks: better unguarded than not at all
  return usage_error("another mprun works in the run directory " + path + "; wait until it has ended, or end it");
}

[[nodiscard]] Result<void> fill(const std::string& path, const Json& merged, OnDisk when) {
  const std::string logs = logs_folder(path);
  if (mkdir(logs.c_str(), kPrivateFolder) != 0) return cannot_create(logs, errno);
  // Also that of a directory that existed: the process that made it may not have waited for the disk.
  if (Result<void> kept = keep_name(path, when); !kept) return kept;
  Result<void> written = write_atomically(path + "/job.json", indented(merged), when);
  if (!written) return usage_error(std::move(written).error().message);
  return {};
}

/// True: the journal has a whole line, or cannot be read and may have one.
[[nodiscard]] bool may_have_a_line(const fs::path& journal) {
  std::ifstream file(journal, std::ios::binary);
  if (!file.is_open()) {
    std::error_code failed;
    return fs::exists(journal, failed) || failed;
  }
  std::string line;
  std::getline(file, line);  // it catches what the stream throws when a read fails
  return file.bad() || !file.eof();
}

/// True: the journal, which gets its line last before a launch, has none, and all files are those of an unstarted run.
[[nodiscard]] bool is_unborn(const fs::path& path) {
  std::error_code failed;
  bool ours = fs::exists(path / "logs", failed);
  for (auto entry = fs::directory_iterator(path, failed); !failed && entry != fs::end(entry); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    ours = ours && std::find(kFirstNames.begin(), kFirstNames.end(), name) != kFirstNames.end();
  }
  return ours && !failed && !may_have_a_line(path / kJournalName) && fs::is_empty(path / "logs", failed) && !failed &&
         (fs::file_size(path / "results.jsonl", failed) == 0 || failed);
}

}  // namespace

Result<void> RunDirectory::find(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) return {};
  if (errno == ENOENT || errno == ENOTDIR) return usage_error("there is no run directory " + path);
  return usage_error("cannot look at the run directory " + path + ": " + std::strerror(errno));
}

Result<RunDirectory> RunDirectory::create(const JobSpec& spec, const Json& merged) {
  bool created = true;
  const bool named = !spec.output_dir.empty();
  const OnDisk when = on_disk(spec.durability);
  if (spec.shard) {
    if (auto made = create_for_all(spec.output_dir, when); !made) return made.error();
  }
  Result<std::string> path = named ? create_named(spec.output_dir, when, &created) : create_default(spec, when);
  if (!path) return std::move(path).error();
  auto lock = lock_directory(*path);
  if (!lock) return lock.error();
  if (Result<void> filled = fill(*path, merged, when); !filled) {
    unlink((*path + "/job.json").c_str());
    rmdir(logs_folder(*path).c_str());
    if (created) rmdir(path->c_str());
    return std::move(filled).error();
  }
  RunDirectory directory(std::move(*path), std::move(*lock));
  if (named) return directory;
  if (const int error_number = point_latest(directory.path_); error_number != 0) {
    directory.warning_ = "cannot point " + (fs::path(directory.path_).parent_path() / "latest").string() + " to " +
                         directory.path_ + ": " + std::strerror(error_number);
  }
  return directory;
}

Result<std::string> RunDirectory::create_for_shards(const JobSpec& spec) {
  if (spec.output_dir.empty()) {
    auto made = create_default(spec, OnDisk::kLater);
    if (made) (void)point_latest(*made);  // only a convenience
    return made;
  }
  if (auto made = create_parents(spec.output_dir, OnDisk::kLater); !made) return made.error();
  if (mkdir(spec.output_dir.c_str(), kPrivateFolder) != 0 && errno != EEXIST)
    return cannot_create(spec.output_dir, errno);
  return spec.output_dir;
}

Result<RunDirectory> RunDirectory::reopen(const std::string& path) {
  auto lock = lock_directory(path);
  if (!lock) return lock.error();
  const std::string logs = logs_folder(path);
  if (mkdir(logs.c_str(), kPrivateFolder) != 0 && errno != EEXIST) return cannot_create(logs, errno);
  if (unlink((path + "/summary.json").c_str()) != 0 && errno != ENOENT) {  // of an earlier session
    return usage_error("cannot write to the run directory " + path + ": " + std::strerror(errno));
  }
  return RunDirectory(path, std::move(*lock));
}

Result<bool> RunDirectory::remove_unstarted(const std::string& path) {
  const auto lock = lock_directory(path);
  if (!lock) return lock.error();
  if (!is_unborn(path)) return false;
  for (const char* const name : kFirstNames) {
    if (std::remove((path + "/" + name).c_str()) == 0 || errno == ENOENT) continue;
    return usage_error("cannot empty the run directory " + path + ": " + name + ": " + std::strerror(errno));
  }
  return true;
}

Result<void> RunDirectory::put_spec(const Json& merged, OnDisk when) const {
  return write_atomically(file("job.json"), indented(merged), when);
}

Result<void> RunDirectory::sync() const {
  if (const int failed = sync_now(lock_.get()); failed != 0) {
    return usage_error(write_failure_text(path_, failed, "--output"));
  }
  return {};
}

std::string RunDirectory::file(std::string_view name) const { return path_ + "/" + std::string(name); }

}  // namespace mprun
