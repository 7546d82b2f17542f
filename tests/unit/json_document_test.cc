// Document: reading JSON texts, what it refuses and how, and lines of JSON pointers.
#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mprun {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  Result<Document> document = parse_document("job.json", "/", text);
  if (document) return "accepted";
  EXPECT_EQ(document.error().fault, Fault::kUsage);
  return document.error().message;
}

class DocumentFiles : public ::testing::Test {
 protected:
  DocumentFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mprun-document-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~DocumentFiles() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << text;
  }
  std::string directory_;
};

TEST_F(DocumentFiles, ReadsAFileRelativeToTheCurrentDirectory) {
  std::filesystem::create_directory(directory_ + "/sub");
  write("sub/job.json", "{\"script\": \"a.py\"}");
  Result<Document> document = read_document("sub/job.json", directory_);
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->name, "sub/job.json");
  EXPECT_EQ(document->base_dir, directory_ + "/sub");
  EXPECT_EQ(document->value["script"], "a.py");
}

TEST_F(DocumentFiles, NamesWhatIsNotAReadableFile) {
  EXPECT_EQ(read_document("none.json", directory_).error().message, "none.json: no such file");
  EXPECT_EQ(read_document(".", directory_).error().message, ".: is a directory, not a job spec");
  write("secret.json", "{}");
  std::filesystem::permissions(directory_ + "/secret.json", std::filesystem::perms::none);
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  EXPECT_THAT(read_document("secret.json", directory_).error().message, HasSubstr("cannot be read: Permission denied"));
}

