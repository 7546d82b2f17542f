#include "wire/frames.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

constexpr std::size_t kBelieved = 8;  ///< the buffer grows to this many times what has arrived, if a header claims so

}  // namespace

void FrameReader::make_room() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < read_size_) buffer_.resize(end_ + read_size_);
}

FrameReader::Fill FrameReader::filled(ssize_t size) {
  if (size > 0) {
    end_ += static_cast<std::size_t>(size);
    return Fill::kMore;
  }
  return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Fill::kEmpty : Fill::kClosed;
}

FrameReader::Fill FrameReader::fill(int fd) {
  make_room();
  return filled(uninterrupted([&] { return read(fd, buffer_.data() + end_, read_size_); }));
}

FrameReader::Fill FrameReader::fill(int socket, std::deque<Fd>* passed) {
  make_room();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostPassed)> control{};
  iovec part{buffer_.data() + end_, read_size_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = uninterrupted([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  const Fill state = filled(size);
  if (size < 0) return state;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(one) + at, sizeof fd);
      passed->emplace_back(fd);
    }
  }
  corrupt_ = corrupt_ || (message.msg_flags & MSG_CTRUNC) != 0 || passed->size() > kMostPassed;
  return state;
}

bool FrameReader::next(Frame* frame) {
  mprun_frame header{};
  if (corrupt_ || end_ - begin_ < sizeof header) return false;
  std::memcpy(&header, buffer_.data() + begin_, sizeof header);
  if (header.magic != MPRUN_FRAME_MAGIC || header.size > MPRUN_MAX_PAYLOAD) {
    corrupt_ = true;
    return false;
  }
  if (end_ - begin_ < sizeof header + header.size) {
    // A large value grows the buffer only a few times, and a claim alone takes no memory.
    const std::size_t whole = begin_ + sizeof header + header.size + read_size_;
    buffer_.reserve(std::min(whole, kBelieved * (end_ + read_size_)));
    return false;
  }
  frame->type = header.type;
  frame->payload = std::string_view(buffer_).substr(begin_ + sizeof header, header.size);
  begin_ += sizeof header + header.size;
  return true;
}

void FrameSender::begin_frame(std::uint16_t type) {
  frame_start_ = pending_.size();
  const mprun_frame header{0, MPRUN_FRAME_MAGIC, type};
  pending_.append(reinterpret_cast<const char*>(&header), sizeof header);
}

void FrameSender::end_frame() {
  const auto size = static_cast<std::uint32_t>(pending_.size() - frame_start_ - sizeof(mprun_frame));
  std::memcpy(pending_.data() + frame_start_, &size, sizeof size);
}

void FrameSender::send_frame(std::uint16_t type, std::string_view payload) {
  begin_frame(type);
  pending_.append(payload);
  end_frame();
}

FrameSender::Sent FrameSender::send_with_fds(std::uint16_t type, std::string_view payload,
                                             const std::vector<int>& fds) {
  if (!flush()) return Sent::kGone;
  if (wants_to_write()) return Sent::kBusy;  // frames keep their order
  send_frame(type, payload);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  iovec part{pending_.data(), pending_.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  const ssize_t n = uninterrupted([&] { return sendmsg(socket_.get(), &message, MSG_NOSIGNAL); });
  if (n < 0) {
    pending_.clear();
    return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::kBusy : Sent::kGone;
  }
  sent_ = static_cast<std::size_t>(n);  // the descriptors went with the first byte
  return flush() ? Sent::kSent : Sent::kGone;
}

bool FrameSender::flush() {
  while (sent_ < pending_.size()) {
    const ssize_t n = uninterrupted(
        [&] { return send(socket_.get(), pending_.data() + sent_, pending_.size() - sent_, MSG_NOSIGNAL); });
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<std::size_t>(n);
  }
  pending_.clear();
  sent_ = 0;
  return true;
}

}  // namespace mprun
