// Waits for one descriptor: which process holds the other end?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "fake_proc.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// 10 reads a pipe, whose other end 11 holds.
FakeProc pipe_between() {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).thread(10).reads(3);
  proc.process(11).pipe(4, 77, O_WRONLY).thread(11).waits_on(0x5000);
  return proc;
}

TreeBoundary foreign(std::uint64_t identity) {
  TreeBoundary boundary;
  boundary.foreign = {identity};
  return boundary;
}

TEST(PipeWait, IsEndedByTheHoldersOfTheOtherEnd) {
  FakeProc proc = pipe_between();
  Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kPipeRead);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{11, 0}));
  EXPECT_TRUE(all.is_deadlock);
  proc.process(12).pipe(5, 77, O_RDONLY).thread(12).sleeps();  // only reads it too
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[12].pipe(6, 77, O_WRONLY);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PipeWait, IsLiveOnceItsDescriptorHasBeenClosed) {
  FakeProc proc = pipe_between();
  proc.processes[10].descriptors.clear();
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, "descriptor 3, which its process does not have any more");
  TreeBoundary nobody_outside;
  nobody_outside.assumptions.no_outside_peers = true;
  EXPECT_TRUE(judged(&proc, nobody_outside).is_stuck(10));
  proc.processes[10].thread(12).waits_on(0x5000).own_descriptors = true;
  EXPECT_FALSE(judged(&proc, nobody_outside).is_stuck(10)) << "it may be a descriptor of the other thread";
}

TEST(PipeWait, ToWriteIsEndedByReaders) {
  FakeProc proc = pipe_between();
  proc.processes[11].threads[11].writes(4);
  proc.processes[10].threads[10].waits_on(0x5000);
  EXPECT_EQ(judged(&proc).waits.at(11).kind, WaitKind::kPipeWrite);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.process(12).pipe(5, 77, O_RDONLY).thread(12).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(11));
}

TEST(PipeWait, CountsProcessesThatOpenedItForBoth) {
  FakeProc proc = pipe_between();
  proc.process(12).pipe(5, 77, O_RDWR).thread(12).sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PipeWait, ForItselfIsEndless) {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).pipe(4, 77, O_WRONLY).thread(10).reads(3);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

// signal.set_wakeup_fd() takes only a descriptor that does not block.
TEST(PipeWait, ForItselfMayEndByAHandlerOfPython) {
  for (const bool polls : {false, true}) {
    FakeProc proc;
    proc.process(10).pipe(3, 77, O_RDONLY).pipe(4, 77, O_WRONLY).maps = kMapsOfPython;
    TreeThread& thread = proc.processes[10].thread(10).reads(3);
    proc.processes[10].put(0x1000, pollfd{3, POLLIN, 0});
    if (polls) thread.call(SYS_poll, {0x1000, 1, ~std::uint64_t{0}});
    EXPECT_TRUE(judged(&proc).is_deadlock);
    proc.processes[10].pipe(4, 77, O_WRONLY | O_NONBLOCK);
    EXPECT_FALSE(judged(&proc).is_deadlock);
  }
}

// For example, a descriptor in flight through a socket.
TEST(PipeWait, IsLiveIfNoProcessIsSeenAtTheOtherEnd) {
  FakeProc proc = pipe_between();
  proc.processes[11].descriptors.clear();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].pipe(4, 77, O_WRONLY | O_PATH);  // it names the pipe, but is not an end of it
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(PipeWait, IsLiveIfAProcessOutsideHasThePipe) {
  FakeProc proc = pipe_between();
  EXPECT_FALSE(judged(&proc, foreign(77)).is_stuck(10));
  EXPECT_TRUE(judged(&proc, foreign(78)).is_stuck(10));
}

TEST(DescriptorWait, ThatIsNoPipeIsLive) {
  for (const char* target : {"/tmp/fifo", "/dev/pts/0", "/dev/ttyS0", "anon_inode:[timerfd]", "anon_inode:[signalfd]",
                             "anon_inode:inotify", "anon_inode:[userfaultfd]", "anon_inode:[eventpoll]", "mnt:[5]"}) {
    FakeProc proc;
    proc.process(10).open(3, target, O_RDWR, "ino:\t77\nit_value: (0, 0)\nit_interval: (0, 0)\n").thread(10).reads(3);
    EXPECT_THAT(judged(&proc).stuck, IsEmpty()) << target;
  }
  FakeProc closed;
  closed.process(10).thread(10).reads(3);
  EXPECT_THAT(judged(&closed).stuck, IsEmpty());
}

