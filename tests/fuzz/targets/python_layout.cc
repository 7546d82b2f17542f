// How a Python describes its own structures, and the line table of a function.
#include "watch/stacks/python_layout.h"

#include "fuzz_support.h"
#include "targets.h"
#include "watch/stacks/python_code.h"

namespace mprun::fuzz {

void python_layout(std::string_view input) {
  Bytes bytes(input);
  const auto minor = bytes.take<std::uint8_t>();
  const auto first = bytes.take<std::int32_t>();
  const auto offset = bytes.take<std::uint16_t>();
  require(python_line(bytes.rest(), first, offset) >= 0, "a line is counted from 1, or 0");

  std::string description = "xdebugpy";
  description += bytes.rest();
  description.resize(kPythonDescriptionSize);
  const auto layout = described_python_layout(minor % 3 + 13, description);
  if (!layout) return;
  for (const std::uint32_t offset_in_piece :
       {layout->thread.next, layout->thread.frame, layout->frame.code, layout->frame.owner, layout->code.instructions,
        layout->code.first_line, layout->text.state, layout->text.compact_data}) {
    require(offset_in_piece + sizeof(std::uint64_t) <= kLargestPythonPiece, "a field lies in its piece");
  }
}

}  // namespace mprun::fuzz
