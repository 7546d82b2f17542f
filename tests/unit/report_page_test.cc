#include <algorithm>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "report/run_page.h"

namespace mprun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "</script></pre><img src=x onerror=alert(1)>\"'&";

// A page like page.html, with marks in place of the real style and scripts.
constexpr PageParts kParts{
    "<title>@title@</title>@head@@note@@figures@@failures@@hangs@@slowest@@workers@@retries@"
    "@processes@@warnings@<script id=\"data\">@data@</script>@library@@scripts@@unknown@ a@b",
    "",
    "LIBRARY",
    "SCRIPTS",
    "",
    ""};

[[nodiscard]] std::string error_json(const char* type, const char* message) {
  const Json error = {{"type", type}, {"message", message}, {"traceback", std::string("Traceback:\n") + message}};
  return error.dump();
}

[[nodiscard]] RunRecord small_run() {
  RunRecord run;
  run.directory = "/runs/one";
  run.job = "job";
  run.mprun = "0.1.0";
  run.started = 1000;
  run.starts = {1000};
  run.seconds = 3;
  run.exit_code = 1;
  run.total = 4;
  run.attempts = {
      {3, 1002.25, 0.5, 7, 1, RunRecord::End::kOk},
      {0, 1001, 0.25, 0, 1, RunRecord::End::kOk},
      {2, 1001.5, 0.000001, 0, 1, RunRecord::End::kRetried},
      {1, 1001.75, 0.125, 7, 2, RunRecord::End::kFailed},
      {4'000'000'000'000, 0, 0, 0, 1, RunRecord::End::kCancelled},  // never began
  };
  run.failures = {{2, 0, 1, true, "worker 0 (pid 5) ended with signal 9"},
                  {1, 7, 2, false, error_json("ValueError", "no")}};
  return run;
}

[[nodiscard]] std::string bytes_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, held = 0;
  for (const char c : base64.substr(0, base64.find('='))) {
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFF);
  }
  return bytes;
}

/// worker, task, start, duration (microseconds), attempt, end
using Block = std::tuple<int, std::uint64_t, std::int64_t, std::int64_t, int, int>;

/// What the page's own scripts read, as described in run_page.h.
[[nodiscard]] std::vector<Block> blocks_of(const Json& data) {
  const std::string bytes = bytes_of(data.at("attempts").get<std::string>());
  std::size_t at = 0;
  const auto next = [&] {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return number;
    }
  };
  std::vector<Block> blocks;
  while (at < bytes.size()) {
    const auto worker = static_cast<int>(next());
    std::uint64_t left = next(), task = 0;
    std::int64_t start = 0;
    for (; left > 0; --left) {
      const std::uint64_t step = next();
      task += step % 2 == 0 ? step / 2 : ~(step / 2);
      start += static_cast<std::int64_t>(next());
      const auto duration = static_cast<std::int64_t>(next());
      const auto packed = static_cast<int>(next());
      blocks.emplace_back(worker, task, start, duration, packed / 4, packed % 4);
    }
  }
  return blocks;
}