constexpr const char* kNotSet = "ino:\t2\nit_value: (0, 0)\nit_interval: (0, 0)\n";
constexpr const char* kArmedTimer = "ino:\t2\nit_value: (7, 0)\nit_interval: (0, 0)\n";

TEST(DescriptorWait, ForATimerfdThatIsNotSetIsEndedByWhoeverMaySetIt) {
  FakeProc proc;
  proc.process(10).open(3, "anon_inode:[timerfd]", O_RDWR | O_CLOEXEC, kNotSet).thread(10).reads(3);
  proc.process(11).open(5, "anon_inode:[timerfd]", O_RDWR, kNotSet).thread(11).waits_on(0x5000);
  proc.process(12).thread(12).sleeps();
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// Without kcmp, any timerfd outside may be the one of the tree.
TEST(DescriptorWait, ForATimerfdThatAProcessOutsideMayHaveIsLive) {
  FakeProc proc;
  proc.process(10).open(3, "anon_inode:[timerfd]", O_RDWR | O_CLOEXEC, kNotSet).thread(10).reads(3);
  const std::vector<pid_t> tree{10};
  EXPECT_TRUE(judged(&proc, tree, {}).is_deadlock);
  proc.process(20).open(5, "anon_inode:[timerfd]", O_RDWR, kNotSet).thread(20);
  EXPECT_FALSE(judged(&proc, tree, {}).is_deadlock);
}

TEST(DescriptorWait, ForATimerfdThatMayExpireIsLive) {
  FakeProc proc;
  TreeProcess& process = proc.process(10);
  process.open(3, "anon_inode:[timerfd]", O_RDWR | O_CLOEXEC, kArmedTimer).thread(10).reads(3);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  process.open(3, "anon_inode:[timerfd]", O_RDWR, kNotSet);
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it may come from outside";
  process.open(3, "anon_inode:[timerfd]", O_RDWR | O_CLOEXEC, kNotSet);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  process.open(4, "anon_inode:[timerfd]", O_RDWR | O_CLOEXEC, kArmedTimer);
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "an epoll set does not show which of them it holds";
}

TEST(DescriptorWait, ForAPidfdEndsWithThatProcess) {
  FakeProc proc;
  proc.process(10).open(3, "anon_inode:[pidfd]", O_RDWR, "Pid:\t11\n").thread(10).reads(3);
  proc.process(11).thread(11).waits_on(0x5000);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].open(3, "anon_inode:[pidfd]", O_RDWR, "Pid:\t99\n");
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

/// 10 and 11 each have one end of a pair of sockets.
FakeProc socket_pair() {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_recvfrom, {3});
  proc.process(11).socket(3, 71).thread(11).waits_on(0x5000);
  proc.sockets = {{70, 71, false, "", false}, {71, 70, false, "", false}};
  return proc;
}

TEST(SocketWait, IsEndedByThePeer) {
  FakeProc proc = socket_pair();
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kSocket);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SocketWait, MayBeEndedFromThisEndToo) {
  FakeProc proc = socket_pair();
  proc.process(12).socket(9, 70).thread(12).sleeps();  // shutdown()
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SocketWait, WithATimeLimitIsLive) {
  FakeProc proc = socket_pair();
  proc.processes[10].time_limits[3] = kNanosPerSecond;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SocketWait, WithATimeLimitIsEndlessIfThatIsFarAndSoAssumed) {
  FakeProc proc = socket_pair();
  proc.processes[10].time_limits[3] = 20 * kNanosPerSecond;
  TreeBoundary boundary;
  boundary.assumptions.no_limit_from = 20 * kNanosPerSecond;
  const Judged all = judged(&proc, boundary);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, ElementsAre("thread 10 reads or writes with a limit of 20 s"));
  boundary.assumptions.no_limit_from += 1;
  EXPECT_FALSE(judged(&proc, boundary).is_stuck(10));
  EXPECT_THAT(judged(&proc, boundary).assumed, IsEmpty());
}

