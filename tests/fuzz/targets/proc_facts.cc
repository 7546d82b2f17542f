// What /proc says of a process or thread: syscall, stat, status, schedstat.
#include "procfs/process_facts.h"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

/// In the kernel's format.
std::string text_of(const SyscallLine& line) {
  if (line.running) return "running\n";
  std::string text = std::to_string(line.number);
  const auto add = [&text](std::uint64_t number) {
    std::array<char, 24> hex{};
    std::snprintf(hex.data(), hex.size(), " 0x%" PRIx64, number);
    text += hex.data();
  };
  if (line.number >= 0) {
    for (const std::uint64_t argument : line.arguments) add(argument);
  }
  add(line.stack_pointer);
  add(line.program_counter);
  return text + "\n";
}

void check_syscall(std::string_view text) {
  const auto line = parse_syscall(text);
  if (line) require(parse_syscall(text_of(*line)) == line, "a line of a system call means one thing");
}

void check_stat(std::string_view text) {
  const auto stat = parse_stat(text);
  if (!stat) return;
  require(text.find(stat->name) != std::string_view::npos, "a name is as the text has it");
  const std::string again =
      std::to_string(stat->id) + " (" + stat->name + ") " + stat->state + " " + std::to_string(stat->parent) +
      " 0 0 0 0 " + (stat->forked ? "64" : "0") + " 0 0 0 0 0 0 0 0 0 0 0 0 " + std::to_string(stat->start_ticks) +
      " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 " + std::to_string(stat->exit_code) + "\n";
  const auto read = parse_stat(again);
  require(read && read->name == stat->name && read->parent == stat->parent && read->forked == stat->forked &&
              read->start_ticks == stat->start_ticks && read->exit_code == stat->exit_code,
          "a line of stat means one thing");
}

}  // namespace

void proc_facts(std::string_view input) {
  const auto kind = Bytes(input).take<std::uint8_t>();
  const std::string_view text = input.substr(std::min<std::size_t>(1, input.size()));
  if (kind == 's') check_syscall(text);
  if (kind == 't') check_stat(text);
  if (kind == 'u') {
    const auto status = parse_status(text);
    require(!status || text.find("SigBlk") != std::string_view::npos, "a status has all its fields");
  }
  if (kind == 'r') (void)parse_run_count(text);
}

}  // namespace mprun::fuzz
