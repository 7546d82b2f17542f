// Frames and the claim table: what is sent arrives whole, nonsense is detected, no task is claimed twice.
#include "wire/frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "os/process.h"
#include "wire/claim_table.h"

namespace mprun {
namespace {

TEST(Frames, ArriveWholeInAnyPieces) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  set_nonblocking(pipe->read.get());
  std::string bytes;
  for (const std::string payload : {"", "a", "hello"}) {
    const mprun_frame header{static_cast<std::uint32_t>(payload.size()), MPRUN_FRAME_MAGIC, MPRUN_READY};
    bytes.append(reinterpret_cast<const char*>(&header), sizeof header).append(payload);
  }
  FrameReader reader;
  Frame frame;
  std::string seen;
  int frames = 0;
  for (const char byte : bytes) {
    ASSERT_TRUE(write_all(pipe->write.get(), {&byte, 1}));
    EXPECT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kMore);
    while (reader.next(&frame)) {
      seen += frame.payload;
      ++frames;
    }
  }
  EXPECT_EQ(frames, 3);
  EXPECT_EQ(seen, "ahello");
  EXPECT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kEmpty);
  pipe->write.reset();
  EXPECT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kClosed);
}

class PassedDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = make_socket_pair();
    ASSERT_TRUE(pair);
    sender_.emplace(std::move(pair->ours));
    socket_ = std::move(pair->theirs);
    set_nonblocking(socket_.get());
  }
  [[nodiscard]] FrameSender::Sent send(std::size_t count) {
    return sender_->send_with_fds(MPRUN_FORKED, "worker", std::vector<int>(count, socket_.get()));
  }
  std::optional<FrameSender> sender_;
  Fd socket_;
  FrameReader reader_;
  std::deque<Fd> passed_;
};

TEST_F(PassedDescriptors, ComeInTheOrderOfTheirFrames) {
  ASSERT_EQ(send(1), FrameSender::Sent::kSent);
  ASSERT_EQ(send(2), FrameSender::Sent::kSent);
  int frames = 0;
  while (reader_.fill(socket_.get(), &passed_) == FrameReader::Fill::kMore) {
    for (Frame frame; reader_.next(&frame);) ++frames;
  }
  EXPECT_EQ(frames, 2);
  EXPECT_EQ(passed_.size(), 3U);
  EXPECT_FALSE(reader_.corrupt());
  for (const Fd& fd : passed_) EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(PassedDescriptors, ThatDoNotFitAreMissed) {
  const rlimit before = limits_of(RLIMIT_NOFILE);
  rlimit few = before;
  const Fd next(dup(0));
  few.rlim_cur = static_cast<rlim_t>(next.get()) + 2;  // one is left
  ASSERT_EQ(send(2), FrameSender::Sent::kSent);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  (void)reader_.fill(socket_.get(), &passed_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(passed_.size(), 2U);
  EXPECT_TRUE(reader_.corrupt());
}

TEST_F(PassedDescriptors, AreNotTakenWithoutEnd) {
  for (std::size_t sent = 0; sent <= FrameReader::kMostPassed; sent += 8) {
    ASSERT_EQ(send(8), FrameSender::Sent::kSent);
    (void)reader_.fill(socket_.get(), &passed_);
  }
  EXPECT_TRUE(reader_.corrupt());
}

TEST(Frames, NonsenseIsNoticed) {
  for (const mprun_frame bad : {mprun_frame{1, 0x1234, MPRUN_READY}, mprun_frame{0xffffffff, MPRUN_FRAME_MAGIC, 1}}) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    ASSERT_TRUE(write_all(pipe->write.get(), {reinterpret_cast<const char*>(&bad), sizeof bad}));
    FrameReader reader;
    Frame frame;
    ASSERT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kMore);
    EXPECT_FALSE(reader.next(&frame));
    EXPECT_TRUE(reader.corrupt());
  }
}

/// Bytes of address space that this process uses.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Under a limit on address space, a header alone would end mprun.
TEST(Frames, TheClaimOfALargePayloadTakesNoMemory) {
  const std::size_t before = address_space();
  std::vector<FrameReader> readers(4);
  for (FrameReader& reader : readers) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    const mprun_frame claim{MPRUN_MAX_PAYLOAD, MPRUN_FRAME_MAGIC, MPRUN_RESULT};
    ASSERT_TRUE(write_all(pipe->write.get(), {reinterpret_cast<const char*>(&claim), sizeof claim}));
    Frame frame;
    ASSERT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kMore);
    EXPECT_FALSE(reader.next(&frame));
    EXPECT_FALSE(reader.corrupt());
  }
  EXPECT_LT(address_space() - before, std::size_t{MPRUN_MAX_PAYLOAD});
}