// The limit counts for calls that read and write.
TEST(SocketWait, WithATimeLimitIsNoMatterToAPoll) {
  FakeProc proc = socket_pair();
  proc.processes[10].time_limits[3] = kNanosPerSecond;
  proc.processes[10].put(0x9000, pollfd{3, POLLIN, 0});
  proc.processes[10].threads[10].call(SYS_poll, {0x9000, 1, ~std::uint64_t{0}});
  EXPECT_TRUE(judged(&proc).is_deadlock);
  proc.processes[10].threads[10].call(SYS_sendto, {3});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(SocketWait, IsLiveIfThePeerIsNotSeen) {
  FakeProc held_outside = socket_pair();
  EXPECT_FALSE(judged(&held_outside, foreign(71)).is_stuck(10));
  EXPECT_FALSE(judged(&held_outside, foreign(70)).is_stuck(10));
  FakeProc elsewhere = socket_pair();
  elsewhere.processes[11].descriptors.clear();
  EXPECT_FALSE(judged(&elsewhere).is_stuck(10));
  FakeProc unconnected = socket_pair();
  unconnected.sockets[0].peer = 0;
  EXPECT_FALSE(judged(&unconnected).is_stuck(10));
  FakeProc network = socket_pair();
  network.sockets.clear();
  EXPECT_FALSE(judged(&network).is_stuck(10));
}

// 10 waits at the pipe by which the forkserver 12 tells of the end of one of its children.
FakeProc forkserver() {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).thread(10).reads(3);
  proc.process(12, 10).pipe(4, 77, O_WRONLY).thread(12).waits_on(0x5000);
  proc.processes[12].command = "python3 -c from multiprocessing.forkserver import main; main(6)";
  for (const pid_t child : {13, 14}) {
    proc.process(child, 12).thread(child).waits_on(0x5000);
    proc.processes[child].command = proc.processes[12].command;
    proc.processes[child].forked = true;
  }
  return proc;
}

TEST(ForkserverWait, IsForTheEndOfItsChildren) {
  FakeProc proc = forkserver();
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kChild);
  EXPECT_EQ(all.waits.at(10).object, "process 13 or 14");
  EXPECT_THAT(all.waits.at(10).wakers, ElementsAre(Waker{13, 0}, Waker{14, 0}));
  EXPECT_TRUE(all.is_deadlock);
  for (const pid_t child : {13, 14}) {
    FakeProc one_sleeps = forkserver();
    one_sleeps.processes[child].threads[child].sleeps();
    EXPECT_FALSE(judged(&one_sleeps).is_stuck(10)) << child;
  }
  proc.processes[12].threads[12].sleeps();
  EXPECT_TRUE(judged(&proc).is_stuck(10)) << "it tells of ends alone";
}

TEST(ForkserverWait, IsForTheServerWhileAChildHasEnded) {
  FakeProc proc = forkserver();
  proc.processes[12].threads[12].sleeps();
  proc.process(15, 12).thread(15).state = 'Z';
  proc.processes[15].forked = true;
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, ElementsAre(Waker{13, 0}, Waker{14, 0}, Waker{12, 0}));
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(ForkserverWait, IsAnOrdinaryOneIfAnotherCanWriteOrThereIsNoChild) {
  FakeProc proc = forkserver();
  proc.processes[13].pipe(4, 77, O_WRONLY);
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kPipeRead);
  proc = forkserver();
  proc.processes[12].forked = true;  // a child of a forkserver
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kPipeRead);
  proc = forkserver();
  proc.processes.erase(13);
  proc.processes.erase(14);
  EXPECT_THAT(judged(&proc).waits.at(10).wakers, ElementsAre(Waker{12, 0}));
}

// It may be for another process than the peer.
TEST(SocketWait, ToSendADatagramIsLive) {
  FakeProc proc = socket_pair();
  proc.sockets[0].datagram = proc.sockets[1].datagram = true;
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[10].threads[10].call(SYS_sendto, {3});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

FakeProc listener(const std::string& name) {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_accept4, {3});
  proc.process(11).thread(11).waits_on(0x5000);
  proc.sockets = {{70, 0, true, name, false}};
  proc.private_folders = {"/tmp/pymp-a1", "/tmp/ssh-XY"};
  return proc;
}

