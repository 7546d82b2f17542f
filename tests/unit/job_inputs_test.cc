// InputSource: every kind of inputs, their totals, and what it refuses before a launch.
#include "job/inputs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "job/input_lines.h"
#include "json/json.h"
#include "json/json_text.h"
#include "os/fd.h"

namespace mprun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pull = InputSource::Pull;

class JobInputs : public ::testing::Test {
 protected:
  JobInputs() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mprun-inputs-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~JobInputs() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string directory_;
};

Result<std::unique_ptr<InputSource>> open_spec(InputSpec inputs, int processes = 1) {
  JobSpec spec;
  spec.inputs = std::move(inputs);
  spec.processes = processes;
  return open_inputs(spec);
}

std::shared_ptr<const Json> shared(Json value) { return std::make_shared<const Json>(std::move(value)); }

std::vector<std::string> pull_all(InputSource* source) {
  std::vector<std::string> items;
  for (;;) {
    std::string item;
    const Pull pull = source->pull(&item);
    if (pull == Pull::kEnd) return items;
    if (pull == Pull::kWait) {
      items.emplace_back("WAIT");
      return items;
    }
    items.push_back(pull == Pull::kBad ? "BAD " + item : item);
  }
}

/// A part of the inputs holds what the whole holds at that place.
void expect_parts(const InputSpec& inputs, int processes, const std::vector<std::string>& items) {
  for (const std::size_t begin : {std::size_t{0}, items.size() / 2, items.size()}) {
    for (const std::size_t end : {begin, items.size(), items.size() + 1}) {
      auto source = open_spec(inputs, processes);
      ASSERT_TRUE(source);
      const auto part = open_part(std::move(*source), {begin, end, 1});
      const std::size_t stop = std::min(end, items.size());
      EXPECT_EQ(part->total(), stop - begin);
      EXPECT_EQ(pull_all(part.get()), std::vector<std::string>(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                                               items.begin() + static_cast<std::ptrdiff_t>(stop)));
    }
  }
}

std::vector<std::string> all_of(const InputSpec& inputs, int processes = 1) {
  Result<std::unique_ptr<InputSource>> source = open_spec(inputs, processes);
  if (!source) return {"ERROR " + source.error().message};
  std::vector<std::string> items = pull_all(source->get());
  const std::optional<std::uint64_t> total = (*source)->total();
  EXPECT_EQ(total.value_or(items.size()), items.size());
  std::string more;
  EXPECT_EQ((*source)->pull(&more), Pull::kEnd);
  if (total) expect_parts(inputs, processes, items);
  return items;
}

std::string refusal(InputSpec inputs) {
  Result<std::unique_ptr<InputSource>> source = open_spec(std::move(inputs));
  if (source) return "accepted";
  EXPECT_EQ(source.error().fault, Fault::kUsage);
  return source.error().message;
}

TEST_F(JobInputs, RanksGetOneNullEach) { EXPECT_THAT(all_of({}, 3), ElementsAre("null", "null", "null")); }

TEST_F(JobInputs, ItemsComeOneByOne) {
  EXPECT_THAT(all_of(ItemsInput{shared(Json::parse(R"([1, "a\nb", {"z": [1.0, null]}])"))}),
              ElementsAre("1", R"("a\nb")", R"({"z":[1.0,null]})"));
  EXPECT_THAT(refusal(ItemsInput{shared(Json::array())}), HasSubstr("the list is empty"));
}

TEST_F(JobInputs, RangesAreThoseOfPython) {
  EXPECT_THAT(all_of(RangeInput{0, 3, 1}), ElementsAre("0", "1", "2"));
  EXPECT_THAT(all_of(RangeInput{5, 0, -2}), ElementsAre("5", "3", "1"));
  EXPECT_THAT(all_of(RangeInput{-3, 4, 3}), ElementsAre("-3", "0", "3"));
  EXPECT_THAT(refusal(RangeInput{3, 3, 1}), HasSubstr("range(3, 3, 1) is empty"));
  EXPECT_THAT(refusal(RangeInput{0, 3, -1}), HasSubstr("is empty"));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(all_of(RangeInput{least, most, most}),
              ElementsAre(std::to_string(least), "-1", std::to_string(most - 1)));
}

