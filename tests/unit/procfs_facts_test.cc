// Parsers of what /proc says of a process or thread: texts that a kernel wrote, and texts no kernel would write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "procfs/process_facts.h"

namespace mprun {
namespace {

using testing::ElementsAre;

TEST(SyscallLine, IsABlockedCallWithItsArguments) {
  const auto line = parse_syscall("61 0x788c 0x7ffcd96fc8a8 0x0 0x0 0x1 0x0 0x7ffcd96fc898 0x7fd8d527cbd3\n");
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->running);
  EXPECT_EQ(line->number, 61);
  EXPECT_THAT(line->arguments, ElementsAre(0x788c, 0x7ffcd96fc8a8, 0, 0, 1, 0));
  EXPECT_EQ(line->stack_pointer, 0x7ffcd96fc898U);
  EXPECT_EQ(line->program_counter, 0x7fd8d527cbd3U);
}

TEST(SyscallLine, IsRunningOrOutsideOfACall) {
  const auto running = parse_syscall("running\n");
  ASSERT_TRUE(running);
  EXPECT_EQ(*running, SyscallLine{});
  const auto outside = parse_syscall("-1 0x7ffcd96fc898 0x7fd8d527cbd3\n");
  ASSERT_TRUE(outside);
  EXPECT_FALSE(outside->running);
  EXPECT_EQ(outside->number, -1);
  EXPECT_EQ(outside->program_counter, 0x7fd8d527cbd3U);
}

TEST(SyscallLine, RefusesWhatIsNone) {
  for (const char* text : {"", "\n", "run", "61", "61 0x1 0x2 0x3", "61 1 2 3 4 5 6 7 8", "-1 0x1", "x 0x1 0x2",
                           "1 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x10000000000000000", "99999999999999999999 0x1 0x1",
                           "1 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x1 0x1\n"}) {
    EXPECT_FALSE(parse_syscall(text)) << text;
  }
}

constexpr const char* kStatTail =
    " S 30853 30853 10452 0 -1 4194368 1611 66 0 0 1 1 0 0 20 0 1 0 2597134 14974976 2619 18446744073709551615 4321280 "
    "7138889 140723956470304 0 0 0 65536 16781318 0 1 0 0 17 1 0 0 0 0 0 9702856 11005272 299958272 140723956472245 "
    "140723956472267 140723956472267 140723956473831 9\n";

TEST(StatLine, HoldsWhatTheKernelWrote) {
  const auto stat = parse_stat("30857 (python3)" + std::string(kStatTail));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->id, 30857);
  EXPECT_EQ(stat->name, "python3");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 30853);
  EXPECT_TRUE(stat->forked);
  EXPECT_EQ(stat->cpu_ticks, 2U);
  EXPECT_EQ(stat->threads, 1U);
  EXPECT_EQ(stat->start_ticks, 2597134U);
  EXPECT_EQ(stat->exit_code, 9);
}

TEST(StatLine, TellsAProgramFromAForkedProcess) {
  std::string text = "1 (a)" + std::string(kStatTail);
  text.replace(text.find("4194368"), 7, "4194304");
  EXPECT_FALSE(parse_stat(text)->forked);
}

TEST(StatLine, TakesNamesThatTryToConfuse) {
  for (const char* name : {"a) S 1 (b", "", ")", "a b\nc", ") R 1 1 1 0"}) {
    const auto stat = parse_stat("42 (" + std::string(name) + ")" + kStatTail);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->parent, 30853);
  }
}

TEST(StatLine, RefusesWhatIsNoneOrCutShort) {
  const std::string whole = "42 (sh)" + std::string(kStatTail);
  for (std::size_t size = 0; size < whole.size() - 2; ++size) {
    EXPECT_FALSE(parse_stat(whole.substr(0, size))) << whole.substr(0, size);
  }
  EXPECT_FALSE(parse_stat("42 (sh) S x"));
  EXPECT_FALSE(parse_stat("x (sh)" + std::string(kStatTail)));
  EXPECT_FALSE(parse_stat("99999999999 (sh)" + std::string(kStatTail)));
}

constexpr const char* kStatus =
    "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t30857\nPid:\t30857\nPPid:\t30853\nTracerPid:\t12\n"
    "Uid:\t1000\t1001\t1002\t1003\nGid:\t0\t0\t0\t0\nGroups:\t \nVmPeak:\t   14660 kB\nThreads:\t3\nSigQ:\t1/96365\n"
    "SigPnd:\t0000000000000001\nShdPnd:\t0000000000000200\nSigBlk:\t0000000000010000\nSigIgn:\t0000000001001006\n"
    "SigCgt:\t8000000000000002\nCapInh:\t0000000000000000\nvoluntary_ctxt_switches:\t3\n"
    "nonvoluntary_ctxt_switches:\t8\n";

