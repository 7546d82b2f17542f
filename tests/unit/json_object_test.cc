#include "json/json_object.h"

#include <gtest/gtest.h>

#include "json/json.h"

namespace mprun {
namespace {

TEST(JsonObject, HoldsItsMembersInTheirOrder) {
  const std::string text = JsonObject()
                               .value("z", Json::array({1, 2}))
                               .json("a", R"({"b":null})")
                               .value("is", true)
                               .bytes("path", "/tmp/\"x\"")
                               .text();
  EXPECT_EQ(text, R"({"z":[1,2],"a":{"b":null},"is":true,"path":"/tmp/\"x\""})");
}

TEST(JsonObject, IsEmptyAtFirst) { EXPECT_EQ(JsonObject().text(), "{}"); }

TEST(JsonObject, CanGrowAfterItsTextWasTaken) {
  JsonObject object;
  object.bytes("type", "Signal");
  EXPECT_EQ(object.text(), R"({"type":"Signal"})");
  object.value("signal", 9);
  EXPECT_EQ(object.text(), R"({"type":"Signal","signal":9})");
}

TEST(JsonObject, KeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(JsonObject().bytes("\xFF", "\xFE").text(), R"({"\udcff":"\udcfe"})");
}

TEST(JsonObject, IsReadAgainWithBytesThatAreNotUtf8) {
  const std::string bytes = "\xFF\\\xF0\x9F\x98\x80";
  EXPECT_EQ(parse_escaped_json(JsonObject().bytes("a", bytes).text()), Json({{"a", "\uFFFD\\\U0001F600"}}));
  EXPECT_EQ(parse_escaped_json(R"(["\udcff", "\ud83d\ude00", "\ud83d", "\ud83dx\uDE00", "\\udcff"])"),
            Json::array({"\uFFFD", "\U0001F600", "\uFFFD", "\uFFFDx\uFFFD", "\\udcff"}));
  for (const char* text : {"[\"\\udcff\"", "\\", "\\u", "\\ud", "\"\\udc8", "\"\\ud83d\\"}) {
    EXPECT_TRUE(parse_escaped_json(text).is_discarded()) << text;
  }
}

}  // namespace
}  // namespace mprun
