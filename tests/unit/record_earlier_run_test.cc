// What is read from a run that was cut short: whole lines, each once, and what the run was made from.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "os/file_sync.h"
#include "record/earlier_run.h"
#include "record/journal.h"
#include "record/results_writer.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class RecordEarlierRunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_earlier_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  [[nodiscard]] std::string path(const std::string& name = "results.jsonl") const { return dir_ + "/" + name; }
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string contents(const std::string& name = "results.jsonl") const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  [[nodiscard]] EarlierResults read(const KeepRule& rule = {}) const {
    auto results = read_results(path(), rule);
    EXPECT_TRUE(results) << results.error().message;
    return std::move(*results);
  }
  [[nodiscard]] static std::vector<std::uint64_t> tasks(const EarlierResults& results) {
    std::vector<std::uint64_t> found;
    for (const auto& [task, offset] : results.kept) found.push_back(task);
    return found;
  }

  std::string dir_;
};

std::string line(int task, const std::string& status = "ok", const std::string& more = R"("value":1)") {
  return R"({"task":)" + std::to_string(task) + R"(,"status":")" + status + R"(",)" + more +
         R"(,"worker":0,"attempt":1,"start":1.5,"seconds":0.1})" + "\n";
}

TEST_F(RecordEarlierRunTest, WholeLinesOfEndedTasksCountOnce) {
  put("results.jsonl", line(0) + line(2, "failed", R"("error":{})") + line(1, "cancelled", R"("error":{})") + line(0) +
                           "{\"task\":3,\"sta\n" + std::string(20, '\0') + "\n" + line(5) +
                           R"({"task":4,"status":"ok)");
  const EarlierResults results = read();
  EXPECT_THAT(tasks(results), ElementsAre(0, 2, 5));
  EXPECT_EQ(results.counts.ok, 2U);
  EXPECT_EQ(results.counts.failed, 1U);
  EXPECT_TRUE(results.ended.has(5));
  EXPECT_FALSE(results.ended.has(4));
  EXPECT_FALSE(results.ended.has(1));
  const std::size_t first = line(0).size() + line(2, "failed", R"("error":{})").size();
  EXPECT_THAT(results.dropped, ElementsAre(Pair(first, contents().find(line(5)))));
  KeepRule again;
  again.failed = false;
  EXPECT_THAT(tasks(read(again)), ElementsAre(0, 5));
}

TEST_F(RecordEarlierRunTest, ALineWithZerosAfterItsEndDoesNotCount) {
  std::string text = line(0) + line(1) + line(2);
  text[line(0).size() - 1] = '\0';  // two lines in one
  put("results.jsonl", text);
  EXPECT_THAT(tasks(read()), ElementsAre(2));
}

TEST_F(RecordEarlierRunTest, RanksCountTogetherOrNotAtAll) {
  put("results.jsonl", line(0) + line(1, "failed", R"("error":{})"));
  KeepRule rule;
  rule.all_or_none = 2;
  const EarlierResults none = read(rule);
  EXPECT_THAT(none.kept, IsEmpty());
  EXPECT_EQ(none.ended.count(), 0U);
  EXPECT_THAT(none.dropped, ElementsAre(Pair(0, contents().size())));
  put("results.jsonl", line(0) + line(1));
  EXPECT_THAT(tasks(read(rule)), ElementsAre(0, 1));
}

TEST_F(RecordEarlierRunTest, AResultWhoseTensorsAreGoneDoesNotCount) {
  const std::string tensors = R"("value":{"tensor":"tensors/x.npy"},"tensors":[{"name":"x","rows":[0,1]}])";
  const std::string likeness = R"("value":{"a":1,"tensors":[{"name":"x"}]})";  // a user's own value
  put("results.jsonl", line(0, "ok", tensors) + line(1, "ok", tensors) + line(2, "ok", likeness));
  KeepRule rule;
  rule.tensors_hold = [](std::uint64_t task, const Json& named) {
    EXPECT_EQ(named.dump(), R"([{"name":"x","rows":[0,1]}])");
    return task != 1;
  };
  EXPECT_THAT(tasks(read(rule)), ElementsAre(0, 2));
  rule.tensors_hold = [](std::uint64_t, const Json&) { return true; };
  EXPECT_THAT(tasks(read(rule)), ElementsAre(0, 1, 2));
  rule.certain = line(0, "ok", tensors).size();  // after a power cut the tensors of later results may be lost
  EXPECT_THAT(tasks(read(rule)), ElementsAre(0, 2));
}