TEST(StatusFile, HoldsWhatTheKernelWrote) {
  const auto status = parse_status(kStatus);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->tracer, 12);
  EXPECT_EQ(status->uid, 1001U);
  EXPECT_EQ(status->threads, 3U);
  EXPECT_EQ(status->pending, 0x201U);
  EXPECT_EQ(status->blocked, 0x10000U);
  EXPECT_EQ(status->ignored, 0x1001006U);
  EXPECT_EQ(status->caught, 0x8000000000000002U);
  EXPECT_EQ(status->voluntary_switches, 3U);
  EXPECT_EQ(status->involuntary_switches, 8U);
}

TEST(StatusFile, AFieldThatStandsTwiceIsNoOther) {
  std::string text = kStatus;
  const std::size_t blocked = text.find("SigBlk:");
  text.replace(blocked, text.find('\n', blocked) - blocked, "State:\tS (sleeping)");
  EXPECT_FALSE(parse_status(text));
}

TEST(StatusFile, RefusesWhatIsCutShortOrMakesNoSense) {
  const std::string whole = kStatus;
  for (std::size_t size = 0; size < whole.size() - 2; ++size) EXPECT_FALSE(parse_status(whole.substr(0, size))) << size;
  for (const char* field : {"TracerPid", "Uid", "Threads", "SigCgt", "ShdPnd", "voluntary_ctxt_switches"}) {
    std::string text = whole;
    text[text.find('\n' + std::string(field) + ":\t") + std::string(field).size() + 3] = 'z';
    EXPECT_FALSE(parse_status(text)) << field;
  }
  std::string text = whole;
  text.replace(text.find("8000000000000002"), 16, "80000000000000020");
  EXPECT_FALSE(parse_status(text));
}

TEST(RunCount, IsTheThirdNumber) {
  EXPECT_EQ(parse_run_count("29660061 29458051 11\n"), 11U);
  for (const char* text : {"", "1 2", "1 2 x", "1 2 99999999999999999999"}) EXPECT_FALSE(parse_run_count(text)) << text;
}

TEST(Maps, HoldWhatTheKernelWrote) {
  const auto maps = parse_maps(
      "7fd8d54b8000-7fd8d54b9000 rw-s 00000000 00:13 2022975                    /[aio] (deleted)\n"
      "7fd8d54c4000-7fd8d54c6000 rw-p 00000000 00:00 0 \n"
      "7fd8d54cf000-7fd8d54f5000 r-xp 00001000 fe:0a 332383                     /usr/lib/a b.so\n"
      "7ffcd96dd000-7ffcd96fe000 rw-p 00000000 00:00 0                          [stack]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(maps.size(), 5U);
  EXPECT_TRUE(maps[0].shared && maps[0].writable && maps[0].readable && !maps[0].executable);
  EXPECT_EQ(maps[0].path, "/[aio] (deleted)");
  EXPECT_EQ(maps[0].device, 0x13U);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(maps[1].inode, 0U);
  EXPECT_FALSE(maps[1].shared);
  EXPECT_EQ(maps[2].device, 0xfe0000000aU);
  EXPECT_EQ(maps[2].offset, 0x1000U);
  EXPECT_EQ(maps[2].inode, 332383U);
  EXPECT_EQ(maps[2].path, "/usr/lib/a b.so");
  EXPECT_EQ(maps[4].end, 0xffffffffff601000U);
}

TEST(Maps, AreFoundByAddress) {
  const auto maps = parse_maps("5000-6000 r--p 0 00:00 0 b\n1000-3000 r--p 0 00:00 0 a\n");  // unsorted
  EXPECT_EQ(find_mapping(maps, 0xfff), nullptr);
  EXPECT_EQ(find_mapping(maps, 0x1000), &maps[0]);
  EXPECT_EQ(find_mapping(maps, 0x2fff), &maps[0]);
  EXPECT_EQ(find_mapping(maps, 0x3000), nullptr);
  EXPECT_EQ(find_mapping(maps, 0x5fff), &maps[1]);
  EXPECT_EQ(find_mapping(maps, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(find_mapping({}, 0), nullptr);
}

TEST(Maps, LeaveOutLinesThatAreNone) {
  for (const char* text : {"", "\n\n", "1000", "1000-", "1000-2000", "1000-2000 r", "1000-2000 r--p 0",
                           "2000-1000 r--p 0 0:0 0", "1000-1000 r--p 0 0:0 0", "1000-20000000000000000 r--p 0 0:0 0",
                           "1000-2000 r--p 0 0:100000000 0", "1000-2000 r--p 0 00 0", "1000-2000 r--p 0 0:0 x"}) {
    EXPECT_TRUE(parse_maps(text).empty()) << text;
  }
}

}  // namespace
}  // namespace mprun
