// The text of a recording of /proc (proc_source.h), made to be read, edited and compared.
//
//   # A line like this, and an empty one, says nothing.
//   read*3 12/task/13/syscall          the same answer three times, then the next one
//   |running
//   read 12/task/13/syscall
//   |7 0x1 ...                         a line of the answer after each "|"
//   read 12/cmdline
//   |cat\x00/tmp/a b\x00\              a "\" at the end: no newline here
//   link 12/fd/3: pipe:[123]
//   list 12/fd: 0 1 2
//   memory 12 7ffc0010 8               process, address (hexadecimal), size
//   |0011223344556677                  32 bytes a line
//   sockets
//   |123 124 open                      inode, inode of its peer or 0, open, datagram or listening
//   |130 0 listening /tmp/a\x20b       and its name
//   timeout 12 3: no                   process, descriptor: yes or no
//   same-memory 12 13: yes             and same-files
//   names 12/root/dev/shm 4711: a b    the names there of the file with this inode
//   private 12/root/tmp/a: yes         closed to other users
//   none read 12/environ               it could not be read; "none" may stand before each of the others too
//
// Bytes other than printable ASCII and tabs are written \xHH, a backslash \\; in paths and names blanks, tabs and
// colons too. Answers to one question are given in the order in which they stand here, the last one from then on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "procfs/proc_source.h"

namespace mprun {

/// How a recording names what was asked: the first line of an entry, without what comes before and after.
[[nodiscard]] std::string path_question(std::string_view verb,
                                        std::string_view path);  ///< "read", "link", "list", "private"
[[nodiscard]] std::string memory_question(pid_t pid, std::uint64_t address, std::size_t size);
/// "timeout", "same-memory", "same-files"
[[nodiscard]] std::string pair_question(std::string_view verb, int one, int other);
[[nodiscard]] std::string names_question(pid_t pid, std::string_view folder, std::uint64_t inode);
inline constexpr const char* kSocketsQuestion = "sockets";

/// monostate: it could not be read. A string: a file, a link, or memory, byte by byte.
using ProcAnswer = std::variant<std::monostate, std::string, std::vector<std::string>, std::vector<UnixSocket>, bool>;

struct RecordedAnswer {
  std::string question;
  ProcAnswer answer;
  std::uint32_t times = 1;  ///< it was given in a row
};

[[nodiscard]] std::string write_recording(const std::vector<RecordedAnswer>& answers);
/// Errors name the line.
[[nodiscard]] Result<std::vector<RecordedAnswer>> parse_recording(std::string_view text);

}  // namespace mprun
