// Parsers of what /proc says of descriptors, timers and locks of files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "procfs/process_facts.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Descriptor::Kind;

/// The recording; one that makes no sense ends the test.
std::unique_ptr<ProcSource> recorded(std::string_view text) {
  auto proc = recorded_proc(text);
  if (!proc) throw std::runtime_error(proc.error().message);
  return std::move(*proc);
}

TEST(Descriptor, OfAnEventfdHasItsId) {
  Descriptor descriptor = parse_descriptor(3, "anon_inode:[eventfd]");
  parse_descriptor_info("pos:\t0\nflags:\t02\nino:\t2058\neventfd-count:                0\n", &descriptor);
  EXPECT_EQ(descriptor.event_id, std::nullopt);
  parse_descriptor_info("eventfd-id: 0\neventfd-semaphore: 0\n", &descriptor);
  EXPECT_EQ(descriptor.event_id, 0U);
  Descriptor file = parse_descriptor(3, "/x");
  parse_descriptor_info("eventfd-id: 5\n", &file);
  EXPECT_EQ(file.event_id, std::nullopt);
}

TEST(Descriptor, IsKnownByItsLink) {
  const std::pair<const char*, Kind> known[] = {{"anon_inode:[eventpoll]", Kind::kEpoll},
                                                {"anon_inode:[eventfd]", Kind::kEventfd},
                                                {"anon_inode:[timerfd]", Kind::kTimerfd},
                                                {"anon_inode:[signalfd]", Kind::kSignalfd},
                                                {"anon_inode:inotify", Kind::kInotify},
                                                {"anon_inode:[pidfd]", Kind::kPidfd},
                                                {"pidfd:[123]", Kind::kPidfd},
                                                {"anon_inode:[io_uring]", Kind::kIoUring},
                                                {"anon_inode:[userfaultfd]", Kind::kUserfaultfd},
                                                {"/dev/pts/0", Kind::kFile},
                                                {"/memfd:x y (deleted)", Kind::kFile},
                                                {"/tmp/pipe:[1]", Kind::kFile},
                                                {"anon_inode:[perf_event]", Kind::kOther},
                                                {"mnt:[4026531841]", Kind::kOther},
                                                {"", Kind::kOther},
                                                {"pipe:[", Kind::kOther},
                                                {"pipe:[x]", Kind::kOther},
                                                {"pipe:[1", Kind::kOther},
                                                {"pipe:[1]x", Kind::kOther},
                                                {"socket:[99999999999999999999]", Kind::kOther},
                                                {"anon_inode:[eventfd]x", Kind::kOther}};
  for (const auto& [target, kind] : known) {
    const Descriptor descriptor = parse_descriptor(7, target);
    EXPECT_EQ(descriptor.kind, kind) << target;
    EXPECT_EQ(descriptor.target, target);
    EXPECT_EQ(descriptor.number, 7);
    if (kind == Kind::kOther) {
      EXPECT_EQ(descriptor.inode, 0U) << target;
    }
  }
  const Descriptor pipe = parse_descriptor(3, "pipe:[2022972]");
  EXPECT_EQ(pipe.kind, Kind::kPipe);
  EXPECT_EQ(pipe.inode, 2022972U);
  const Descriptor socket = parse_descriptor(3, "socket:[5]");
  EXPECT_EQ(socket.kind, Kind::kSocket);
  EXPECT_EQ(socket.inode, 5U);
}

TEST(DescriptorInfo, HoldsTheFlags) {
  Descriptor descriptor = parse_descriptor(5, "pipe:[2022972]");
  parse_descriptor_info("pos:\t0\nflags:\t02004001\nmnt_id:\t16\nino:\t2022972\n", &descriptor);
  EXPECT_EQ(descriptor.flags & O_ACCMODE, static_cast<std::uint64_t>(O_WRONLY));
  EXPECT_TRUE(descriptor.flags & O_NONBLOCK);
  EXPECT_EQ(descriptor.info_inode, 2022972U);
}