TEST(Frames, AFrameThatHasBegunIsSeen) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const mprun_frame header{3, MPRUN_FRAME_MAGIC, MPRUN_RESULT};
  const std::string bytes = std::string(reinterpret_cast<const char*>(&header), sizeof header) + "abc";
  FrameReader reader;
  Frame frame;
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    EXPECT_EQ(reader.mid_frame(), size > 1) << size;
    ASSERT_TRUE(write_all(pipe->write.get(), bytes.substr(size - 1, 1)));
    ASSERT_EQ(reader.fill(pipe->read.get()), FrameReader::Fill::kMore);
    EXPECT_EQ(reader.next(&frame), size == bytes.size());
  }
  EXPECT_FALSE(reader.mid_frame());
}

TEST(Frames, LargePayloadGoesThroughASmallSocket) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  set_nonblocking(pair->theirs.get());
  FrameSender sender(std::move(pair->ours));
  const std::string payload(5'000'000, 'x');
  sender.send_frame(MPRUN_START, payload);
  FrameReader reader;
  Frame frame;
  bool whole = false;
  while (!whole) {
    ASSERT_TRUE(sender.flush());
    ASSERT_NE(reader.fill(pair->theirs.get()), FrameReader::Fill::kClosed);
    whole = reader.next(&frame);
  }
  EXPECT_EQ(frame.payload, payload);
  EXPECT_FALSE(sender.wants_to_write());
}

TEST(Frames, FlushReportsWhenThePeerIsGone) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  pair->theirs.reset();
  FrameSender sender(std::move(pair->ours));
  sender.send_frame(MPRUN_STOP, "");
  EXPECT_FALSE(sender.flush());
}

// mprun must not wait for a host that is itself waiting to write: a full socket is reported, not waited for.
TEST(Frames, DescriptorsAreNotSentIntoAFullSocket) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  FrameSender sender(std::move(pair->ours));
  int sent = 0;
  auto outcome = FrameSender::Sent::kSent;
  for (; outcome == FrameSender::Sent::kSent && sent < 100'000; ++sent) {
    outcome = sender.send_with_fds(MPRUN_FORK, "{}", {STDIN_FILENO});
  }
  EXPECT_EQ(outcome, FrameSender::Sent::kBusy);
  set_nonblocking(pair->theirs.get());
  FrameReader reader;
  Frame frame;
  int received = 0;
  while (reader.fill(pair->theirs.get()) == FrameReader::Fill::kMore) {
    while (reader.next(&frame)) ++received;
  }
  EXPECT_EQ(received, sent - 1) << "the refused frame left a trace";
  EXPECT_EQ(sender.send_with_fds(MPRUN_FORK, "{}", {STDIN_FILENO}), FrameSender::Sent::kSent);
}

TEST(ClaimTable, GrantsClaimsAndTakesBack) {
  auto claims = ClaimTable::create(2);
  ASSERT_TRUE(claims);
  mprun_claim_slot* slot = claims->slot(1);
  EXPECT_FALSE(mprun_claim_task(slot, 0));
  mprun_claim_grant(slot, 3);
  EXPECT_TRUE(mprun_claim_task(slot, 0));
  EXPECT_EQ(mprun_claim_take_back(slot), 2U);
  EXPECT_FALSE(mprun_claim_task(slot, 1));
  EXPECT_FALSE(mprun_claim_task(slot, 2));
  mprun_claim_grant(slot, 1);
  EXPECT_FALSE(mprun_claim_task(slot, 2));
  EXPECT_TRUE(mprun_claim_task(slot, 3));
  EXPECT_EQ(claims->slot(0)->claim, 0U);
}

TEST(ClaimTable, PositionsWrap) {
  mprun_claim_slot slot{};
  slot.claim = mprun_claim_make(0xffffffffU, 0xffffffffU);
  mprun_claim_grant(&slot, 2);
  EXPECT_TRUE(mprun_claim_task(&slot, 0xffffffffU));
  EXPECT_TRUE(mprun_claim_task(&slot, 0));
  EXPECT_FALSE(mprun_claim_task(&slot, 1));
}

// The worker claims while the supervisor takes back: every position goes to exactly one of them.
TEST(ClaimTable, RaceGivesEveryPositionOnce) {
  mprun_claim_slot slot{};
  constexpr std::uint32_t kRounds = 20'000, kChunk = 5;
  std::atomic<std::uint32_t> granted = 0;
  std::atomic<std::uint64_t> claimed = 0, taken = 0;
  std::atomic<bool> done = false;
  std::thread worker([&] {
    std::uint32_t position = 0;
    while (!done || position < granted) {
      if (position >= granted) continue;
      if (mprun_claim_task(&slot, position)) ++claimed;
      ++position;
    }
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    mprun_claim_grant(&slot, kChunk);
    granted += kChunk;
    if (round % 3 == 0) taken += mprun_claim_take_back(&slot);
  }
  done = true;
  worker.join();
  EXPECT_EQ(claimed + taken, static_cast<std::uint64_t>(kRounds) * kChunk);
}

}  // namespace
}  // namespace mprun