TEST_F(RecordEarlierRunTest, HalfASurrogatePairIsAValue) {
  const std::string half = R"("value":["\\","\udcff\ud83d\ude00","\u00e9"])";
  put("results.jsonl", line(0, "ok", half) + line(1, "ok", half + R"(,"tensors":[{"name":"x","rows":[0,1]}])"));
  KeepRule rule;
  rule.tensors_hold = [](std::uint64_t task, const Json& named) {
    return task == 1 && named.dump() == R"([{"name":"x","rows":[0,1]}])";
  };
  EXPECT_THAT(tasks(read(rule)), ElementsAre(0, 1));
}

TEST_F(RecordEarlierRunTest, TheWriterGoesOnWithoutWhatDoesNotCount) {
  put("results.jsonl", line(3) + line(1, "cancelled", R"("error":{})") + line(0) + "torn");
  for (const Durability durability : {Durability::kNone, Durability::kBatch, Durability::kEach}) {
    const EarlierResults earlier = read();
    auto writer = ResultsWriter::reopen({path(), Order::kInput, "", durability}, earlier);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(contents(), line(3) + line(0));
    TaskEnded ended;
    ended.task = 2;
    ended.result = "7";
    (*writer)->on_event(ended);
    (*writer)->finish();
    const EarlierResults after = read();
    EXPECT_THAT(tasks(after), ElementsAre(0, 2, 3));  // in input order
    EXPECT_THAT(after.dropped, IsEmpty());
    put("results.jsonl", line(3) + line(0) + "torn");
  }
}

TEST_F(RecordEarlierRunTest, FilesAreThereBeforeTheResultsThatNeedThem) {
  int written = 0;
  ResultsOptions options{path(), Order::kInput, "", Durability::kEach};
  options.before_writing = [this, &written] {
    ++written;
    EXPECT_EQ(contents(), "");
  };
  auto writer = ResultsWriter::open(options);
  ASSERT_TRUE(writer);
  TaskEnded ended;
  ended.result = "7";
  (*writer)->on_event(ended);
  EXPECT_EQ(written, 1);
  EXPECT_THAT(contents(), HasSubstr(R"("value":7)"));  // written, and on disk
}

TEST_F(RecordEarlierRunTest, TheJournalReplaysWhatHappened) {
  Provenance origin;
  origin.job = "digits";
  origin.mprun = "1.2.3";
  origin.files.push_back({"the script", "/a.py", 7, 8, "digest"});
  {
    auto journal = Journal::create(path(kJournalName), origin);
    ASSERT_TRUE(journal) << journal.error().message;
    (*journal)->on_event(WorkerEnded{2, 44, "worker", {0, 9}, false});
    (*journal)->on_event(TaskRetried{5, 1, 2, "it died"});
    (*journal)->on_event(Notice{Notice::Kind::kWarning, "careful"});
    (*journal)->on_event(Notice{Notice::Kind::kExplain, "not kept"});
    (*journal)->on_event(HangFound{"text", "deadlock", "lock-cycle", "hangs/1.json"});
    (*journal)->end(130, 1.5, OnDisk::kNow);
  }
  std::vector<std::string> replayed;
  const auto replay = [&replayed](const JobEvent& event) {
    if (const auto* ended = std::get_if<WorkerEnded>(&event)) {
      replayed.push_back(std::string(ended->role) + std::to_string(ended->pid) + "/" +
                         std::to_string(ended->end.signal));
    } else if (const auto* retried = std::get_if<TaskRetried>(&event)) {
      replayed.push_back("retried" + std::to_string(retried->task));
    } else if (const auto* notice = std::get_if<Notice>(&event)) {
      replayed.emplace_back(notice->text);
    } else if (const auto* hang = std::get_if<HangFound>(&event)) {
      replayed.emplace_back(hang->cause);
    }
  };
  const std::uint64_t whole = contents(kJournalName).size();
  std::ofstream(path(kJournalName), std::ios::app) << "{\"proc";  // torn
  auto sessions = read_journal(dir_, replay);
  ASSERT_TRUE(sessions) << sessions.error().message;
  EXPECT_THAT(replayed, ElementsAre("worker44/9", "retried5", "careful", "lock-cycle"));
  EXPECT_EQ(sessions->bytes, whole);
  EXPECT_EQ(sessions->sessions, 1);
  EXPECT_TRUE(sessions->ended);
  EXPECT_DOUBLE_EQ(sessions->seconds, 1.5);
  EXPECT_EQ(sessions->origin.job, "digits");
  EXPECT_THAT(changed_files(sessions->origin, origin), IsEmpty());
  ASSERT_TRUE(Journal::reopen(path(kJournalName), {whole, 2}));
  sessions = read_journal(dir_, replay);
  EXPECT_EQ(sessions->sessions, 2);
  EXPECT_FALSE(sessions->ended);
}

