// A recording of /proc, which users may edit.
#include "procfs/recording_text.h"

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {

void recording(std::string_view input) {
  const auto answers = parse_recording(input);
  if (!answers) return;
  const std::string text = write_recording(*answers);
  const auto again = parse_recording(text);
  require(again && again->size() == answers->size(), "what is written can be read");
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const RecordedAnswer& one = (*answers)[i];
    const RecordedAnswer& other = (*again)[i];
    require(one.question == other.question && one.answer == other.answer && one.times == other.times,
            "an answer survives being written and read");
  }
  const auto proc = recorded_proc(input);
  require(proc.has_value(), "a recording that can be read can be asked");
  (void)(*proc)->read("12/maps");
  (void)(*proc)->unix_sockets();
}

}  // namespace mprun::fuzz
