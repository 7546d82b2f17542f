#include "wire/tensor_claims.h"

#include <cstring>

namespace mprun {

std::optional<std::vector<TensorClaim>> parse_tensor_claims(std::string_view bytes) {
  std::vector<TensorClaim> claims;
  while (!bytes.empty()) {
    mprun_tensor record{};
    if (bytes.size() < sizeof record || claims.size() == kMostTensors) return std::nullopt;
    std::memcpy(&record, bytes.data(), sizeof record);
    bytes.remove_prefix(sizeof record);
    const bool known = record.kind == MPRUN_TENSOR_ROWS || record.kind == MPRUN_TENSOR_SAFETENSORS;
    if (!known || record.name_bytes > bytes.size()) return std::nullopt;
    claims.push_back(
        {static_cast<mprun_tensor_kind>(record.kind), record.begin, record.end, bytes.substr(0, record.name_bytes)});
    bytes.remove_prefix(record.name_bytes);
  }
  return claims;
}

}  // namespace mprun
