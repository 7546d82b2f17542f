// The board of deadlines, in memory that every process of a job may write to.
#include "wire/deadline_board.h"

#include <fcntl.h>
#include <unistd.h>

#include "fuzz_support.h"
#include "os/fd.h"
#include "targets.h"

namespace mprun::fuzz {

void deadline_board(std::string_view input) {
  static const auto board = DeadlineBoard::create();
  require(board.has_value(), "there is a board");
  static const Fd file(open(board->path().c_str(), O_RDWR | O_CLOEXEC));
  Bytes bytes(input);
  const auto some = bytes.take<std::uint8_t>();
  const std::uint32_t used = some == 0xff ? ~std::uint32_t{0} : some % 32;  // many are slow
  const std::string_view lines = bytes.rest().substr(0, std::size_t{16} * sizeof(mprun_deadline_line));
  static const std::string nothing(std::size_t{16} * sizeof(mprun_deadline_line), '\0');
  // Lines after these stay zero: the next input must not find what this one left.
  require(pwrite(file.get(), nothing.data(), nothing.size(), offsetof(mprun_deadline_board, lines)) > 0, "written");
  require(pwrite(file.get(), lines.data(), lines.size(), offsetof(mprun_deadline_board, lines)) >= 0, "written");
  require(pwrite(file.get(), &used, sizeof used, offsetof(mprun_deadline_board, used)) > 0, "written");
  for (const Deadline& deadline : board->read()) {
    require(deadline.line < used && deadline.line < MPRUN_DEADLINES_LINES, "a deadline is of a line in use");
    require(deadline.pid > 0 && deadline.tid > 0, "a deadline is a thread's");
    require(deadline.due > 0 && deadline.limit > 0, "a deadline has a time");
    require(deadline.label.size() <= MPRUN_DEADLINES_LABEL, "a label ends with its field");
    require(deadline.label.find('\0') == std::string::npos, "a label ends with its NUL");
  }
}

}  // namespace mprun::fuzz
