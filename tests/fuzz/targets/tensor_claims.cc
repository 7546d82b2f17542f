// The tensors that a worker's result claims.
#include "wire/tensor_claims.h"

#include <string>

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {

void tensor_claims(std::string_view input) {
  const auto claims = parse_tensor_claims(input);
  if (!claims) return;
  require(claims->size() <= kMostTensors, "claims are bounded");
  std::string again;
  for (const TensorClaim& claim : *claims) {
    require(claim.name.data() >= input.data() && claim.name.data() + claim.name.size() <= input.data() + input.size(),
            "a name lies in the frame");
    const mprun_tensor record{claim.begin, claim.end, static_cast<std::uint32_t>(claim.kind),
                              static_cast<std::uint32_t>(claim.name.size())};
    again.append(reinterpret_cast<const char*>(&record), sizeof record).append(claim.name);
  }
  require(again == input, "claims written again are the same bytes");
}

}  // namespace mprun::fuzz
