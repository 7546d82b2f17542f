// The journal of a resumed run: any text, the same torn at some place, and the same with a piece of zeros, as a
// power cut leaves them.
#include "record/journal.h"

#include <vector>

#include "fuzz_folder.h"
#include "record/earlier_run.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

using Replayed = std::vector<std::string>;

/// One event of the journal, as words.
struct Words {
  std::string operator()(const WorkerEnded& e) const {
    return "ended " + std::string(e.role) + " " + std::to_string(e.worker) + " " + std::to_string(e.pid) + " " +
           std::to_string(e.end.exit_code) + " " + std::to_string(e.end.signal) + (e.expected ? " expected" : "");
  }
  std::string operator()(const WorkerStage& e) const {
    return "stage " + std::to_string(e.worker) + " " + std::string(e.text) + (e.first ? " first" : "");
  }
  std::string operator()(const TaskRetried& e) const {
    return "retried " + std::to_string(e.task) + " " + std::to_string(e.attempt) + " " + std::to_string(e.worker);
  }
  std::string operator()(const Notice& e) const { return "notice " + std::string(e.text); }
  std::string operator()(const HangFound& e) const {
    return "hang " + std::string(e.verdict) + " " + std::string(e.cause) + " " + std::string(e.file);
  }
  template <typename Other>
  std::string operator()(const Other& /*e*/) const {
    require(false, "a journal holds nothing else");
    return {};
  }
};

Result<EarlierSessions> read(const FuzzFolder& folder, Replayed* replayed) {
  auto sessions =
      read_journal(folder.path(), [replayed](const JobEvent& e) { replayed->push_back(std::visit(Words{}, e)); });
  require(sessions || sessions.error().fault == Fault::kUsage, "a bad journal is no fault of mprun");
  require(sessions || sessions.error().message.size() < 2000, "messages are bounded");
  return sessions;
}

void check(const EarlierSessions& found, std::string_view text) {
  require(found.bytes > 0 && found.bytes <= text.size() && text[found.bytes - 1] == '\n', "whole lines count");
  require(text.find('\n', found.bytes) == std::string_view::npos, "every whole line counts");
  require(found.sessions >= 1 && found.sessions < 1'000'000'000, "there was a session, and there can be one more");
  require(found.seconds >= 0 && found.seconds < 1e12, "sessions took a possible time");
  require(found.origin.options.is_object(), "the options are a layer of a spec");
  const auto again = provenance_from_json(to_json(found.origin));
  require(again && to_json(*again) == to_json(found.origin), "an origin means one thing");
  require(changed_files(found.origin, *again).empty(), "nothing has changed where nothing has");
}

/// `part`: the text with some of it lost after its first line.
void check_loss(const FuzzFolder& folder, const std::string& part, const Replayed& whole, bool torn) {
  Replayed replayed;
  folder.put(kJournalName, part);
  const auto sessions = read(folder, &replayed);
  require(sessions.has_value(), "a loss after the first line does not make a journal invalid");
  check(*sessions, part);
  require(replayed.size() <= whole.size(), "a loss makes no events up");
  if (torn)
    require(std::equal(replayed.begin(), replayed.end(), whole.begin()), "a torn journal replays its beginning");
}

/// Another session continues from what was found, and its events are found in turn.
void check_next_session(const FuzzFolder& folder, const EarlierSessions& found, const Replayed& before) {
  const std::string path = folder.file(kJournalName);
  auto journal = Journal::reopen(path, {found.bytes, found.sessions + 1});
  require(journal.has_value(), "a journal can be continued");
  (*journal)->on_event(TaskRetried{7, 1, 2, ""});
  (*journal)->on_event(Pulse{});
  require(!(*journal)->failure(), "a journal can be written");
  Replayed replayed;
  const auto sessions = read(folder, &replayed);
  require(sessions && sessions->sessions == found.sessions + 1 && !sessions->ended, "the next session is the next");
  require(replayed.size() == before.size() + 1 && replayed.back() == "retried 7 1 2", "what was written is replayed");
}

}  // namespace

void journal(std::string_view input) {
  static const FuzzFolder folder;
  Bytes bytes(input);
  const auto place = bytes.take<std::uint16_t>();
  const auto length = bytes.take<std::uint8_t>();
  const std::string_view text = bytes.rest();
  folder.put(kJournalName, text);
  Replayed replayed;
  const auto found = read(folder, &replayed);
  if (!found) return;
  check(*found, text);

  const std::size_t first = text.find('\n') + 1;
  const std::size_t from = first + place % (text.size() - first + 1);
  if (length % 3 == 0) check_loss(folder, std::string(text.substr(0, from)), replayed, true);
  if (length % 3 == 1) check_loss(folder, with_zeros(text, from, length), replayed, false);
  if (length % 3 == 2) check_next_session(folder, *found, replayed);
}

}  // namespace mprun::fuzz