TEST(DescriptorInfo, HoldsTheSetOfAnEpoll) {
  Descriptor descriptor = parse_descriptor(3, "anon_inode:[eventpoll]");
  parse_descriptor_info(
      "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t1039\n"
      "tfd:        4 events:       19 data:     7fd800000004  pos:0 ino:1ede3c sdev:f\n"
      "tfd:        5 events:       1c data:     7fd800000005\n"
      "tfd:        6 events: 80000019 data:     7fd800000006  pos:0 ino:1ede3d sdev:f\n"
      "tfd:        7 events: 40000001 data:     7fd800000007  pos:0 ino:1ede3e sdev:f\n"
      "tfd:        8 events: 40000000 data:     7fd800000008  pos:0 ino:1ede3f sdev:f\n"
      "tfd: x events: 1\ntfd:",
      &descriptor);
  EXPECT_THAT(descriptor.watched, ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(descriptor.watched_inodes, ElementsAre(0x1ede3c, 0, 0x1ede3d, 0x1ede3e, 0x1ede3f));
  EXPECT_THAT(descriptor.edge_triggered, ElementsAre(6, 8)) << "7 has EPOLLONESHOT, and has made no event yet";
  Descriptor file = parse_descriptor(3, "/tmp/x");
  parse_descriptor_info("tfd: 4 events: 19\n", &file);
  EXPECT_THAT(file.watched, IsEmpty());
}

// As Linux 6.18 shows it.
constexpr std::string_view kIdleRing =
    "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t691232\nSqMask:\t0x7\nSqHead:\t3\nSqTail:\t3\nCachedSqHead:\t3\n"
    "CqMask:\t0xf\nCqHead:\t3\nCqTail:\t3\nCachedCqTail:\t3\nSQEs:\t0\nCQEs:\t0\nSqThread:\t-1\nSqThreadCpu:\t-1\n"
    "SqTotalTime:\t0\nSqWorkTime:\t0\nUserFiles:\t0\nUserBufs:\t0\nPollList:\nCqOverflowList:\nNAPI:\tdisabled\n";

/// The same ring with one text replaced.
Descriptor ring_with(std::string_view old, std::string_view now) {
  std::string text(kIdleRing);
  text.replace(text.find(old), old.size(), now);
  Descriptor descriptor = parse_descriptor(4, "anon_inode:[io_uring]");
  parse_descriptor_info(text, &descriptor);
  return descriptor;
}

TEST(DescriptorInfo, SaysWhetherAnIoUringHasNothingToDo) {
  const Descriptor idle = ring_with("ino:", "ino:");
  EXPECT_FALSE(idle.armed);
  EXPECT_EQ(idle.completed, 0U);
  EXPECT_EQ(idle.requests, 3U);
  EXPECT_EQ(idle.info_inode, 691232U);
  const std::pair<const char*, const char*> at_work[] = {
      {"SqTail:\t3", "SqTail:\t4"},                                           // submitted, not taken yet
      {"CachedSqHead:\t3", "CachedSqHead:\t4"},                               // taken, not completed yet
      {"CachedCqTail:\t3", "CachedCqTail:\t2"},                               // the same
      {"SqThread:\t-1", "SqThread:\t300"},                                    // a thread of the kernel takes requests
      {"PollList:\n", "PollList:\n  op=6, task_works=0\n"},                   // waits for a descriptor
      {"OverflowList:\n", "OverflowList:\n  user_data=1, res=0, flags=0\n"},  // arrives as soon as there is room
      {"CachedCqTail:\t3\n", ""},                                             // an older kernel
      {"PollList:\nCqOverflowList:\n", ""},                                   // the same
      {"SqTail:\t3", "SqTail:\tx"},
  };
  for (const auto& [old, now] : at_work) EXPECT_TRUE(ring_with(old, now).armed) << now;
}

TEST(DescriptorInfo, CountsTheCompletionsThatAnIoUringHolds) {
  EXPECT_EQ(ring_with("CqHead:\t3", "CqHead:\t1").completed, 2U);
  EXPECT_FALSE(ring_with("CqHead:\t3", "CqHead:\t1").armed);
}

TEST(DescriptorInfo, SaysWhetherAnIoUringKeepsFiles) {
  EXPECT_FALSE(ring_with("ino:", "ino:").keeps_files);
  EXPECT_TRUE(ring_with("UserFiles:\t0", "UserFiles:\t1\n    0: pipe:[4711]").keeps_files);
}

TEST(DescriptorInfo, HoldsTheProcessOfAPidfd) {
  Descriptor descriptor = parse_descriptor(12, "anon_inode:[pidfd]");
  parse_descriptor_info("flags:\t02000002\nino:\t646929\nPid:\t30858\nNSpid:\t30858\n", &descriptor);
  EXPECT_EQ(descriptor.process, 30858);
  parse_descriptor_info("Pid:\t-1\nNSpid:\t-1\n", &descriptor);
  EXPECT_EQ(descriptor.process, -1);
}

TEST(DescriptorInfo, FindsATimerThatWillExpire) {
  const auto armed = [](const char* text) {
    Descriptor descriptor = parse_descriptor(8, "anon_inode:[timerfd]");
    parse_descriptor_info(text, &descriptor);
    return descriptor.armed;
  };
  EXPECT_TRUE(armed("clockid: 1\nticks: 0\nsettime flags: 00\nit_value: (49, 852528118)\nit_interval: (0, 0)\n"));
  EXPECT_TRUE(armed("it_value: (0, 1)\nit_interval: (0, 0)\n"));
  EXPECT_TRUE(armed("it_value: (0, 0)\nit_interval: (1, 0)\n"));
  EXPECT_FALSE(armed("clockid: 1\nticks: 0\nsettime flags: 00\nit_value: (0, 0)\nit_interval: (0, 0)\n"));
  // Not known, so it may.
  for (const char* text : {"", "it_value: (0, 0)\n", "it_value: (0, 0\nit_interval: x\n"})
    EXPECT_TRUE(armed(text)) << text;
}

TEST(DescriptorInfo, ListsTheLocksOfAFile) {
  Descriptor descriptor = parse_descriptor(8, "/tmp/a");
  parse_descriptor_info(
      "pos:\t0\nflags:\t02100002\nino:\t500\nlock:\t1: FLOCK  ADVISORY  WRITE 21629 fe:00:500 0 EOF\n"
      "lock:\t2: OFDLCK ADVISORY  READ -1 fe:00:500 100 149\nlock:\t3: nonsense\n",
      &descriptor);
  ASSERT_EQ(descriptor.locks.size(), 2U);
  EXPECT_EQ(descriptor.locks[0].holder, 21629);
  EXPECT_EQ(descriptor.locks[0].end, ~std::uint64_t{0});
  EXPECT_EQ(descriptor.locks[1].kind, FileLock::Kind::kOpenFile);
  EXPECT_EQ(descriptor.locks[1].begin, 100U);
  EXPECT_EQ(descriptor.locks[1].end, 149U);
}

// As for /dev/ptmx, through which its opener writes and reads for the slave /dev/pts/5.
TEST(DescriptorInfo, NamesTheTerminalOfAMaster) {
  const auto terminal = [](const char* target, const char* text) {
    Descriptor descriptor = parse_descriptor(8, target);
    parse_descriptor_info(text, &descriptor);
    return descriptor.terminal;
  };
  EXPECT_EQ(terminal("/dev/ptmx", "pos:\t0\nflags:\t02\nmnt_id:\t31\nino:\t86\ntty-index:\t5\n"), 5U);
  EXPECT_EQ(terminal("/dev/pts/ptmx", "tty-index:\t0\n"), 0U);
  for (const char* text : {"", "flags:\t02\nino:\t86\n", "tty-index:\n", "tty-index:\tx\n", "tty-index:\t-1\n"}) {
    EXPECT_EQ(terminal("/dev/ptmx", text), std::nullopt) << text;
  }
  EXPECT_EQ(terminal("pipe:[9]", "tty-index:\t5\n"), std::nullopt);
}

TEST(DescriptorInfo, SurvivesAnything) {
  for (const char* target : {"anon_inode:[eventpoll]", "anon_inode:[timerfd]", "anon_inode:[pidfd]", "/x"}) {
    for (const char* text :
         {"", "\n\n", "flags:", "flags:\t9", "tfd:\nPid:\nit_value:\nino:", "ino:\t99999999999999999999"}) {
      Descriptor descriptor = parse_descriptor(1, target);
      parse_descriptor_info(text, &descriptor);
      EXPECT_EQ(descriptor.flags, 0U);
      EXPECT_EQ(descriptor.process, 0);
      EXPECT_THAT(descriptor.watched, IsEmpty());
    }
  }
}

TEST(Descriptors, AreReadWithTheirInfo) {
  const auto proc = recorded(
      "list 12/fd: 0 3\nlink 12/fd/0: /dev/null\nread 12/fdinfo/0\n|flags:\t0100000\n"
      "link 12/fd/3: pipe:[9]\nread 12/fdinfo/3\n|flags:\t01\n");
  const auto descriptors = read_descriptors(proc.get(), 12);
  ASSERT_TRUE(descriptors);
  ASSERT_EQ(descriptors->size(), 2U);
  EXPECT_EQ((*descriptors)[1].inode, 9U);
  EXPECT_EQ((*descriptors)[1].flags, 1U);
  EXPECT_FALSE(read_descriptors(proc.get(), 13));
}

TEST(Descriptors, LeaveOutWhatWasClosedButNothingThatIsHidden) {
  constexpr const char* kOpen = "link 12/fd/0: pipe:[9]\nread 12/fdinfo/0\n|flags:\t01\nlink 12/fd/3: pipe:[9]\n";
  const auto closed = recorded("list 12/fd: 0 3\nlist 12/fd: 0\n" + std::string(kOpen));
  const auto descriptors = read_descriptors(closed.get(), 12);
  ASSERT_TRUE(descriptors);
  EXPECT_EQ(descriptors->size(), 1U);
  const auto hidden = recorded("list 12/fd: 0 3\n" + std::string(kOpen));
  EXPECT_FALSE(read_descriptors(hidden.get(), 12));
  const auto gone = recorded("list 12/fd: 0 3\nnone list 12/fd\n" + std::string(kOpen));
  EXPECT_FALSE(read_descriptors(gone.get(), 12));
}

TEST(FileLocks, HoldWhatTheKernelWrote) {
  const auto locks = parse_locks(
      "1: OFDLCK ADVISORY  WRITE -1 fe:00:10994342 0 EOF\n"
      "2: POSIX  ADVISORY  READ 30857 fe:00:10994337 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 30857 fe:1f:10994321 0 EOF\n"
      "3: -> FLOCK  ADVISORY  READ 30858 fe:1f:10994321 0 EOF\n"
      "3:  -> FLOCK  ADVISORY  WRITE 30859 fe:1f:10994321 0 EOF\n"
      "4: LEASE  ACTIVE    READ 7 fe:00:1 0 EOF\n");
  ASSERT_EQ(locks.size(), 6U);
  EXPECT_EQ(locks[0].kind, FileLock::Kind::kOpenFile);
  EXPECT_EQ(locks[0].holder, -1);
  EXPECT_EQ(locks[1].kind, FileLock::Kind::kPosix);
  EXPECT_FALSE(locks[1].exclusive);
  EXPECT_EQ(locks[2].kind, FileLock::Kind::kFlock);
  EXPECT_TRUE(locks[2].exclusive && !locks[2].waiting);
  EXPECT_EQ(locks[2].device, 0xfe0000001fU);
  EXPECT_EQ(locks[2].inode, 10994321U);
  EXPECT_TRUE(locks[3].waiting && !locks[3].exclusive);
  EXPECT_TRUE(locks[4].waiting && locks[4].exclusive);
  EXPECT_EQ(locks[4].holder, 30859);
  EXPECT_EQ(locks[5].kind, FileLock::Kind::kLease);
}

TEST(FileLocks, OfALineThatIsNoneHaveNoWaiters) {
  EXPECT_THAT(parse_locks(""), IsEmpty());
  const auto locks = parse_locks(
      "1: FLOCK  ADVISORY  WRITE 1 fe:00:1 0 EOF\n"
      "2: NEWKIND ADVISORY  WRITE 2 fe:00:2 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 3 fe:00:2 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 4 <none>:0 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE 99999999999 fe:00:1\n"
      "5: FLOCK\n"
      "6:");
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks[0].holder, 1);
}

