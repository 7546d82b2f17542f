// Explains in plain words what is wrong with a text that is not JSON: position and cause. Called by the document
// reader, and by the inputs for each line of a jsonl file; owns nothing.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace mprun {

struct SyntaxFault {
  std::size_t offset = 0;  ///< into the text, of the fault; its size if the text ends too early
  std::string cause;
  bool at_end = false;  ///< the text ends in the middle of a value
};

/// Turns what nlohmann's SAX parser reports (bytes read, the last token, its exception) into a SyntaxFault.
[[nodiscard]] SyntaxFault explain_fault(std::string_view text, std::size_t bytes_read, const std::string& last_token,
                                        const std::exception& error);

/// The first byte of 0, which for nlohmann's parser is the end of a text, whatever follows; nullopt if there is none.
[[nodiscard]] std::optional<SyntaxFault> find_nul(std::string_view text);

/// Checks one JSON text without building a value; nullopt if it is good.
[[nodiscard]] std::optional<SyntaxFault> check_json(std::string_view text);

}  // namespace mprun
