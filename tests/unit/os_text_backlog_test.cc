// Text for readers that sleep, go away, or never read.
#include "os/text_backlog.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

namespace mprun {
namespace {

using testing::EndsWith;

/// Fills it to the limit, with text of others.
void fill(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const std::string piece(4096, '.');
  while (write(fd, piece.data(), piece.size()) > 0 || write(fd, ".", 1) > 0) {
  }
  fcntl(fd, F_SETFL, flags);
}

/// All that can be read once `backlog` is finished and `write` is closed.
std::string heard_of(TextBacklog* backlog, int from, Fd* write) {
  std::string received;
  std::thread reader([&] { received = read_all(from).value(); });
  backlog->finish();
  *backlog = TextBacklog(-1);
  write->reset();
  reader.join();
  return received;
}

TEST(TextBacklog, KeepsWhatAFullPipeDoesNotTake) {
  Pipe pipe = make_pipe().value();
  fill(pipe.write.get());
  TextBacklog backlog(pipe.write.get());
  EXPECT_FALSE(backlog.takes_text());
  backlog.add("one\n");
  backlog.add("two\n");
  EXPECT_TRUE(backlog.is_waiting());
  EXPECT_THAT(heard_of(&backlog, pipe.read.get(), &pipe.write), EndsWith(".one\ntwo\n"));
}

TEST(TextBacklog, KeepsWhatAFullSocketDoesNotTake) {
  SocketPair pair = make_socket_pair().value();
  fill(pair.ours.get());
  TextBacklog backlog(pair.ours.get());
  backlog.add("one\n");
  EXPECT_TRUE(backlog.is_waiting());
  EXPECT_THAT(heard_of(&backlog, pair.theirs.get(), &pair.ours), EndsWith(".one\n"));
}

TEST(TextBacklog, SendsAtOnceWhatIsTaken) {
  const Pipe pipe = make_pipe().value();
  TextBacklog backlog(pipe.write.get());
  EXPECT_TRUE(backlog.takes_text());
  backlog.add("one\n");
  EXPECT_FALSE(backlog.is_waiting());
  std::array<char, 8> text{};
  EXPECT_EQ(read(pipe.read.get(), text.data(), text.size()), 4);
}

// Other processes' descriptors do not change, and a program may have made this one non-blocking.
TEST(TextBacklog, LeavesTheFlagsOfItsDescriptorAsTheyAre) {
  Pipe pipe = make_pipe().value();
  {
    TextBacklog backlog(pipe.write.get());
    backlog.add("one\n");
    EXPECT_EQ(fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);
  }
  set_nonblocking(pipe.write.get());
  fill(pipe.write.get());
  set_nonblocking(pipe.write.get());
  TextBacklog backlog(pipe.write.get());
  backlog.add("two\n");
  EXPECT_THAT(heard_of(&backlog, pipe.read.get(), &pipe.write), EndsWith(".two\n"));
}

TEST(TextBacklog, IsDoneWhenItsReaderHasGone) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe().value();
  fill(pipe.write.get());
  TextBacklog backlog(pipe.write.get());
  backlog.add("one\n");
  pipe.read.reset();
  backlog.finish();
  EXPECT_FALSE(backlog.is_waiting());
  backlog.add("two\n");
  EXPECT_FALSE(backlog.is_waiting());
}

TEST(TextBacklog, ReportsHowMuchItHasLeftOut) {
  Pipe pipe = make_pipe().value();
  fill(pipe.write.get());
  TextBacklog backlog(pipe.write.get());
  backlog.add(std::string(TextBacklog::kMostBytes, 'x'));
  backlog.add("two\n");
  backlog.add("three\n");
  EXPECT_THAT(heard_of(&backlog, pipe.read.get(), &pipe.write),
              EndsWith("xmprun: 2 messages are left out here: the reader was too slow\n"));
}

TEST(TextBacklog, NeedsNoDescriptor) {
  TextBacklog backlog(-1);
  backlog.add("one\n");
  backlog.finish();
  EXPECT_FALSE(backlog.is_waiting());
}

}  // namespace
}  // namespace mprun