// What multiprocessing listens for there, only its Python stack tells: RankImage.
TEST(ListenerWait, IsEndedByTheTreeIfThatIsAssumed) {
  FakeProc proc = listener("/tmp/pymp-a1/listener-b2");
  proc.processes[10].command = proc.processes[11].command = "program";
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  const Judged all = judged(&proc, boundary);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, ElementsAre("a process of another program may connect to process 10"));
  proc.processes[11].threads[11].sleeps();
  EXPECT_TRUE(judged(&proc, boundary).is_stuck(10));
  proc.process(11, 10).forked = true;
  EXPECT_FALSE(judged(&proc, boundary).is_stuck(10)) << "it is of the same program";
}

TEST(ListenerWait, IsLiveIfOthersMayConnect) {
  for (const char* name : {"/tmp/ssh-XY/agent.12", "/tmp/pymp-open/listener-b2", "/tmp/pymp-a1/control", "", "x"}) {
    FakeProc proc = listener(name);
    EXPECT_FALSE(judged(&proc).is_stuck(10)) << name;
  }
  FakeProc proc = listener("/tmp/pymp-a1/listener-b2");
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it may have given its address away";
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  boundary.closed = false;
  EXPECT_FALSE(judged(&proc, boundary).is_stuck(10));
}

/// 10 reads what 11, to which it is connected, has to send.
FakeProc tcp_connection() {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_recvfrom, {3});
  proc.process(11).socket(4, 71).thread(11).waits_on(0x5000);
  proc.tcp = tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kEstablished, 71);
  return proc;
}

TEST(TcpWait, IsEndedByEitherEnd) {
  FakeProc proc = tcp_connection();
  proc.process(12).socket(5, 71).thread(12).waits_on(0x5000);
  proc.process(13).socket(6, 70).thread(13).waits_on(0x5000);
  const Judged all = judged(&proc);
  EXPECT_EQ(all.waits.at(10).kind, WaitKind::kSocket);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}, Waker{12, 0}, Waker{13, 0}));
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.assumed, IsEmpty());
  for (const pid_t pid : {11, 12, 13}) {
    FakeProc one_sleeps = proc;
    one_sleeps.processes[pid].threads[pid].sleeps();
    EXPECT_FALSE(judged(&one_sleeps).is_stuck(10)) << pid;
  }
}

TEST(TcpWait, IsOfBothFamilies) {
  FakeProc proc = tcp_connection();
  proc.tcp = tcp_line(kServer, kClient, kEstablished, 71);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  const std::string mapped = "0000000000000000FFFF0000";
  proc.tcp6 = tcp_line(mapped + kClient, mapped + kServer, kEstablished, 70);
  EXPECT_TRUE(judged(&proc).is_deadlock);
}

TEST(TcpWait, IsLiveIfThePeerIsOutside) {
  FakeProc elsewhere = tcp_connection();
  elsewhere.tcp = tcp_line(kClient, kServer, kEstablished, 70);  // on another machine
  EXPECT_FALSE(judged(&elsewhere).is_stuck(10));
  FakeProc beside = tcp_connection();
  beside.processes[11].descriptors.clear();
  EXPECT_FALSE(judged(&beside).is_stuck(10));
  FakeProc inherited = tcp_connection();
  EXPECT_FALSE(judged(&inherited, foreign(70)).is_stuck(10));
  EXPECT_FALSE(judged(&inherited, foreign(71)).is_stuck(10));
  EXPECT_TRUE(judged(&inherited, foreign(72)).is_stuck(10));
}

