// mprun: the composition root. Parses the command line, then works under a guard (launch/guard.h).
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>

#include "commands.h"
#include "launch/environment.h"
#include "procfs/cpu_room.h"
#include "procfs/memory_room.h"

namespace mprun {

std::string current_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

int report_error(const Error& error) {
  std::fprintf(stderr, "mprun: %s\n", error.message.c_str());
  return exit_code_of(error);
}

namespace {

/// ~/.config/mprun/config.json where it exists; never anything from the working directory.
Result<std::optional<Document>> user_layer(const Environment& env, const std::string& directory) {
  std::string folder;
  if (const auto it = env.find("XDG_CONFIG_HOME"); it != env.end() && !it->second.empty()) {
    folder = it->second;
  } else if (const auto home = env.find("HOME"); home != env.end()) {
    folder = home->second + "/.config";
  }
  const std::string path = folder + "/mprun/config.json";
  std::error_code error;
  if (folder.empty() || !std::filesystem::exists(path, error)) return std::optional<Document>();
  auto document = read_document(path, directory);
  if (!document) return document.error();
  document->lenient = true;
  return std::optional(std::move(*document));
}

int run(const std::vector<std::string>& args, const Inheritance& inheritance) {
  auto parsed = parse_command_line(args, current_directory());
  if (auto* exit = std::get_if<EarlyExit>(&parsed)) {
    std::fprintf(exit->exit_code == 0 ? stdout : stderr, "%s%s", exit->text.c_str(),
                 exit->text.empty() || exit->text.back() == '\n' ? "" : "\n");
    return exit->exit_code;
  }
  const auto& line = std::get<CommandLine>(parsed);
  signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error that we handle, not our end
  if (line.subcommand == Subcommand::kProgram) {
    return run_guarded(inheritance, true, [&](const Guard& guard) { return run_program(line, guard); });
  }
  if (line.subcommand == Subcommand::kDoctor) return doctor(line, inheritance);
  if (line.subcommand == Subcommand::kInspect) return inspect(line);
  if (line.subcommand == Subcommand::kExplain) return explain(line);
  if (line.subcommand == Subcommand::kReport) return report(line);
  if (line.subcommand == Subcommand::kMerge) return merge(line);
  if (line.subcommand == Subcommand::kSubmit) return submit(line);
  if (line.subcommand == Subcommand::kInit) return init(line);
  auto plan = make_plan(line);
  if (!plan) return report_error(plan.error());
  if (line.subcommand == Subcommand::kCheck) return check_job(plan->resolved);
  return run_guarded(inheritance, false, [&](const Guard& guard) { return run_job(line, std::move(*plan), guard); });
}

Surroundings surroundings() {
  Surroundings around;
  around.current_directory = current_directory();
  around.env = own_environment();
  around.usable_cpus = cpu_room().cpus;
  around.allocation = recognise(around.env);
  if (around.allocation.cpus && *around.allocation.cpus < around.usable_cpus) {
    around.usable_cpus = *around.allocation.cpus;
    around.cpus_source = "the CPUs of " + around.allocation.cpus_source;
  }
  around.stdin_is_terminal = isatty(STDIN_FILENO) == 1;
  const MemoryRoom memory = memory_room();
  around.memory_bytes = memory.bytes;
  around.memory_source = memory.source;
  if (const auto it = around.env.find("MPRUN_DEVICE_ROOT"); it != around.env.end()) around.device_root = it->second;
  return around;
}

Result<Resolved> resolve_aloud(const std::vector<Document>& layers, const Surroundings& around) {
  auto resolved = resolve(layers, around);
  for (const std::string& warning : resolved ? resolved->warnings : std::vector<std::string>()) {
    std::fprintf(stderr, "mprun: warning: %s\n", warning.c_str());
  }
  return resolved;
}

}  // namespace

Result<Resolved> resolve_recorded(Document recorded, const CommandLine& line) {
  recorded.lenient = true;
  return resolve_aloud({default_layer(), std::move(recorded), line.layer}, surroundings());
}

Result<Resolved> resolve_command_line(const CommandLine& line) {
  const Surroundings around = surroundings();
  std::vector<Document> layers{default_layer()};
  auto user = user_layer(around.env, around.current_directory);
  if (!user) return user.error();
  if (*user) layers.push_back(std::move(**user));
  if (!line.spec_path.empty()) {
    auto spec = read_document(line.spec_path, around.current_directory);
    if (!spec) return spec.error();
    layers.push_back(std::move(*spec));
  }
  layers.push_back(line.layer);
  return resolve_aloud(layers, around);
}

namespace {

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
