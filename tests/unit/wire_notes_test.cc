// Notes: what an adapter says is received once, nonsense is dropped, and neither side ever waits.
#include "wire/notes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace mprun {
namespace {

// An adapter: sends datagrams as the preload library does.
class Sender {
 public:
  explicit Sender(const NoteBox& box) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sun_family = AF_UNIX;
    std::memcpy(static_cast<char*>(address_.sun_path) + 1, box.address().data(), box.address().size());
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + box.address().size());
  }

  // errno, or 0. A descriptor as `gift` goes along.
  [[nodiscard]] int send(std::string datagram, int gift = -1) const {
    iovec part{datagram.data(), datagram.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof gift)> control{};
    msghdr message{};
    message.msg_name = const_cast<sockaddr_un*>(&address_);  // sendmsg() only reads it
    message.msg_namelen = size_;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (gift >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof gift);
      std::memcpy(CMSG_DATA(header), &gift, sizeof gift);
    }
    return sendmsg(fd_.get(), &message, MSG_NOSIGNAL) < 0 ? errno : 0;
  }

 private:
  Fd fd_;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

bool is_readable(const NoteBox& box) {
  pollfd wait{box.fd(), POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

TEST(Notes, ArriveWithTheirSender) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  EXPECT_TRUE(box->take().empty());
  EXPECT_FALSE(is_readable(*box));
  ASSERT_EQ(sender.send("libgomp\ntwo\nlines"), 0);
  const pid_t child = fork();
  if (child == 0) _exit(sender.send("quiet\na child's"));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(is_readable(*box));
  const auto notes = box->take();
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].pid, getpid());
  EXPECT_EQ(notes[0].adapter, "libgomp");
  EXPECT_EQ(notes[0].text, "two\nlines");
  EXPECT_EQ(to_string(notes[1]), "a child's [quiet, pid " + std::to_string(child) + "]");
}

TEST(Notes, AreReceivedOnce) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  for (const char* datagram : {"a\nsame", "a\nsame", "b\nsame", "a\nother"}) ASSERT_EQ(sender.send(datagram), 0);
  EXPECT_EQ(box->take().size(), 3U);
  ASSERT_EQ(sender.send("a\nsame"), 0);
  EXPECT_TRUE(box->take().empty());
}

TEST(Notes, NonsenseIsLeftOut) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  for (const std::string& datagram : {std::string("no line"), std::string(), std::string("\0\xff\x01", 3)}) {
    ASSERT_EQ(sender.send(datagram), 0);
  }
  ASSERT_EQ(sender.send("a\nsense"), 0);
  const auto notes = box->take();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].text, "sense");
}

TEST(Notes, ALongOneIsCut) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  ASSERT_EQ(sender.send("a\n" + std::string(10'000, 'x')), 0);
  ASSERT_EQ(sender.send(std::string(10'000, 'x') + "\na"), 0);
  ASSERT_EQ(sender.send("b\nnext"), 0);
  const auto notes = box->take();
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].text, std::string(2046, 'x'));
  EXPECT_EQ(notes[1].text, "next");
}

// A descriptor that is sent along must not stay open in mprun.
TEST(Notes, DescriptorsAreNotTaken) {
  auto box = NoteBox::open();
  auto pipe = make_pipe();
  ASSERT_TRUE(box && pipe);
  ASSERT_EQ(Sender(*box).send("a\ngift", pipe->write.get()), 0);
  EXPECT_EQ(box->take().size(), 1U);
  pipe->write.reset();
  char byte = 0;
  set_nonblocking(pipe->read.get());
  EXPECT_EQ(read(pipe->read.get(), &byte, 1), 0) << "the write end is still open";
}

TEST(Notes, NeitherSideWaitsAndMemoryIsBounded) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  int failure = 0;
  int sent = 0;
  for (; failure == 0 && sent < 100'000; ++sent) failure = sender.send("a\n" + std::to_string(sent));
  EXPECT_EQ(failure, EAGAIN) << "a full box must refuse, not block";
  std::size_t received = box->take().size();
  EXPECT_GT(received, 0U);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(sender.send("b\n" + std::to_string(i)), 0);
    received += box->take().size();
  }
  EXPECT_EQ(received, 1001U) << "and one that reports the loss";
}

// Notes for the watch: each one counts, however often the same is sent and however much was sent before.
TEST(Notes, HistoryIsPassedOnWhole) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  const std::string history = std::string(kHistoryNotes) + "\n";
  for (const char* text : {"alarm", "alarm", "fork\t1\t1\t1"}) ASSERT_EQ(sender.send(history + text), 0);
  auto notes = box->take();
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[0].adapter, kHistoryNotes);
  EXPECT_EQ(notes[0].pid, getpid());
  EXPECT_EQ(notes[1].text, "alarm");
  EXPECT_EQ(notes[2].text, "fork\t1\t1\t1");
  std::size_t received = 0;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(sender.send(history + std::to_string(i)), 0);
    received += box->take().size();
  }
  EXPECT_EQ(received, 1500U);
  ASSERT_EQ(sender.send("a\nfor people"), 0);
  EXPECT_EQ(box->take().size(), 1U) << "history is not counted as a warning";
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(sender.send("b\n" + std::to_string(i)), 0);
    (void)box->take();
  }
  ASSERT_EQ(sender.send(history + "fork\t2\t2\t1"), 0);
  EXPECT_EQ(box->take().size(), 1U) << "nor silenced by it";
}

// A program that never stops sending: mprun takes some, and gets to its other work.
TEST(Notes, ATorrentDoesNotHoldUp) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  const Sender sender(*box);
  const std::string datagram = std::string(kHistoryNotes) + "\n" + std::string(1000, 'x');
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    for (;;) (void)sender.send(datagram);
  }
  ASSERT_GT(child, 0);
  for (int round = 0; round < 20; ++round) {
    pollfd wait{box->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 30'000), 1);
    EXPECT_LE(box->take().size(), 1000U);
  }
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  (void)box->take();
  EXPECT_FALSE(is_readable(*box)) << "what remains after the last sender has ended is taken immediately";
}

TEST(Notes, BoxesHaveNamesOfTheirOwn) {
  auto one = NoteBox::open();
  auto other = NoteBox::open();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->address(), other->address());
  ASSERT_EQ(Sender(*one).send("a\nfor one"), 0);
  EXPECT_TRUE(other->take().empty());
  EXPECT_EQ(one->take().size(), 1U);
}

}  // namespace
}  // namespace mprun