TEST(ReportPageTest, TheDataAreTheAttemptsOfTheRun) {
  const Json data = Json::parse(page_data(small_run(), {}));
  EXPECT_EQ(data.at("zero"), 1000);
  EXPECT_EQ(data.at("span"), 2.75);
  EXPECT_EQ(data.at("count"), 4);
  EXPECT_EQ(data.at("sessions"), Json::array({0}));
  EXPECT_THAT(blocks_of(data),
              ElementsAre(Block(0, 0, 1'000'000, 250'000, 1, 0), Block(0, 2, 1'500'000, 1, 1, 3),
                          Block(7, 1, 1'750'000, 125'000, 2, 1), Block(7, 3, 2'250'000, 500'000, 1, 0)));
  EXPECT_EQ(data.at("failures"),
            Json::parse(R"([[2,1,"worker 0 (pid 5) ended with signal 9"],[1,2,"ValueError: no"]])"));
  EXPECT_TRUE(data.at("usage").is_null());
}

TEST(ReportPageTest, PhasesOfStartsAreData) {
  RunRecord run = small_run();
  run.started = 1000.5;
  run.phases = {{-1, 1000, 0.25, "importing </script>"}, {7, 1003, 2, "forking"}};
  const std::string text = page_data(run, {});
  EXPECT_THAT(text, Not(HasSubstr("<")));
  const Json data = Json::parse(text);
  EXPECT_EQ(data.at("phases"), Json::parse(R"([[-1,0,250000,"importing </script>"],[7,3000000,2000000,"forking"]])"));
  EXPECT_EQ(data.at("zero"), 1000);
  EXPECT_EQ(data.at("span"), 5);
}

TEST(ReportPageTest, AnyNumberOfAttemptsIsPacked) {
  RunRecord run;
  run.started = 1000;
  std::vector<Block> expected;
  expected.reserve(1000);
  for (int i = 0; i < 1000; ++i) {
    const auto task = static_cast<TaskId>(i % 2 == 0 ? i * 1'000'000'007LL : 999 - i);
    run.attempts.push_back({task, 1000 + i * 1.5, 0.001 * i, i % 3, i, RunRecord::End::kOk});
    expected.emplace_back(i % 3, task, i * 1'500'000LL, i * 1000LL, i, 0);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Block& a, const Block& b) { return std::get<0>(a) < std::get<0>(b); });
  std::reverse(run.attempts.begin(), run.attempts.end());  // the order of recording does not matter
  EXPECT_EQ(blocks_of(Json::parse(page_data(run, {}))), expected);
  run.attempts.clear();
  EXPECT_TRUE(blocks_of(Json::parse(page_data(run, {}))).empty());
}

TEST(ReportPageTest, UsageIsCoresAndBytesOfEachWorker) {
  RunDetails details;
  details.usage.emplace();
  details.usage->steps = {{1000, 1001, 300, {{0, {0.25, 300}}}, true},
                          {1001, 1003, 500, {{0, {1, 200}}, {4, {3, 300}}}, false}};
  const Json usage = Json::parse(page_data(small_run(), details)).at("usage");
  EXPECT_EQ(usage.at("steps"), Json::parse("[[0.0,1.0,300.0],[1.0,3.0,500.0]]"));
  EXPECT_EQ(usage.at("workers"), Json::parse("[[0,[0.25,0.5],[300.0,200.0]],[4,[null,1.5],[null,300.0]]]"));
}

TEST(ReportPageTest, WhatTheJobSaysIsTextAndNothingElse) {
  RunRecord run = small_run();
  run.job = run.mprun = run.directory = kHostile;
  run.failures[0].error = run.failures[1].error = kHostile;
  run.failures.push_back({3, 0, 1, false, error_json(kHostile, kHostile)});
  run.processes.push_back({kHostile, 0, 5, {}, false});
  run.hangs.push_back({kHostile, kHostile, kHostile});
  run.notices.emplace_back(kHostile, kHostile);
  RunDetails details;
  details.hangs.push_back({Json{{"cause", {{"explanation", kHostile}, {"fix", kHostile}}},
                                {"join", {{"call", kHostile}, {"file", kHostile}, {"line", 1}}},
                                {"edges", kHostile}},
                           kHostile});
  const std::string page = run_page(run, details, kParts);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("</script></pre>")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
  const std::string data = page_data(run, details);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(data).at("hangs")[0].at("edges"), kHostile);  // and yet the text is unchanged
}

TEST(ReportPageTest, OnlyPlacesOfThePageAreFilled) {
  RunRecord run = small_run();
  run.job = "@data@ @library@";
  const std::string page = run_page(run, {}, kParts);
  EXPECT_THAT(page, HasSubstr("<title>@data@ @library@: 2 ok"));
  EXPECT_THAT(page, testing::EndsWith("LIBRARYSCRIPTS@unknown@ a@b"));
}

TEST(ReportPageTest, FailuresAreGroupedByCauseWithTheirTracebacks) {
  RunRecord run = small_run();
  run.failures.clear();
  for (TaskId task = 0; task < 30; ++task) run.failures.push_back({task, 0, 1, false, error_json("KeyError", "gone")});
  run.failures.push_back({99, 0, 1, false, error_json("ValueError", "odd")});
  const std::string page = run_page(run, {}, kParts);
  const std::size_t key = page.find("30 ×</span> <b>KeyError</b>"), value = page.find("1 ×</span> <b>ValueError</b>");
  ASSERT_NE(key, page.npos);
  ASSERT_NE(value, page.npos);
  EXPECT_LT(key, value);
  EXPECT_THAT(page, HasSubstr("<pre tabindex=\"0\">Traceback:\nodd</pre>"));
  EXPECT_THAT(page, HasSubstr("Also tasks <span data-task=\"20\""));
}

TEST(ReportPageTest, WithoutTheLibraryItHasTablesAndSaysSo) {
  PageParts plain = kParts;
  plain.library = plain.scripts = "";
  RunRecord run = small_run();
  run.processes.push_back({"worker", 3, 4711, {0, 9}, false});
  run.hangs.push_back({"deadlock", "lock-cycle", ""});
  const std::string page = run_page(run, {}, plain);
  EXPECT_THAT(page, HasSubstr("This mprun was built without d3: the page has no timeline and no graphs."));
  EXPECT_THAT(page, HasSubstr("<script id=\"data\">null</script>@unknown@"));
  for (const char* text : {"ValueError", "signal 9 (Killed)", "lock-cycle", "<h2 id=\"slowest-name\">", "125ms"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(ReportPageTest, ARunThatHasNotEnded) {
  RunRecord run = small_run();
  run.attempts.clear();
  run.failures.clear();
  run.exit_code.reset();
  run.seconds.reset();
  run.total.reset();
  EXPECT_THAT(run_page(run, {}, kParts), HasSubstr("<code>mprun resume /runs/one</code> finishes it"));
}

TEST(ReportPageTest, ThePartsOfThisBuild) {
  const PageParts& parts = built_in_page_parts();
  EXPECT_THAT(std::string(parts.html), HasSubstr("@data@"));
  EXPECT_THAT(std::string(parts.policy), HasSubstr("default-src 'none'"));
  EXPECT_EQ(parts.library.empty(), parts.scripts.empty());
  EXPECT_EQ(parts.library.empty(), parts.licence.empty());
}

}  // namespace
}  // namespace mprun
