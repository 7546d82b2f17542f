#include "watch/stacks/frame_pointer.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "procfs/live_memory.h"
#include "watch/sample/architecture.h"

namespace mprun {

#if defined(__x86_64__)

namespace {

constexpr int kMostWithout = 8;               // frames without a frame pointer, before the first one with it
constexpr std::size_t kMostInFrame = 4096;    // bytes between the stack pointer and the frame pointer
constexpr std::int64_t kSavedAndReturn = 16;  // bytes from the frame pointer to the canonical frame address

using CodeBytes = std::array<unsigned char, 16>;

template <typename Number>
Number number_at(const CodeBytes& bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

bool has_code(const CodeBytes& bytes, std::size_t at, std::string_view code) {
  return std::memcmp(bytes.data() + at, code.data(), code.size()) == 0;
}

/// The rule for the canonical frame address (CFA): an offset from the frame pointer or the stack pointer.
struct CfaRule {
  bool by_frame_pointer = false;
  std::int64_t offset = 0;
};

std::optional<CfaRule> cfa_rule_at(Dwfl_Module* module, Dwarf_Addr address) {
  Dwarf_Addr bias = 0;
  Dwarf_CFI* rules = dwfl_module_eh_cfi(module, &bias);
  Dwarf_Frame* found = nullptr;
  if (rules == nullptr || dwarf_cfi_addrframe(rules, address - bias, &found) != 0) return std::nullopt;
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, &std::free);
  Dwarf_Op* steps = nullptr;
  std::size_t count = 0;
  // libdw gives a register and an offset as this operation, whatever the number of the register.
  if (dwarf_frame_cfa(found, &steps, &count) != 0 || count != 1 || steps->atom != DW_OP_bregx) return std::nullopt;
  const bool by_frame_pointer = steps->number == architecture::kFramePointer;
  if (!by_frame_pointer && steps->number != architecture::kStackPointer) return std::nullopt;
  return CfaRule{by_frame_pointer, static_cast<std::int64_t>(steps->number2)};
}

// The start of the function at `address`, by the table that exceptions use: the last entry that is not above it.
std::optional<Dwarf_Addr> start_of_function(Dwfl_Module* module, Dwarf_Addr address) {
  constexpr std::string_view kUsualForm{"\x01\x1b\x03\x3b", 4};  // version, three encodings: 32 bits, relative
  Dwarf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module, &bias);
  std::size_t headers = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &headers) != 0) return std::nullopt;
  for (std::size_t index = 0; index < headers; ++index) {
    GElf_Phdr header{};
    if (gelf_getphdr(elf, static_cast<int>(index), &header) == nullptr || header.p_type != PT_GNU_EH_FRAME) continue;
    const Elf_Data* data =
        elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset), header.p_filesz, ELF_T_BYTE);
    constexpr std::size_t kTable = 12, kEntry = 8;
    if (data == nullptr || data->d_size < kTable) return std::nullopt;
    const auto* bytes = static_cast<const char*>(data->d_buf);
    if (std::memcmp(bytes, kUsualForm.data(), kUsualForm.size()) != 0) return std::nullopt;
    const Dwarf_Addr base = bias + header.p_vaddr;
    std::size_t low = 0, high = (data->d_size - kTable) / kEntry;
    const auto start_of = [&](std::size_t entry) {
      std::int32_t relative = 0;
      std::memcpy(&relative, bytes + kTable + entry * kEntry, sizeof relative);
      return base + static_cast<Dwarf_Addr>(static_cast<std::int64_t>(relative));
    };
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      (start_of(middle) <= address ? low : high) = start_of(middle) <= address ? middle + 1 : middle;
    }
    return low == 0 ? std::nullopt : std::optional<Dwarf_Addr>(start_of(low - 1));
  }
  return std::nullopt;
}

