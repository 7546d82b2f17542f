// Strings, code objects and line tables of CPython, from made-up memory.
#include "watch/stacks/python_code.h"

#include <gtest/gtest.h>

#include "fake_process.h"

namespace mprun {
namespace {

// Entries of a co_linetable by kind (0-9 short, 10-12 one line, 13 no columns, 14 long, 15 none) and code units.
std::string entry(int kind, int units, const std::string& rest = "") {
  return std::string(1, static_cast<char>(0x80 | (kind << 3) | (units - 1))) + rest;
}

TEST(PythonLine, FollowsTheLocationTable) {
  const std::string table = entry(15, 1) +                      // units 0: belongs to no line
                            entry(10, 2, "\x01\x02") +          // 1-2: line 10
                            entry(11, 8, "\x01\x02") +          // 3-10: line 11
                            entry(0, 1, "\x11") +               // 11: line 11
                            entry(12, 1, "\x01\x02") +          // 12: line 13
                            entry(14, 1, "\x07\x01\x05\x07") +  // 13: -3, line 10
                            entry(13, 1, "\x50\x0a") +          // 14: varint 0x10 | 10 << 6 = 656: +328
                            entry(15, 1);
  const std::vector<int> lines = {0, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 13, 10, 338, 0};
  for (std::size_t unit = 0; unit < lines.size(); ++unit) {
    EXPECT_EQ(python_line(table, 10, unit * 2), lines[unit]) << unit;
    EXPECT_EQ(python_line(table, 10, unit * 2 + 1), lines[unit]) << unit;
  }
  EXPECT_EQ(python_line(table, 10, lines.size() * 2), 0);
}

// def work():       4
//     x = (1 +       5, four bytes of instructions
//          f())      6, two bytes; and then 5 again, two
//     return x       7
TEST(PythonLine, FollowsTheTablesOfOldVersions) {
  const std::string ranges("\x02\x80\x04\x01\x02\x01\x02\xff\x04\x02", 10);
  const std::vector<int> lines = {0, 5, 5, 6, 5, 7, 7, 0};
  for (std::size_t unit = 0; unit < lines.size(); ++unit) {
    EXPECT_EQ(python_line(ranges, 4, unit * 2, PythonLineFormat::kRanges), lines[unit]) << unit;
  }
  const std::string steps("\x00\x01\x04\x01\x02\xff\x02\x02", 8);
  const std::vector<int> more = {5, 5, 6, 5, 7, 7};
  for (std::size_t unit = 0; unit < more.size(); ++unit) {
    EXPECT_EQ(python_line(steps, 4, unit * 2, PythonLineFormat::kSteps), more[unit]) << unit;
  }
  EXPECT_EQ(python_line("\x02", 4, 0, PythonLineFormat::kRanges), 0);
  EXPECT_EQ(python_line("\x02", 4, 0, PythonLineFormat::kSteps), 4);
}

TEST(PythonLine, SurvivesGarbage) {
  EXPECT_EQ(python_line("", 10, 0), 0);
  EXPECT_EQ(python_line("\x01", 10, 0), 0);                                 // begins in the middle of an entry
  EXPECT_EQ(python_line(entry(14, 1), 10, 0), 10);                          // cut short
  EXPECT_EQ(python_line(entry(13, 1, std::string(64, '\x7f')), 10, 0), 0);  // an endless number
  EXPECT_EQ(python_line(entry(13, 1, "\x2f"), 10, 0), 0);                   // -23: before the first line of all
}

class PythonCodeReading : public testing::Test {
 protected:
  static constexpr std::uint64_t kStringType = 0x100, kCodeType = 0x200, kBytesType = 0x300;
  FakeProcess proc_;
  ProcessMemory memory_{&proc_, 1, std::size_t{1} << 24U};
  const PythonLayout& layout_ = *known_python_layout(11);
  PythonCodeReader reader_{&memory_, layout_, {kCodeType, kStringType, kBytesType}};

