#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/fd.h"
#include "wire/notes.h"

namespace mprun {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Sends one datagram, as the adapters do.
void say(const NoteBox& box, const std::string& text) {
  const Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path) + 1, box.address().data(), box.address().size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + box.address().size());
  ASSERT_EQ(sendto(fd.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&address), size),
            static_cast<ssize_t>(text.size()));
}

TEST(NoteBox, TakesEveryTextOnce) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  say(*box, "libgomp\nfirst\nline");
  say(*box, "libgomp\nfirst\nline");
  say(*box, "no adapter");
  const auto notes = box->take();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].adapter, "libgomp");
  EXPECT_EQ(notes[0].text, "first\nline");
  EXPECT_EQ(notes[0].pid, getpid());
  EXPECT_THAT(box->take(), IsEmpty());
}

TEST(NoteBox, SaysOnceThatItHasHeardEnough) {
  auto box = NoteBox::open();
  ASSERT_TRUE(box);
  for (int i = 0; i < 1000; ++i) {
    say(*box, "quiet\n" + std::to_string(i));
    ASSERT_THAT(box->take(), SizeIs(1));
  }
  say(*box, "quiet\none more");
  const auto last = box->take();
  ASSERT_THAT(last, SizeIs(1));
  EXPECT_THAT(last[0].text, HasSubstr("the rest is left out"));
  say(*box, "quiet\nand one");
  EXPECT_THAT(box->take(), IsEmpty());
}

}  // namespace
}  // namespace mprun