TEST(TcpWait, IsLiveIfItIsAboutToEnd) {
  FakeProc unread = tcp_connection();
  unread.tcp = tcp_line(kClient, kServer, kEstablished, 70, 0, 1) + tcp_line(kServer, kClient, kEstablished, 71);
  EXPECT_FALSE(judged(&unread).is_stuck(10));
  FakeProc unsent = tcp_connection();
  unsent.tcp = tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kEstablished, 71, 1);
  EXPECT_FALSE(judged(&unsent).is_stuck(10));
  FakeProc closed = tcp_connection();
  closed.tcp = tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kFinWait, 71);
  EXPECT_FALSE(judged(&closed).is_stuck(10));
  FakeProc closing = tcp_connection();
  closing.tcp = tcp_line(kClient, kServer, kFinWait, 70) + tcp_line(kServer, kClient, kEstablished, 71);
  EXPECT_FALSE(judged(&closing).is_stuck(10));
}

/// 11, with or without torch, waits for connections and has one with itself, like a process that serves a store.
FakeProc store_of_ranks(bool has_torch) {
  FakeProc proc;
  TreeProcess& server = proc.process(11);
  server.socket(4, 72).socket(5, 70).socket(6, 71).thread(11).call(SYS_accept, {4});
  if (has_torch) server.map("r-xp", 9, "/usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so");
  proc.tcp = tcp_line("00000000:1F90", "00000000:0000", kListening, 72) + tcp_line(kClient, kServer, kEstablished, 70) +
             tcp_line(kServer, kClient, kEstablished, 71);
  return proc;
}

TEST(TcpWait, ForClientsOfAStoreIsForRanks) {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  FakeProc store = store_of_ranks(true);
  EXPECT_TRUE(judged(&store, boundary).is_deadlock);
  EXPECT_THAT(judged(&store, boundary).assumed,
              ElementsAre("a rank that was started elsewhere may connect to process 11"));
  EXPECT_FALSE(judged(&store).is_deadlock);
  FakeProc server = store_of_ranks(false);
  EXPECT_FALSE(judged(&server, boundary).is_deadlock) << "any server";
  FakeProc unused = store_of_ranks(true);
  unused.tcp = tcp_line("00000000:1F90", "00000000:0000", kListening, 72);
  EXPECT_FALSE(judged(&unused, boundary).is_deadlock) << "it is no client of itself";
}

TEST(TcpWait, ForPeersOfZeroMqIsForThoseOfTheTree) {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  FakeProc proc = store_of_ranks(false);
  proc.processes[11].map("r-xp", 9, "/usr/lib/x86_64-linux-gnu/libzmq.so.5.2.4");
  EXPECT_TRUE(judged(&proc, boundary).is_deadlock);
  EXPECT_THAT(judged(&proc, boundary).assumed, ElementsAre("a process outside may connect to process 11"));
  EXPECT_FALSE(judged(&proc).is_deadlock);
  FakeProc stranger = proc;
  stranger.tcp += tcp_line("0100007F:9999", kServer, kEstablished, 99);
  EXPECT_FALSE(judged(&stranger, boundary).is_deadlock) << "another process has connected";
  FakeProc unused = proc;
  unused.tcp = tcp_line("00000000:1F90", "00000000:0000", kListening, 72);
  EXPECT_FALSE(judged(&unused, boundary).is_deadlock) << "a server may be idle";
}

// A program that runs beside the ranks is none of them; but what is young may yet become one, and a shell may start
// one.
TEST(TcpWait, ForRanksIsNotForAProgramBesideThem) {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  const auto is_stuck = [&](const auto& change) {
    FakeProc proc = store_of_ranks(true);
    proc.processes[11].command = "rank";
    proc.process(12).command = "monitor";
    proc.processes[12].thread(12).sleeps();
    change(&proc);
    return judged(&proc, boundary).is_stuck(11);
  };
  EXPECT_TRUE(is_stuck([](FakeProc*) {}));
  EXPECT_FALSE(is_stuck([](FakeProc* proc) { proc->processes[12].map("r-xp", 9, "/usr/lib/libtorch_cpu.so"); }));
  EXPECT_FALSE(is_stuck([](FakeProc* proc) { proc->processes[12].exe = "/usr/bin/bash"; }));
  EXPECT_FALSE(is_stuck([](FakeProc* proc) { proc->processes[11].parent = 12; })) << "it may have started it";
  EXPECT_FALSE(is_stuck([](FakeProc* proc) {
    timespec since_boot{};
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    proc->processes[12].started = static_cast<std::uint64_t>(since_boot.tv_sec * sysconf(_SC_CLK_TCK));
  })) << "it has just been started";
}