TEST(DocumentText, RefusesWhatIsEmptyOrNoObject) {
  EXPECT_THAT(refusal(""), StartsWith("job.json: is empty"));
  EXPECT_THAT(refusal(" \n\t\n"), StartsWith("job.json: is empty"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF"), StartsWith("job.json: is empty"));
  EXPECT_THAT(refusal("[1, 2]"), StartsWith("job.json:1: found [1,2], allowed: a JSON object"));
  EXPECT_THAT(refusal("null"), HasSubstr("found null"));
}

TEST(DocumentText, ShowsTheLineAndACaret) {
  const std::string message = refusal("{\n  \"processes\": 4\n  \"script\": \"a.py\"\n}\n");
  EXPECT_THAT(message, StartsWith("job.json:3:3: "));
  EXPECT_THAT(message, HasSubstr("\n      \"script\": \"a.py\"\n      ^"));
}

TEST(DocumentText, NamesCommonMistakes) {
  EXPECT_THAT(refusal("{\"a\": 1,}"), HasSubstr("job.json:1:9: "));
  EXPECT_THAT(refusal("{\"a\": 1,}"), HasSubstr("a comma must not stand before the closing '}'"));
  EXPECT_THAT(refusal("{'a': 1}"), HasSubstr("double quotes"));
  EXPECT_THAT(refusal("{\"a\": True}"), HasSubstr("True is written true"));
  EXPECT_THAT(refusal("{\"a\": NaN}"), HasSubstr("JSON has no NaN"));
  EXPECT_THAT(refusal("{} // done"), HasSubstr("no comments"));
  EXPECT_THAT(refusal("{\"a\": [1, 2"), HasSubstr("job.json:1:12: "));
  EXPECT_THAT(refusal("{\"a\": [1, 2"), HasSubstr("ends in the middle of a value"));
  EXPECT_THAT(refusal("{\"a\": \"x\n\"}"), HasSubstr("job.json:1:9: "));
  EXPECT_THAT(refusal("{\"a\": \"\xFF\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal("{} {}"), HasSubstr("job.json:1:4: "));
}

TEST(DocumentText, RefusesWhatFollowsAByteOfZero) {
  const std::string nul(1, '\0');
  EXPECT_THAT(refusal("{\"a\": 1}" + nul), StartsWith("job.json:1:9: not a JSON text mprun can take: a byte of 0"));
  EXPECT_THAT(refusal("{\"a\": 1}\n" + nul + "{\"b\": 2}"), StartsWith("job.json:2:1: "));
  EXPECT_THAT(refusal("{\"a\": " + nul + "1}"), StartsWith("job.json:1:7: "));
  EXPECT_THAT(refusal("{\"a\": " + nul + "1}"), HasSubstr("a byte of 0"));
}

TEST(DocumentText, NamesUtf16) {  // as a redirection of PowerShell writes it
  EXPECT_THAT(refusal(std::string("\xFF\xFE{\0}\0", 6)), HasSubstr("the text is in UTF-16; save it in UTF-8"));
  EXPECT_THAT(refusal(std::string("\xFE\xFF\0{\0}", 6)), HasSubstr("the text is in UTF-16; save it in UTF-8"));
}

TEST(DocumentText, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(refusal("{\"seed\": 1e400}"), HasSubstr("the number 1e400 is too large"));
  EXPECT_THAT(refusal("{\n\"seed\": 99999999999999999999}"), StartsWith("job.json:2:9: "));
  EXPECT_THAT(refusal("{\"seed\": 99999999999999999999}"), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(refusal("{\"seed\": -9223372036854775809}"), HasSubstr("does not fit into 64 bits"));
}

TEST(DocumentText, RefusesADuplicateKeyWithItsLine) {
  EXPECT_EQ(refusal("{\n\"a\": 1,\n\"limits\": {\"b\": 1,\n \"b\": 2}}"), "job.json:4: duplicate key \"b\"");
  EXPECT_EQ(refusal("{\"a\": {\"b\": 1}, \"b\": 2}"), "accepted");
}

TEST(DocumentText, RefusesDeepNestingWithoutCrashing) {
  EXPECT_THAT(refusal("{\"a\": " + std::string(1000000, '[')), HasSubstr("nested more than 200 levels"));
  std::string objects;
  for (int i = 0; i < 300; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("nested more than 200 levels"));
}

TEST(DocumentText, ClipsLongLinesInErrors) {
  const std::string message = refusal("{\"a\": \"" + std::string(100000, 'x') + "\", }");
  EXPECT_LT(message.size(), 400U);
  EXPECT_THAT(message, HasSubstr("..."));
}

TEST(DocumentText, AcceptsAByteOrderMark) {
  Result<Document> document = parse_document("job.json", "/", "\xEF\xBB\xBF{\"a\": 1}");
  ASSERT_TRUE(document);
  EXPECT_EQ(line_of(*document, "/a"), 1);
}

TEST(DocumentText, KeepsTheOrderOfKeys) {
  Result<Document> document = parse_document("job.json", "/", R"({"z": [1.5, {"y": null}], "a": true, "m": -3})");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->value.dump(), R"({"z":[1.5,{"y":null}],"a":true,"m":-3})");
}

TEST(DocumentLines, FindsEveryKindOfValue) {
  const std::string text =
      "{\n"                                    // 1
      "  \"script\":\n"                        // 2
      "    \"a.py\",\n"                        // 3
      "  \"limits\": {\"task_seconds\": 3,\n"  // 4
      "    \"a/b~c\": {\"x\": 1},\n"           // 5
      "    \"join_seconds\": 4},\n"            // 6
      "  \"args\": [\"a\",\n"                  // 7
      "    2, [{\n"                            // 8
      "    \"task_seconds\": 5}], 6\n"         // 9
      "  ],\n"                                 // 10
      "  \"items\": [1, 2,\n"                  // 11
      "    3\n"                                // 12
      "  ]}\n";
  Result<Document> document = parse_document("job.json", "/", text);
  ASSERT_TRUE(document) << document.error().message;
  const std::pair<const char*, int> cases[] = {{"", 1},
                                               {"/script", 2},
                                               {"/limits", 4},
                                               {"/limits/task_seconds", 4},
                                               {"/limits/a~1b~0c", 5},
                                               {"/limits/a~1b~0c/x", 5},
                                               {"/limits/join_seconds", 6},
                                               {"/args", 7},
                                               {"/args/0", 7},
                                               {"/args/1", 8},
                                               {"/args/2/0", 8},
                                               {"/args/2/0/task_seconds", 9},
                                               {"/args/3", 9},
                                               {"/items/1", 11},
                                               {"/items/2", 12},
                                               {"/none", 0},
                                               {"/args/9", 0},
                                               {"/script/x", 0},
                                               {"/limits/x", 0},
                                               {"/x", 0},
                                               {"no pointer", 0}};
  for (const auto& [pointer, line] : cases) EXPECT_EQ(line_of(*document, pointer), line) << pointer;
}

TEST(DocumentLines, PlacesNameFileOrOption) {
  Result<Document> file = parse_document("job.json", "/", "{\n\"a\": {\n\"b\": 1}}");
  ASSERT_TRUE(file);
  EXPECT_EQ(place_of(*file, "/a/b"), "job.json:3");
  EXPECT_EQ(place_of(*file, "/none"), "job.json");
  Document line;
  line.name = "the command line";
  line.origins = {{"/limits", "--set limits={}"}, {"/limits/task_seconds", "--task-timeout x"}};
  EXPECT_EQ(place_of(line, "/limits/task_seconds"), "the command line (--task-timeout x)");
  EXPECT_EQ(place_of(line, "/limits/other"), "the command line (--set limits={})");
  EXPECT_EQ(place_of(line, "/limitsx"), "the command line");
}

}  // namespace
}  // namespace mprun
