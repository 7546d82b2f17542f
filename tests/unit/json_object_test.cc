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

}  // namespace
}  // namespace mprun