/// 10 waits for the answer of 11, which polls the listener at a path where 10 has connected, and the connection.
FakeProc zeromq_at_path() {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_recvfrom, {3});
  proc.process(11).socket(4, 71).socket(5, 72).map("r-xp", 9, "/usr/lib/x86_64-linux-gnu/libzmq.so.5.2.4");
  proc.processes[11].thread(11).call(SYS_accept, {5});
  const char* const path = "/tmp/socket";
  proc.sockets = {{70, 71, false, "", false}, {71, 70, false, path, false}, {72, 0, true, path, false}};
  return proc;
}

TEST(UnixWait, ForPeersOfZeroMqIsForThoseOfTheTree) {
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  FakeProc proc = zeromq_at_path();
  EXPECT_TRUE(judged(&proc, boundary).is_deadlock);
  EXPECT_THAT(judged(&proc, boundary).assumed, ElementsAre("a process outside may connect to process 11"));
  EXPECT_FALSE(judged(&proc).is_deadlock);
  FakeProc stranger = proc;
  stranger.processes[11].socket(6, 73);
  stranger.sockets.push_back({73, 99, false, "/tmp/socket", false});
  EXPECT_FALSE(judged(&stranger, boundary).is_deadlock) << "another process has connected";
  FakeProc unused = proc;
  unused.sockets[1].name = "/tmp/other";
  EXPECT_FALSE(judged(&unused, boundary).is_deadlock) << "a server may be idle";
  FakeProc other = proc;
  other.processes[11].maps = other.processes[10].maps;
  EXPECT_FALSE(judged(&other, boundary).is_deadlock) << "it is not ZeroMQ";
}