  /// A str; `kind` bytes per character.
  template <typename Character>
  void put_string(std::uint64_t at, std::basic_string_view<Character> text, bool ascii = false) {
    proc_.map(at, layout_.text.compact_data);
    proc_.put<std::uint64_t>(at + 8, kStringType);
    proc_.put<std::uint64_t>(at + 16, text.size());
    proc_.put<std::uint32_t>(at + 32, sizeof(Character) << 2U | 32U | (ascii ? 64U : 0U) | 128U);
    const char* raw = reinterpret_cast<const char*>(text.data());
    proc_.put_bytes(at + (ascii ? layout_.text.ascii_data : layout_.text.compact_data),
                    {raw, text.size() * sizeof(Character)});
  }
  void put_code(std::uint64_t at, std::uint64_t file, std::uint64_t name, std::uint64_t lines) {
    proc_.map(at, layout_.code.instructions);
    proc_.put<std::uint64_t>(at + 8, kCodeType);
    proc_.put<std::uint64_t>(at + 16, 20);  // instructions
    proc_.put(at + layout_.code.first_line, 7);
    proc_.put(at + layout_.code.first_traceable, 2);
    proc_.put(at + layout_.code.filename, file);
    proc_.put(at + layout_.code.qualified_name, name);
    proc_.put(at + layout_.code.line_table, lines);
  }
};

TEST_F(PythonCodeReading, StringsOfAllWidthsBecomeUtf8) {
  put_string<char>(0x1000, "plain", true);
  put_string<char>(0x2000, "\xe9t\xe9");
  put_string<char16_t>(0x3000, u"\u03ba\u20ac");
  put_string<char32_t>(0x4000, U"\U00010300\u03ba");
  put_string<char16_t>(0x5000, std::u16string{u'a', 0xdcff, u'b'});  // a byte of a file name that is not UTF-8
  put_string<char>(0x6000, "", true);
  EXPECT_EQ(reader_.text(0x1000, 100), "plain");
  EXPECT_EQ(reader_.text(0x2000, 100), "\u00e9t\u00e9");
  EXPECT_EQ(reader_.text(0x3000, 100), "\u03ba\u20ac");
  EXPECT_EQ(reader_.text(0x4000, 100), "\U00010300\u03ba");
  EXPECT_EQ(reader_.text(0x5000, 100), "a\ufffdb");
  EXPECT_EQ(reader_.text(0x6000, 100), "");
  EXPECT_EQ(reader_.text(0x1000, 3), "pla...");
}

TEST_F(PythonCodeReading, StringsOfASubclassHaveTheirCharactersElsewhere) {
  constexpr std::uint64_t kSubclass = 0x8000;
  put_string<char>(0x1000, "xxxxxxxx");
  proc_.put(0x1000 + 8, kSubclass);
  proc_.put<std::uint32_t>(0x1000 + 32, 1U << 2U | 64U | 128U);  // not compact
  proc_.put<std::uint64_t>(0x1000 + layout_.text.compact_data, 0x7000);
  proc_.put_bytes(0x7000, "mine    ");
  EXPECT_FALSE(reader_.text(0x1000, 4));
  proc_.put<std::uint64_t>(kSubclass + 168, 1U << 28U);
  EXPECT_EQ(reader_.text(0x1000, 4), "mine...");
}

TEST_F(PythonCodeReading, WhatIsNoStringIsRefused) {
  put_string<char>(0x1000, "plain", true);
  EXPECT_FALSE(reader_.text(0, 100));
  EXPECT_FALSE(reader_.text(0x9000, 100));
  proc_.put<std::uint64_t>(0x1000 + 16, std::uint64_t{1} << 60U);  // longer than what is mapped
  EXPECT_FALSE(reader_.text(0x1000, 100));
  EXPECT_FALSE(reader_.text(0x1000, std::uint64_t{1} << 61U));
  proc_.put<std::uint64_t>(0x1000 + 16, 5);
  proc_.put<std::uint32_t>(0x1000 + 32, 3U << 2U | 32U);
  EXPECT_FALSE(reader_.text(0x1000, 100));
  proc_.put<std::uint32_t>(0x1000 + 32, 2U << 2U | 32U | 64U);
  EXPECT_FALSE(reader_.text(0x1000, 100));
}

TEST_F(PythonCodeReading, CodeGivesFileFunctionAndLines) {
  put_string<char>(0x1000, "train.py", true);
  put_string<char>(0x2000, "Model.fit", true);
  proc_.put<std::uint64_t>(0x3000 + 8, kBytesType);
  proc_.put<std::uint64_t>(0x3000 + 16, 3);
  proc_.put_bytes(0x3000 + 32, entry(10, 1, "\x01\x02"));
  put_code(0x4000, 0x1000, 0x2000, 0x3000);
  const PythonCode* code = reader_.read(0x4000);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->file, "train.py");
  EXPECT_EQ(code->function, "Model.fit");
  EXPECT_EQ(code->lines, entry(10, 1, "\x01\x02"));
  EXPECT_EQ(code->first_line, 7);
  EXPECT_EQ(code->begin, 0x4000 + layout_.code.instructions);
  EXPECT_EQ(code->end - code->begin, 40U);
  EXPECT_EQ(code->first_traceable - code->begin, 4U);
  EXPECT_EQ(reader_.read(0x4000), code);
}

TEST_F(PythonCodeReading, OfTheShimThatCallsInitIsNeverTraced) {
  put_string<char>(0x1000, "__init__", true);
  proc_.put<std::uint64_t>(0x3000 + 8, kBytesType);
  proc_.put<std::uint64_t>(0x3000 + 16, 0);
  put_code(0x4000, 0x1000, 0x1000, 0x3000);
  proc_.put<std::uint64_t>(0x4000 + 16, 3);
  proc_.put(0x4000 + layout_.code.first_traceable, 4);
  const PythonCode* code = reader_.read(0x4000);
  ASSERT_NE(code, nullptr);
  EXPECT_GT(code->first_traceable, code->end);
}

TEST_F(PythonCodeReading, WhatIsNoCodeIsRefused) {
  put_string<char>(0x1000, "train.py", true);
  put_code(0x4000, 0x1000, 0x1000, 0x1000);  // a line table that is a str
  put_code(0x5000, 0x1000, 0x9000, 0x1000);  // a missing name
  put_code(0x6000, 0x1000, 0x1000, 0x1000);
  proc_.put<std::uint64_t>(0x6000 + 8, kStringType);
  for (const std::uint64_t address : {0x0, 0x4000, 0x5000, 0x6000, 0x9000}) EXPECT_EQ(reader_.read(address), nullptr);
}

}  // namespace
}  // namespace mprun
