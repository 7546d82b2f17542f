// mprun: the composition root. Parses the command line, then works under a guard (launch/guard.h).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "base/exit_codes.h"
#include "commands.h"
#include "run/job_run.h"
#include "run/program_run.h"
#include "run/resolve_request.h"
#include "run/tree_watch.h"

namespace mprun {

int report_error(const Error& error) {
  std::fprintf(stderr, "mprun: %s\n", error.message.c_str());
  return exit_code_of(error);
}

Result<void> print_text(const std::string& text, const char* what, std::FILE* to) {
  const bool written = std::fputs(text.c_str(), to) >= 0 && std::fflush(to) == 0;
  if (written || errno == EPIPE) return {};
  return internal_error(what + std::string(" could not be written: ") + std::strerror(errno));
}

namespace {

int code_of(const Result<int>& run) { return run ? *run : report_error(run.error()); }

int run(const std::vector<std::string>& args, const Inheritance& inheritance) {
  auto parsed = parse_command_line(args, current_directory());
  if (auto* exit = std::get_if<EarlyExit>(&parsed)) {
    std::fprintf(exit->exit_code == 0 ? stdout : stderr, "%s%s", exit->text.c_str(),
                 exit->text.empty() || exit->text.back() == '\n' ? "" : "\n");
    return exit->exit_code;
  }
  const auto& line = std::get<CommandLine>(parsed);
  signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error that we handle, not our end
  signal(SIGXFSZ, SIG_IGN);  // so is a file that has reached the limit of file sizes
  if (line.subcommand == Subcommand::kProgram) {
    return run_guarded(inheritance, true, [&](const Guard& guard) { return code_of(run_program(line, guard)); });
  }
  if (line.subcommand == Subcommand::kDoctor) return doctor(line, inheritance);
  if (line.subcommand == Subcommand::kInspect) return inspect(line);
  if (line.subcommand == Subcommand::kWatch) {
    return run_guarded(inheritance, false, [&](const Guard& guard) { return code_of(watch_trees(line, guard)); });
  }
  if (line.subcommand == Subcommand::kExplain) return explain(line);
  if (line.subcommand == Subcommand::kHelp) return help(line);
  if (line.subcommand == Subcommand::kReport) return report(line);
  if (line.subcommand == Subcommand::kMerge) return merge(line);
  if (line.subcommand == Subcommand::kSubmit) return submit(line);
  if (line.subcommand == Subcommand::kInit) return init(line);
  auto plan = make_plan(line);
  if (!plan) return report_error(plan.error());
  if (line.subcommand == Subcommand::kCheck) return check_job(plan->resolved);
  return run_guarded(inheritance, false,
                     [&](const Guard& guard) { return code_of(run_job(line, std::move(*plan), guard)); });
}

// Called by operator new. Nothing that allocates works any more, not even a report. What was received is in the files
// up to the last pulse, and the guard ends whatever runs.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kWords =
      "mprun: memory has run out; what was running is ended, what is recorded stays (mprun resume goes on)\n";
  (void)!write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(kExitInternal);
}

/// Keeps files that we open from getting the number of a closed standard descriptor: our messages would be written to
/// them. The replacement is as unusable as a closed one, and programs get theirs closed.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);  // the lowest free number
  }
}

}  // namespace

}  // namespace mprun

int main(int argc, char** argv) {
  std::set_new_handler(mprun::end_without_memory);
  const mprun::Inheritance inheritance = mprun::read_inheritance();
  mprun::fill_standard_descriptors();
  try {
    return mprun::run({argv + 1, argv + argc}, inheritance);
  } catch (const std::exception& error) {  // a bug of ours
    std::fprintf(stderr, "mprun: internal fault: %s\n", error.what());
    return mprun::kExitInternal;
  }
}