// Both have filled the buffers, and neither reads.
TEST(TcpWait, ToWriteIsEndedByReadersAtTheOtherEnd) {
  FakeProc proc = tcp_connection();
  proc.processes[10].threads[10].call(SYS_sendto, {3});
  proc.processes[11].threads[11].call(SYS_sendto, {4});
  proc.tcp = tcp_line(kClient, kServer, kEstablished, 70, 9, 9) + tcp_line(kServer, kClient, kEstablished, 71, 9, 9);
  EXPECT_TRUE(judged(&proc).is_deadlock);
  FakeProc all_read = proc;
  all_read.processes[11].threads[11].waits_on(0x5000);
  all_read.tcp = tcp_line(kClient, kServer, kEstablished, 70, 9) + tcp_line(kServer, kClient, kEstablished, 71);
  EXPECT_FALSE(judged(&all_read).is_stuck(10)) << "there is room";
  proc.processes[11].threads[11].call(SYS_recvfrom, {4});
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// TCP_USER_TIMEOUT ends a connection whose peer does not read, and with it a poll.
TEST(TcpWait, ForRoomMayEndByATimeLimitOfTheConnection) {
  constexpr std::uint64_t kPolled = 0x9000, kNever = ~std::uint64_t{0};
  FakeProc proc = tcp_connection();
  proc.processes[10].put(kPolled, pollfd{3, POLLOUT, 0}).threads[10].call(SYS_poll, {kPolled, 1, kNever});
  proc.tcp = tcp_line(kClient, kServer, kEstablished, 70, 9) + tcp_line(kServer, kClient, kEstablished, 71, 0, 9);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[10].time_limits[3] = kNanosPerSecond;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(TcpWait, OfAnUnacceptedConnectionEndsWithTheListener) {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_recvfrom, {3});
  proc.process(11).socket(4, 72).thread(11).waits_on(0x5000);
  const std::string connection =
      tcp_line(kClient, kServer, kEstablished, 70) + tcp_line(kServer, kClient, kEstablished, 0);
  proc.tcp = connection;
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "no process is seen that could accept it";
  proc.tcp = connection + tcp_line("00000000:1F90", "00000000:0000", kListening, 72, 0, 1);
  const Judged all = judged(&proc);
  EXPECT_TRUE(all.is_deadlock);
  EXPECT_THAT(all.waits.at(10).wakers, UnorderedElementsAre(Waker{10, 0}, Waker{11, 0}));
  EXPECT_FALSE(judged(&proc, foreign(72)).is_stuck(10));
  proc.processes[11].threads[11].sleeps();
  EXPECT_FALSE(judged(&proc).is_stuck(10));
  proc.processes[11].threads[11].waits_on(0x5000);
  proc.tcp = connection + tcp_line("00000000:1F91", "00000000:0000", kListening, 72, 0, 1);
  EXPECT_FALSE(judged(&proc).is_stuck(10)) << "it listens to another port";
}

TEST(TcpWait, WithATimeLimitIsLive) {
  FakeProc proc = tcp_connection();
  proc.processes[10].time_limits[3] = kNanosPerSecond;
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

// Of a program that is not a rank of torch.distributed.
TEST(TcpWait, OfAListenerIsLive) {
  FakeProc proc;
  proc.process(10).socket(3, 70).thread(10).call(SYS_accept4, {3});
  proc.tcp = tcp_line(kServer, "00000000:0000", kListening, 70);
  EXPECT_EQ(judged(&proc).waits.at(10).why_live, "any process may connect");
  TreeBoundary boundary;
  boundary.assumptions.no_outside_peers = true;
  const Judged all = judged(&proc, boundary);
  EXPECT_EQ(all.waits.at(10).why_live, "any process may connect");
  EXPECT_THAT(all.assumed, IsEmpty());
}

FakeProc eventfd_reader() {
  FakeProc proc;
  proc.process(10).eventfd(3, 0).thread(10).reads(3);
  proc.process(11).eventfd(8, 1).thread(11).sleeps();
  return proc;
}

TEST(EventfdWait, IsEndedByAnyProcessThatHasIt) {
  FakeProc proc = eventfd_reader();
  EXPECT_EQ(judged(&proc).waits.at(10).kind, WaitKind::kEventfd);
  EXPECT_TRUE(judged(&proc).is_stuck(10));
  proc.processes[11].eventfd(9, 0);
  EXPECT_FALSE(judged(&proc).is_stuck(10));
}

TEST(EventfdWait, IsLiveIfTheKernelMaySignalIt) {
  FakeProc aio = eventfd_reader();
  aio.processes[11].map("rw-s", 5, "/[aio] (deleted)");
  EXPECT_FALSE(judged(&aio).is_stuck(10));
  FakeProc device = eventfd_reader();
  device.processes[11].open(20, "/dev/vfio/1", O_RDWR);
  EXPECT_FALSE(judged(&device).is_stuck(10));
  FakeProc machine = eventfd_reader();
  machine.processes[11].open(20, "anon_inode:kvm-vm", O_RDWR);
  EXPECT_FALSE(judged(&machine).is_stuck(10));
  FakeProc tame = eventfd_reader();
  tame.processes[10].open(0, "/dev/null").open(1, "/dev/pts/3", O_RDWR).open(2, "/dev/shm/x", O_RDWR);
  EXPECT_TRUE(judged(&tame).is_stuck(10));
}

TEST(EventfdWait, IsLiveIfItIsNotKnownOrOfOthers) {
  FakeProc old_kernel = eventfd_reader();
  old_kernel.processes[11].threads[11].waits_on(0x5000);
  old_kernel.processes[10].open(3, "anon_inode:[eventfd]", O_RDWR, "eventfd-count: 0\n");
  EXPECT_FALSE(judged(&old_kernel).is_stuck(10));
  FakeProc boundary = eventfd_reader();
  Descriptor held = parse_descriptor(3, "anon_inode:[eventfd]");
  held.event_id = 0;
  EXPECT_FALSE(judged(&boundary, foreign(identity_of(held))).is_stuck(10));
}

TEST(Foreign, HoldsWhatTheProcessesHold) {
  FakeProc proc;
  proc.process(10).pipe(3, 77, O_RDONLY).socket(4, 78).eventfd(5, 9).open(6, "/tmp/a", O_RDWR, "ino:\t80\n");
  proc.process(10).open(7, "anon_inode:[timerfd]").thread(10);
  const auto held = inodes_held_by(&proc, {10, 99});
  EXPECT_EQ(held.size(), 4U);
  EXPECT_EQ(held.count(77) + held.count(78), 2U);
}

}  // namespace
}  // namespace mprun