constexpr const char* kTcpHeader =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

TEST(TcpSockets, HoldWhatTheKernelWrote) {
  const auto sockets = parse_tcp(
      std::string(kTcpHeader) +
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000  1000        0 41 1 0000 100 0\n"
      "   1: 0100007F:1F90 0100007F:A001 01 0000001A:00000B00 01:00000014 00000000  1000        0 42 1 0000 20 4 30\n"
      "  12: 0100007F:1F90 0100007F:A002 01 00000000:00000010 00:00000000 00000000     0        0 0 1 0000 20 4 30\n"
      "  13: 0100007F:A003 0100007F:1F90 06 00000000:00000000 03:000003E8 00000000     0        0 0 3 0000\n");
  ASSERT_EQ(sockets.size(), 4U);
  EXPECT_EQ(sockets[0].state, TcpSocket::State::kListening);
  EXPECT_EQ(sockets[0].local, "0100007F:1F90");
  EXPECT_EQ(sockets[0].unread, 2U) << "connections that were not accepted";
  EXPECT_EQ(sockets[0].inode, 41U);
  EXPECT_EQ(sockets[1].state, TcpSocket::State::kEstablished);
  EXPECT_EQ(sockets[1].remote, "0100007F:A001");
  EXPECT_EQ(sockets[1].unsent, 0x1aU);
  EXPECT_EQ(sockets[1].unread, 0xb00U);
  EXPECT_EQ(sockets[1].inode, 42U);
  EXPECT_EQ(sockets[2].inode, 0U) << "it was not accepted";
  EXPECT_EQ(sockets[2].unread, 0x10U);
  EXPECT_EQ(sockets[3].state, TcpSocket::State::kOther);
}

