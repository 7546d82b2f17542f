// is_json(): what may go into results.jsonl, compared with what nlohmann accepts.
#include "json/json_check.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "json/json.h"

namespace mprun {
namespace {

TEST(JsonCheck, TakesWholeValues) {
  for (const char* text :
       {"0", "-0.5e+3", "\"\"", "\"a\\u00e9\\n\\/\"", "null", "true", "false", " [ ] ", "{}", "[[],{}]",
        R"({"a": [1, 2, {"b": "x"}], "c": "\ud800"})", "\"\xc3\xa9\xf0\x9f\x98\x80\"", "[1,2]\n"}) {
    EXPECT_TRUE(is_json(text)) << text;
  }
}

TEST(JsonCheck, RefusesAllElse) {
  for (const char* text : {"",
                           " ",
                           "1 2",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "-",
                           "nul",
                           "nulll",
                           "NaN",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\t\"",
                           "[",
                           "]",
                           "[1,]",
                           "[,]",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{,}",
                           "{\"a\":1,}",
                           "[}",
                           "{]",
                           "[1]]",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf5\x80\x80\x80\"",
                           "\"\xc3\"",
                           "\"a\"}\n{\"task\":1",
                           "1}\n{"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
  EXPECT_FALSE(is_json(std::string_view("\"\\\0\"", 4)));
  EXPECT_FALSE(is_json(std::string(100'000, '[')));
  EXPECT_TRUE(is_json(std::string(10'000, '[') + std::string(10'000, ']')));
  EXPECT_FALSE(is_json(std::string(10'001, '[') + std::string(10'001, ']')));
}

TEST(JsonCheck, AgreesWithAParser) {
  const std::string pieces[] = {"{", "}",       "[",  "]",       ",",        ":",        "\"",           "\"a\"",
                                "1", "-2.5e-3", "0",  ".",       "e",        "null",     "true",         "fals",
                                " ", "\n",      "\\", "\\u00e9", "\xc3\xa9", "\xe2\x82", "\xed\xbf\xbf", "x"};
  std::mt19937 random(20'26);
  int good = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (auto n = random() % 9; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const bool expected = Json::accept(text);
    good += expected ? 1 : 0;
    ASSERT_EQ(is_json(text), expected) << text;
  }
  EXPECT_GT(good, 200);
}

}  // namespace
}  // namespace mprun
