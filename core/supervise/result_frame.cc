#include "supervise/result_frame.h"

#include <cstring>

#include "json/json_check.h"

namespace mprun {

std::optional<ResultFrame> parse_result(std::string_view payload) {
  ResultFrame frame;
  if (payload.size() <= sizeof frame.head) return std::nullopt;
  std::memcpy(&frame.head, payload.data(), sizeof frame.head);
  payload.remove_prefix(sizeof frame.head);
  if (frame.head.tensors >= payload.size()) return std::nullopt;
  frame.tensors = payload.substr(0, frame.head.tensors);
  frame.json = payload.substr(frame.head.tensors);
  if (!is_json(frame.json)) return std::nullopt;
  return frame;
}

}  // namespace mprun