TEST_F(JobInputs, AMillionTasksCostNoMemory) {
  Result<std::unique_ptr<InputSource>> source = open_spec(RangeInput{0, 1'000'000, 1});
  ASSERT_TRUE(source);
  std::string item;
  item.reserve(64);
  const std::size_t before = mallinfo2().uordblks;
  std::uint64_t count = 0;
  while ((*source)->pull(&item) == Pull::kItem) {
    ++count;
    item.clear();
  }
  EXPECT_EQ(count, 1'000'000U);
  EXPECT_EQ(mallinfo2().uordblks, before);
}

TEST_F(JobInputs, GridsVaryTheLastAxisFastest) {
  EXPECT_THAT(all_of(GridInput{shared(Json::parse(R"({"lr": [0.1, 0.01], "b\"": ["x", "y", null]})"))}),
              ElementsAre(R"({"lr":0.1,"b\"":"x"})", R"({"lr":0.1,"b\"":"y"})", R"({"lr":0.1,"b\"":null})",
                          R"({"lr":0.01,"b\"":"x"})", R"({"lr":0.01,"b\"":"y"})", R"({"lr":0.01,"b\"":null})"));
  Json huge = Json::object();
  for (int i = 0; i < 70; ++i) huge["a" + std::to_string(i)] = Json::array({1, 2});
  EXPECT_THAT(refusal(GridInput{shared(huge)}), HasSubstr("more than 2^63"));
}

TEST_F(JobInputs, LinesKeepTheirBytes) {
  const std::string path = write("lines", "one\n\n\"q\\\t\r\n\xC3\xA9 \xFF\xED\xA0\x80\nlast");
  const std::vector<std::string> items = all_of(LinesInput{path});
  EXPECT_THAT(items, ElementsAre(R"("one")", R"("")", R"("\"q\\\t\r")", "\"\xC3\xA9 \\udcff\\udced\\udca0\\udc80\"",
                                 R"("last")"));
  EXPECT_EQ(decode_json_text(items[2]), "\"q\\\t\r");
  EXPECT_EQ(decode_json_text(items[3]), "\xC3\xA9 \xFF\xED\xA0\x80");
  EXPECT_THAT(refusal(LinesInput{write("empty", "")}), HasSubstr("empty: has no inputs"));
  EXPECT_THAT(refusal(LinesInput{directory_ + "/none"}), HasSubstr("none: cannot be read: No such file"));
  EXPECT_THAT(refusal(LinesInput{directory_}), HasSubstr("is a directory"));
}