TEST(TcpSockets, OfIpv6AreWrittenAsOfIpv4WhereTheyStandForThat) {
  const std::string rest = " 00000000:00000000 00:00000000 00000000  1000        0 43 1 0000 20 4 30\n";
  const auto sockets =
      parse_tcp("   0: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200007F:A001 01" + rest +
                "   1: 00000000000000000000000001000000:1F90 000080FE00000000FFFF000001000000:A001 01" + rest);
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(sockets[0].local, "0100007F:1F90");
  EXPECT_EQ(sockets[0].remote, "0200007F:A001");
  EXPECT_EQ(sockets[1].local, "00000000000000000000000001000000:1F90");
  EXPECT_EQ(sockets[1].remote, "000080FE00000000FFFF000001000000:A001");
  EXPECT_EQ(sockets[1].inode, 43U);
}

TEST(TcpSockets, OfALineThatIsNoneAreLeftOut) {
  EXPECT_THAT(parse_tcp(""), IsEmpty());
  EXPECT_THAT(parse_tcp(kTcpHeader), IsEmpty());
  for (const char* line :
       {"0:", "0: 0100007F:1F90", "0: 0100007F:1F90 0100007F:A001 XX", "0: 0100007F:1F90 0100007F:A001 01 00000000",
        "0: 0100007F:1F90 0100007F:A001 01 00000000 00000000 00:0 0 0 0 42",
        "0: 0100007F:1F90 0100007F:A001 01 00000000:00000000 00:00000000 00000000 1000 0",
        "0: 0100007F:1F90 0100007F:A001 01 00000000:00000000 00:00000000 00000000 1000 0 x",
        "0 0100007F:1F90 0100007F:A001 01 00000000:00000000 00:00000000 00000000 1000 0 42",
        "0: 0100007F:1F90 0100007F:A001 01 11111111111111111:00000000 00:00000000 00000000 1000 0 42"}) {
    EXPECT_THAT(parse_tcp(line), IsEmpty()) << line;
  }
}