TEST_F(RecordEarlierRunTest, AfterAPowerCutOnlyWhatWasOnDiskIsCertain) {
  const auto certain = [this] {
    auto sessions = read_journal(dir_, [](const JobEvent&) {});
    sessions->boot += "another";
    return certain_bytes(*sessions);
  };
  auto journal = Journal::create(path(kJournalName), Provenance());
  ASSERT_TRUE(journal);
  (*journal)->end(0, 1, OnDisk::kLater);
  EXPECT_EQ(certain(), 0U);
  EXPECT_GE((*journal)->record_durable(40), 0);
  EXPECT_EQ(certain(), 40U);
  (*journal)->end(0, 1, OnDisk::kNow);
  EXPECT_EQ(certain(), UINT64_MAX);
  Journal::Session session{contents(kJournalName).size(), 2};
  session.certain = 30;
  ASSERT_TRUE(Journal::reopen(path(kJournalName), session));
  EXPECT_EQ(certain(), 30U);
}

TEST_F(RecordEarlierRunTest, WhatIsNoJournalIsRefusedByName) {
  const auto ignore = [](const JobEvent&) {};
  EXPECT_THAT(read_journal(dir_ + "/none", ignore).error().message, HasSubstr("there is no run directory"));
  EXPECT_THAT(read_journal(dir_, ignore).error().message, HasSubstr("is not a run directory"));
  put("results.jsonl", "");
  EXPECT_THAT(read_journal(dir_, ignore).error().message, HasSubstr("kept no journal"));
  Json options = {{"journal", kJournalVersion}, {"started", ""}, {"origin", to_json(Provenance())}};
  options["origin"]["options"] = Json::array();
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "is empty"},
           {"{\"journal\":1", "is empty"},
           {"[]\n", "does not begin as a journal"},
           {"{\"journal\":9,\"mprun\":\"4.0\"}\n", "resume it with the mprun 4.0"},
           {"{\"journal\":9,\"mprun\":4}\n", "has version 9"},
           {"{\"journal\":1}\n", "does not begin as a journal"},
           {"{\"journal\":1,\"mprun\":\"4.0\",\"started\":\"\"}\n", "does not begin as a journal"},
           {"{\"journal\":1,\"mprun\":\"4.0\",\"started\":\"\",\"origin\":{}}\n", "made from"},
           {options.dump() + "\n", "options are no object"}}) {
    put(kJournalName, text);
    EXPECT_THAT(read_journal(dir_, ignore).error().message, HasSubstr(message)) << text;
  }
}

TEST_F(RecordEarlierRunTest, AVersionOfAnyLengthIsReportedInFewWords) {
  put(kJournalName, "{\"journal\":\"" + std::string(5000, 'x') + "\",\"mprun\":\"" + std::string(5000, 'y') + "\"}\n");
  EXPECT_LT(read_journal(dir_, [](const JobEvent&) {}).error().message.size(), 500 + dir_.size());
}

TEST_F(RecordEarlierRunTest, NumbersThatMprunDoesNotWriteDoNotCount) {
  const Json first = {
      {"journal", kJournalVersion}, {"started", "9999-12-31T23:59:59Z"}, {"origin", to_json(Provenance())}};
  put(kJournalName, first.dump() + R"(
{"session":2147483647}
{"session":1e300}
{"session":-1}
{"ended":{"exit_code":0,"seconds":1e308}}
{"ended":{"exit_code":0,"seconds":1e308}}
{"ended":{"exit_code":0,"seconds":-5}}
{"ended":{"exit_code":0,"seconds":2}}
{"retried":{"task":1e300,"attempt":1,"worker":1}}
{"retried":{"task":-1,"attempt":1,"worker":1}}
{"process":{"pid":5000000000,"worker":1,"role":"worker","exit_code":0,"signal":9,"expected":true}}
{"stage":{"worker":1e300,"text":"forking","at":1,"first":true}}
)");
  int events = 0;
  const auto sessions = read_journal(dir_, [&events](const JobEvent&) { ++events; });
  EXPECT_EQ(events, 0);
  ASSERT_TRUE(sessions) << sessions.error().message;
  EXPECT_EQ(sessions->sessions, 1);
  EXPECT_EQ(sessions->started, 0);
  EXPECT_DOUBLE_EQ(sessions->seconds, 2);
}

