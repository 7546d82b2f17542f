#include "supervise/worker_connection.h"

#include <utility>

namespace mprun {

Result<void> WorkerConnection::open(const LaunchPlan& plan, LaunchRequest* request, Events events) {
  reset();
  auto opened = open_worker_channels(plan.run_dir, request->slot, request);
  if (!opened) return opened.error();
  loop_ = plan.loop;
  sender_.emplace(std::move(opened->channel));
  results_ = std::move(opened->results);
  log_offset_ = opened->log_offset;
  on_closed_ = std::move(events.on_closed);
  if (auto added = loop_->add(sender_->fd(), 0, [this](std::uint32_t bits) { on_socket(bits); }); !added) return added;
  return loop_->add(results_.get(), EPOLLIN, [read = std::move(events.on_readable)](std::uint32_t) { read(); });
}

void WorkerConnection::close() {
  if (sender_) loop_->remove(sender_->fd());
  sender_.reset();
  close_pipe();
}

void WorkerConnection::reset() {
  close();
  reader_ = FrameReader();
  log_offset_ = 0;
}

void WorkerConnection::on_socket(std::uint32_t events) {
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) {
    flush();
    return;
  }
  loop_->remove(sender_->fd());  // epoll would report a closed end forever
  on_closed_();
}

void WorkerConnection::flush() {
  if (!sender_) return;
  if (!sender_->flush()) {
    loop_->remove(sender_->fd());
    on_closed_();
    return;
  }
  loop_->modify(sender_->fd(), sender_->wants_to_write() ? EPOLLOUT : 0U);
}

FrameReader::Fill WorkerConnection::fill() {
  const auto state = reader_.fill(results_.get());
  filled_at_ = monotonic_now();
  return state;
}

FrameReader::Fill WorkerConnection::drain(const std::function<bool()>& wants_more,
                                          const std::function<void(const Frame&)>& on_frame) {
  auto state = FrameReader::Fill::kMore;
  for (int fills = 0; fills < FrameReader::kMostFills && state == FrameReader::Fill::kMore; ++fills) {
    state = fill();
    Frame frame;
    while (wants_more() && reader_.next(&frame)) on_frame(frame);
  }
  return state;
}

void WorkerConnection::ignore_pipe() {
  if (results_) loop_->remove(results_.get());
}

void WorkerConnection::close_pipe() {
  ignore_pipe();
  results_.reset();
}

}  // namespace mprun