// Where the entry of a PLT at `address` goes, a "jmp *displacement(%rip)"; `address` itself: it is none.
Dwarf_Addr past_plt(pid_t pid, Dwarf_Addr address) {
  CodeBytes code{};
  if (!read_live_memory(pid, address, code.data(), code.size())) return address;
  std::size_t at = has_code(code, 0, "\xf3\x0f\x1e\xfa") ? 4 : 0;  // endbr64
  if (code[at] == 0xf2) ++at;                                      // bnd
  if (!has_code(code, at, "\xff\x25")) return address;
  Dwarf_Addr target = 0;
  const Dwarf_Addr next = address + at + 6;
  const Dwarf_Addr entry = next + static_cast<Dwarf_Addr>(std::int64_t{number_at<std::int32_t>(code, at + 2)});
  return read_live_memory(pid, entry, &target, sizeof target) ? target : address;
}

// Whether the function at `address` is short and ends with a jump to the other one (a tail call).
bool ends_in(pid_t pid, Dwarf_Addr address, Dwarf_Addr function) {
  CodeBytes code{};
  if (!read_live_memory(pid, address, code.data(), code.size())) return false;
  const auto jumps = [&](std::size_t at, std::size_t length, std::int64_t distance) {
    return address + at + length + static_cast<Dwarf_Addr>(distance) == function;
  };
  for (std::size_t at = 0; at + 5 <= code.size(); ++at) {
    if (code[at] == 0xe9 && jumps(at, 5, number_at<std::int32_t>(code, at + 1))) return true;
    if (code[at] == 0xeb && jumps(at, 2, number_at<std::int8_t>(code, at + 1))) return true;
  }
  return false;
}

// Whether the instruction before `after` calls the function: directly, by a PLT or by its address in memory, perhaps by
// way of a function that ends in it.
bool is_call_of(pid_t pid, Dwarf_Addr after, Dwarf_Addr function) {
  constexpr Dwarf_Addr kLongest = 6;
  CodeBytes code{};
  if (after < kLongest || !read_live_memory(pid, after - kLongest, code.data(), kLongest)) return false;
  Dwarf_Addr target = after + static_cast<Dwarf_Addr>(std::int64_t{number_at<std::int32_t>(code, 2)});
  if (code[1] == 0xe8) {
    target = past_plt(pid, target);
  } else if (!has_code(code, 0, "\xff\x15") || !read_live_memory(pid, target, &target, sizeof target)) {
    return false;
  }
  return target == function || ends_in(pid, target, function);
}

}  // namespace

std::optional<std::uint64_t> find_frame_pointer(Dwfl* dwfl, pid_t pid, std::uint64_t stack_pointer,
                                                std::uint64_t program_counter) {
  for (int depth = 0; depth < kMostWithout; ++depth) {
    const Dwarf_Addr address = depth == 0 ? program_counter : program_counter - 1;
    Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
    const auto cfa = module != nullptr ? cfa_rule_at(module, address) : std::nullopt;
    if (!cfa) return std::nullopt;
    if (!cfa->by_frame_pointer) {
      stack_pointer += static_cast<std::uint64_t>(cfa->offset);
      if (!read_live_memory(pid, stack_pointer - sizeof program_counter, &program_counter, sizeof program_counter)) {
        return std::nullopt;
      }
      continue;
    }
    const auto function = start_of_function(module, address);
    if (!function || cfa->offset != kSavedAndReturn) return std::nullopt;
    std::vector<std::uint64_t> words(kMostInFrame / sizeof(std::uint64_t));
    while (!read_live_memory(pid, stack_pointer, words.data(), words.size() * sizeof words[0])) {
      if (words.size() < 4) return std::nullopt;
      words.resize(words.size() / 2);  // the stack ends before
    }
    for (std::size_t at = 0; at + 1 < words.size(); ++at) {
      const bool is_return =
          dwfl_addrmodule(dwfl, words[at + 1]) != nullptr && is_call_of(pid, words[at + 1], *function);
      if (is_return) return stack_pointer + at * sizeof words[0];
    }
    return std::nullopt;
  }
  return std::nullopt;
}

#else

std::optional<std::uint64_t> find_frame_pointer(Dwfl* /*dwfl*/, pid_t /*pid*/, std::uint64_t /*stack_pointer*/,
                                                std::uint64_t /*program_counter*/) {
  return std::nullopt;
}

#endif

}  // namespace mprun