TEST_F(RecordEarlierRunTest, ATaskThatTheJobDoesNotHaveDoesNotCount) {
  const std::string beyond = R"({"task":18446744073709551615,"status":"ok","value":1})"
                             "\n";
  put("results.jsonl", beyond + line(3) + line(4) + beyond);
  KeepRule rule;
  EXPECT_THAT(tasks(read(rule)), ElementsAre(3, 4));  // there is no task after it
  rule.tasks = 4;
  EXPECT_THAT(tasks(read(rule)), ElementsAre(3));
}

TEST_F(RecordEarlierRunTest, FilesThatChangedAreNamed) {
  put("a.py", "one");
  put("x.txt", "1\n");
  JobSpec spec;
  spec.script = path("a.py");
  spec.inputs = LinesInput{path("x.txt")};
  const Provenance before = provenance_of(spec, "", "");
  put("a.py", "one");  // rewritten, unchanged
  EXPECT_THAT(changed_files(before, provenance_of(spec, "", "")), IsEmpty());
  put("a.py", "two");
  EXPECT_THAT(changed_files(before, provenance_of(spec, "", "")), ElementsAre(HasSubstr("a.py has changed")));
  fs::remove(path("a.py"));
  EXPECT_THAT(changed_files(before, provenance_of(spec, "", "")), ElementsAre(HasSubstr("a.py is gone")));
  spec.inputs = LinesInput{path("x.txt")};
  spec.shared.push_back({});
  spec.shared.back().path = path("x.txt");  // in any case, for both
  const Provenance twice = provenance_of(spec, "", "");
  EXPECT_THAT(changed_files(twice, twice), IsEmpty());
  EXPECT_THAT(changed_files(before, twice), ElementsAre(HasSubstr("a.py is gone")));
  spec.inputs = LinesInput{"-"};
  EXPECT_TRUE(provenance_of(spec, "", "").reads_stdin);
  const auto again = provenance_from_json(to_json(before));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(changed_files(before, *again), IsEmpty());
}

TEST_F(RecordEarlierRunTest, FilesAreSyncedInTheBackground) {
  put("a", "1");
  FileSync sync;
  std::vector<Fd> files;
  files.reserve(3);
  for (int i = 0; i < 3; ++i) files.emplace_back(open(path("a").c_str(), O_RDWR | O_CLOEXEC));
  const Fd last(open(path("a").c_str(), O_RDWR | O_CLOEXEC));
  sync.start(std::move(files), last.get());
  sync.wait();
  EXPECT_TRUE(sync.idle());
  EXPECT_EQ(sync.error_number(), 0);
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  sync.start({}, pipe->write.get());  // without a disk
  sync.wait();
  EXPECT_EQ(sync.error_number(), 0);
  sync.start({}, 1'000'000);
  sync.wait();
  EXPECT_EQ(sync.error_number(), EBADF);
}

/// The memory of an AIO context, whose end takes tens of milliseconds.
[[nodiscard]] bool has_aio() {
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find("[aio]") != std::string::npos;
}

TEST_F(RecordEarlierRunTest, FilesAreSyncedAtOnceWithoutAio) {
  put("a", "1");
  FileSync sync;
  std::vector<Fd> files;
  files.emplace_back(open(path("a").c_str(), O_RDWR | O_CLOEXEC));
  const int last = files.front().get();
  sync.run(files, last);
  EXPECT_TRUE(sync.idle());
  EXPECT_EQ(sync.error_number(), 0);
  EXPECT_FALSE(has_aio());
  sync.start({}, last);
  sync.wait();
  EXPECT_TRUE(has_aio()) << "this test cannot see it";
  sync.run({}, 1'000'000);
  EXPECT_EQ(sync.error_number(), EBADF);
}

TEST_F(RecordEarlierRunTest, TheResultsOfAShortRunAreSyncedWithoutAio) {
  auto writer = ResultsWriter::open({path(), Order::kInput, ""});
  ASSERT_TRUE(writer) << writer.error().message;
  TaskEnded ended;
  ended.result = "7";
  (*writer)->on_event(ended);
  EXPECT_TRUE((*writer)->sync());
  EXPECT_FALSE(has_aio());
}

}  // namespace
}  // namespace mprun
