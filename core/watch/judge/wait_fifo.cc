// Waits for a FIFO of the file system to be opened, read or written at the other end. Any process that knows the name
// may do that, so a proof needs a FIFO that the tree has made where no other user may look, in a folder with a random
// name. One who reads such a FIFO and has it open for writing too has told its name to others: it waits for whoever
// opens it next.
#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <climits>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_numbers.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

std::optional<std::string> text_at(pid_t pid, std::uint64_t address, TreeSnapshot* snapshot) {
  constexpr std::uint64_t kPiece = 64;
  std::string text;
  while (text.size() < PATH_MAX) {
    const std::uint64_t at = address + text.size();
    std::string piece(kPiece - at % kPiece, '\0');  // never into the next page
    if (!snapshot->memory(pid, at, piece.data(), piece.size())) return std::nullopt;
    const std::size_t end = piece.find('\0');
    text += piece.substr(0, end);
    if (end != std::string::npos) return text;
  }
  return std::nullopt;
}

std::optional<std::string> opened_path(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  const bool is_at = thread.call.number == SYS_openat;
  auto path = text_at(thread.pid, arguments[is_at ? 1 : 0], snapshot);
  if (!path || path->empty() || path->front() == '/') return path;
  const auto folder = static_cast<std::int32_t>(arguments[0]);
  const std::string process = std::to_string(thread.pid);
  const bool is_here = !is_at || folder == AT_FDCWD;
  const auto begin = snapshot->proc()->link(process + (is_here ? "/cwd" : "/fd/" + std::to_string(folder)));
  return begin ? std::optional(*begin + "/" + *path) : std::nullopt;
}

// A folder that mktemp(1) or Python's tempfile has named: "tmp.Xy12345678", "tmpa1_b2c3d". A process outside may know
// any other name beforehand.
bool has_random_name(std::string_view folder) {
  constexpr std::string_view kTmp = "tmp";
  constexpr std::size_t kFewest = 8;
  folder.remove_prefix(folder.rfind('/') + 1);
  if (!folder.starts_with(kTmp)) return false;
  folder.remove_prefix(folder.substr(kTmp.size()).starts_with('.') ? kTmp.size() + 1 : kTmp.size());
  return folder.size() >= kFewest &&
         std::all_of(folder.begin(), folder.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

std::optional<Wait> decode_fifo(pid_t pid, const std::string& path, TreeSnapshot::End end, std::uint64_t flags,
                                TreeSnapshot* snapshot) {
  const auto pipe = snapshot->proc()->named_pipe(pid, path);
  if (!pipe) return std::nullopt;
  const WaitKind kind = end == TreeSnapshot::End::kRead ? WaitKind::kPipeRead : WaitKind::kPipeWrite;
  const std::string why = "a process outside may open FIFO " + path;
  const Nanos age = snapshot->age();
  const bool is_own = pipe->age <= age;
  const bool has_both = end == TreeSnapshot::End::kRead && (flags & O_ACCMODE) == O_RDWR;
  const bool is_hidden = is_own && !has_both && pipe->folder_is_private && pipe->folder_age <= age &&
                         has_random_name(std::string_view(path).substr(0, path.rfind('/')));
  if (!snapshot->blind_spot().empty()) return live_wait(kind, snapshot->blind_spot());
  if (!is_hidden || !snapshot->is_closed()) {
    // Who has started a tree outside of mprun may know the names that it chooses, but hardly a random one.
    const bool is_of_tree = is_hidden || (is_own && snapshot->is_closed());
    if (!is_of_tree || !snapshot->assumptions().no_outside_peers) return live_wait(kind, why);
    snapshot->assume(why);
  }
  Wait wait{kind, "FIFO " + path, {}, {}};
  add_processes(snapshot->everybody(), &wait);
  return wait;
}

Wait decode_open(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto path = opened_path(thread, snapshot);
  const auto flags = thread.call.arguments[thread.call.number == SYS_openat ? 2 : 1];
  const TreeSnapshot::End end = (flags & O_ACCMODE) == O_RDONLY ? TreeSnapshot::End::kRead : TreeSnapshot::End::kWrite;
  auto wait = path ? decode_fifo(thread.pid, *path, end, O_RDONLY, snapshot) : std::nullopt;
  return wait ? std::move(*wait) : live_wait(WaitKind::kOther, "it opens a file");
}

}  // namespace mprun