TEST_F(JobInputs, LinesLongerThanTheBufferArriveWhole) {
  const std::string path = write("long", std::string(1'500'000, 'a') + "\nb\n" + std::string(700'000, 'c'));
  const std::vector<std::string> items = all_of(LinesInput{path});
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].size(), 1'500'002U);
  EXPECT_EQ(items[1], R"("b")");
  EXPECT_EQ(items[2].size(), 700'002U);
}

TEST_F(JobInputs, AnOverlongLineIsSkippedAndReported) {
  const std::string path = write("huge", "a\n" + std::string(2'000'000, 'x') + "\nb\n" + std::string(1'000'000, 'y'));
  Result<job::InputLines> lines = job::InputLines::open(path, 1000);
  ASSERT_TRUE(lines);
  using Next = job::InputLines::Next;
  std::string_view line;
  EXPECT_EQ(lines->next(&line), Next::kLine);
  EXPECT_EQ(lines->next(&line), Next::kTooLong);
  EXPECT_EQ(lines->number(), 2U);
  EXPECT_EQ(lines->next(&line), Next::kLine);
  EXPECT_EQ(line, "b");
  EXPECT_EQ(lines->next(&line), Next::kTooLong);
  EXPECT_EQ(lines->next(&line), Next::kEnd);
}

TEST_F(JobInputs, ManyLinesAreReadAsTheyWereCounted) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + "\n";
  const std::string path = write("many", text);
  Result<std::unique_ptr<InputSource>> source = open_spec(LinesInput{path});
  ASSERT_TRUE(source);
  std::ofstream(path, std::ios::app) << "appended later\n";
  EXPECT_EQ(pull_all(source->get()).size(), 200'000U);
  EXPECT_EQ((*source)->total(), 200'000U);
  EXPECT_EQ((*source)->wait_fd(), -1);
}

TEST_F(JobInputs, AFileThatBecomesShorterWhileItIsReadIsAFault) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + "\n";
  for (const bool json : {false, true}) {
    const std::string path = write("shrinking", text);
    Result<std::unique_ptr<InputSource>> source = json ? open_spec(JsonlInput{path}) : open_spec(LinesInput{path});
    ASSERT_TRUE(source);
    std::string item;
    ASSERT_EQ((*source)->pull(&item), InputSource::Pull::kItem);
    ASSERT_EQ(truncate(path.c_str(), 1'000'001), 0);  // within a line
    InputSource::Pull pulled{};
    std::uint64_t items = 1;
    for (item.clear(); (pulled = (*source)->pull(&item)) == InputSource::Pull::kItem; item.clear()) ++items;
    EXPECT_EQ(pulled, InputSource::Pull::kBad);
    EXPECT_THAT(item, HasSubstr("shrinking: the file has become shorter while it was read"));
    EXPECT_EQ(items, 158'730U);  // the half line is none
    EXPECT_EQ((*source)->pull(&item), InputSource::Pull::kEnd);
  }
}

TEST_F(JobInputs, JsonlThatChangesWhileItIsReadIsCheckedAgain) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "[1]\n";
  const std::string path = write("changing", text);
  Result<std::unique_ptr<InputSource>> source = open_spec(JsonlInput{path});
  ASSERT_TRUE(source);
  std::string item;
  ASSERT_EQ((*source)->pull(&item), InputSource::Pull::kItem);
  std::fstream(path).seekp(4 * 199'999) << "[1,\n";
  InputSource::Pull pulled{};
  for (item.clear(); (pulled = (*source)->pull(&item)) == InputSource::Pull::kItem; item.clear()) continue;
  EXPECT_EQ(pulled, InputSource::Pull::kBad);
  EXPECT_THAT(item, HasSubstr("changing:200000:4: not JSON: half a JSON"));
}

TEST_F(JobInputs, JsonlSkipsBlankLinesAndPassesTexts) {
  const std::string path = write("a.jsonl", "\xEF\xBB\xBF{\"a\": 1}\r\n\n  \n[1, 2] \n\"x\"");
  EXPECT_THAT(all_of(JsonlInput{path}), ElementsAre("{\"a\": 1}", "[1, 2]", "\"x\""));
  EXPECT_THAT(refusal(JsonlInput{write("blank", "\n\n")}), HasSubstr("has no inputs"));
}

TEST_F(JobInputs, JsonlIsCheckedLineByLine) {
  EXPECT_THAT(refusal(JsonlInput{write("half", "1\n\n{\"a\": [1,\n")}), HasSubstr("half:3:10: not JSON: half a JSON"));
  EXPECT_THAT(refusal(JsonlInput{write("nan", "1\nNaN\n")}), HasSubstr("nan:2:1: not JSON: JSON has no NaN"));
  EXPECT_THAT(refusal(JsonlInput{write("two", "1 2\n")}), HasSubstr("two:1:3: not JSON"));
  const std::string nul(1, '\0');
  EXPECT_THAT(refusal(JsonlInput{write("nul", "1\n2" + nul + "x\n")}), HasSubstr("nul:2:2: not JSON: a byte of 0"));
  EXPECT_THAT(refusal(JsonlInput{write("cut", "1\n[2, " + nul + nul)}), HasSubstr("cut:2:5: not JSON: a byte of 0"));
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']') + "\n"; };
  EXPECT_EQ(refusal(JsonlInput{write("deep", nested(900))}), "accepted");
  EXPECT_THAT(refusal(JsonlInput{write("deeper", "1\n" + nested(901))}),
              HasSubstr("deeper:2:1: not JSON: nested more than 900 levels deep"));
  EXPECT_THAT(refusal(JsonlInput{write("deepest", nested(100'000))}), HasSubstr("more than 900 levels"));
}

TEST_F(JobInputs, APipeWaitsAndABadLineOnItIsOneBadInput) {
  const std::string path = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Result<std::unique_ptr<InputSource>> source = open_spec(JsonlInput{path});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->total(), std::nullopt);
  EXPECT_GE((*source)->wait_fd(), 0);
  EXPECT_THAT(pull_all(source->get()), ElementsAre("WAIT"));
  Fd writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(write_all(writer.get(), "1\n{\n[2"));
  const std::vector<std::string> items = pull_all(source->get());
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0], "1");
  EXPECT_THAT(items[1], HasSubstr("BAD " + path + ":2:2: not JSON: half a JSON"));
  EXPECT_EQ(items[2], "WAIT");
  ASSERT_TRUE(write_all(writer.get(), "]"));
  writer.reset();
  EXPECT_THAT(pull_all(source->get()), ElementsAre("[2]"));
}

TEST_F(JobInputs, GlobsAreSortedAbsolutePaths) {
  std::filesystem::create_directory(directory_ + "/[d]");
  (void)write("[d]/b.txt", "");
  (void)write("[d]/a.txt", "");
  (void)write("[d]/\xFF.txt", "");
  (void)write("[d]/c.csv", "");
  const std::vector<std::string> items = all_of(GlobInput{directory_ + "/\\[d\\]/*.txt"});
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(decode_json_text(items[0]), directory_ + "/[d]/a.txt");
  EXPECT_EQ(decode_json_text(items[1]), directory_ + "/[d]/b.txt");
  EXPECT_EQ(decode_json_text(items[2]), directory_ + "/[d]/\xFF.txt");
  EXPECT_THAT(refusal(GlobInput{directory_ + "/*.none"}), HasSubstr("no file name matches"));
}

TEST_F(JobInputs, RowsComeOneByOneOrInBatches) {
  const auto array = [](const std::string& path, std::int64_t rows) {
    InputArray one;
    one.path = path;
    one.rows = rows;
    return one;
  };
  EXPECT_THAT(all_of(ArraysInput{{array("/a", 3)}, false, std::nullopt}), ElementsAre("0", "1", "2"));
  EXPECT_THAT(all_of(ArraysInput{{array("/a", 5), array("/b", 5)}, false, 2}), ElementsAre("[0,2]", "[2,4]", "[4,5]"));
  EXPECT_THAT(all_of(ArraysInput{{array("/a", 5)}, false, 100}), ElementsAre("[0,5]"));
  EXPECT_THAT(all_of(ArraysInput{{array("/0", 0), array("/a", 3), array("/1", 0), array("/b", 2)}, true, 2}),
              ElementsAre("[0,2]", "[2,3]", "[3,5]"));
  EXPECT_THAT(all_of(ArraysInput{{array("/a", 0), array("/\xFF", 2)}, true, std::nullopt}),
              ElementsAre(R"("/a")", R"("/\udcff")"));
  Result<std::unique_ptr<InputSource>> huge =
      open_spec(ArraysInput{{array("/a", std::numeric_limits<std::int64_t>::max())}, false, std::int64_t{1} << 53U});
  ASSERT_TRUE(huge);
  EXPECT_EQ((*huge)->total(), 1024U);
}

TEST(JobJsonText, StringsComeBackAsTheirBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  all += "\xF0\x9F\x98\x80\xF4\x90\x80\x80\xE0\x80\x80";
  std::string json;
  append_json_string(&json, all);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_EQ(decode_json_text(json), all);
  EXPECT_EQ(decode_json_text(R"("\ud83d\ude00\u00e9\/\u0041")"), "\xF0\x9F\x98\x80\xC3\xA9/A");
  EXPECT_EQ(decode_json_text(R"({"a": "b"})"), R"({"a": "b"})");
  EXPECT_EQ(decode_json_text("12"), "12");
  EXPECT_EQ(decode_json_text("\"\\\""), "");
  EXPECT_EQ(decode_json_text(R"("\u12)"), "\"\\u12");
}

}  // namespace
}  // namespace mprun