TEST(PosixTimers, AreThereIfTheFileHasAnEntry) {
  const auto proc = recorded(
      "read 1/timers\n|ID: 0\n|signal: 10/0000000000000000\n|notify: signal/pid.7\n|ClockID: 1\n|ID: 1\n|signal: 26/0\n"
      "read 2/timers\nread 4/timers\n|nonsense\n");
  EXPECT_EQ(signals_of_timers(proc.get(), 1), (std::vector<int>{10, 26}));
  EXPECT_EQ(signals_of_timers(proc.get(), 2), std::vector<int>());
  EXPECT_EQ(signals_of_timers(proc.get(), 3), std::nullopt);
  EXPECT_EQ(signals_of_timers(proc.get(), 4), std::vector<int>{0});
}

TEST(SysvObjects, AreFoundByTheirHeading) {
  const std::string semaphores =
      "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"
      "         0          3   600          2     0     0     0     0          0 1795559170\n"
      "-559038737          4   600          1  1000  1000  1000  1000 1795559171 1795559172\n";
  EXPECT_THAT(parse_sysv_objects(semaphores),
              ElementsAre(SysvObject{3, 0, 0, 0, 1795559170}, SysvObject{4, -559038737, 0, 0, 1795559172}));
  const std::string queues =
      "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime    "
      "  "
      "ctime\n"
      "     28016          7   600           0          0    12    13     0     0     0     0          5          6 "
      "1795559170\n";
  EXPECT_THAT(parse_sysv_objects(queues), ElementsAre(SysvObject{7, 28016, 12, 13, 1795559170}));
}

TEST(SysvObjects, ThatMakeNoSenseAreNone) {
  EXPECT_THAT(parse_sysv_objects(""), IsEmpty());
  EXPECT_THAT(parse_sysv_objects("key semid ctime\nx y z\n\n"), IsEmpty());
  EXPECT_THAT(parse_sysv_objects("key ctime\n1 2\n"), IsEmpty()) << "no column has its number";
}

}  // namespace
}  // namespace mprun
