// Shells that wait for a command. While bash or dash waits for a command of its script, it waits for any child in the
// kernel, but only the end of that command lets it go on; it takes note when one in the background ends. The command
// is the youngest child, or the last of a pipeline, as a shell starts nothing while it waits. Two builtins wait for
// older children: `wait`, for which dash sleeps in sigsuspend (src/jobs.c, waitproc) and which bash has on its stack,
// as it exports its functions; and `fg`, which needs job control: then children have process groups of their own.
#include <algorithm>

#include "watch/judge/wait.h"

namespace mprun {
namespace {

// A process may get a lower number than an older one when the numbers have been used up.
constexpr pid_t kNearNumber = 10000;

std::optional<StatLine> stat_of(ProcSource* proc, pid_t pid) {
  const auto text = proc->read(std::to_string(pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

bool is_younger(const StatLine& one, const StatLine& other) {
  if (one.start_ticks != other.start_ticks) return one.start_ticks > other.start_ticks;
  return one.id > other.id;
}

// nullopt: it is not known which one that is.
std::optional<StatLine> youngest_of(ProcSource* proc, const std::vector<pid_t>& children) {
  std::vector<StatLine> found;
  for (const pid_t child : children) {
    const auto stat = stat_of(proc, child);
    if (!stat) return std::nullopt;
    found.push_back(*stat);
  }
  std::sort(found.begin(), found.end(), is_younger);
  const bool is_doubtful = found[0].start_ticks == found[1].start_ticks && found[0].id - found[1].id >= kNearNumber;
  return is_doubtful ? std::nullopt : std::optional(found[0]);
}

std::string program_of(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const std::string path = snapshot->proc()->link(std::to_string(process.speaker) + "/exe").value_or("");
  return path.substr(path.rfind('/') + 1);
}

// What executes commands waits for one, and not the builtin. Bash's jobs.c and execute_cmd.c, as of 5.2.
bool waits_for_command_of_bash(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto frames = snapshot->native_frames(thread);
  const auto waits = std::find(frames.begin(), frames.end(), "wait_for (bash)");
  return waits != frames.end() && waits + 1 != frames.end() && *(waits + 1) == "execute_command_internal (bash)";
}

}  // namespace

bool is_known_shell(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const std::string program = program_of(process, snapshot);
  return program == "bash" || program == "dash";
}

std::optional<pid_t> command_of_shell(const ThreadSample& thread, const TreeSnapshot::Process& process,
                                      TreeSnapshot* snapshot) {
  const bool one_has_ended = !process.ended_children.empty();  // perhaps the command, so that the shell goes on
  if (process.children.size() < 2 || one_has_ended || !is_known_shell(process, snapshot)) return std::nullopt;
  const auto shell = stat_of(snapshot->proc(), process.pid);
  const auto youngest = youngest_of(snapshot->proc(), process.children);
  const bool may_have_job_control = !shell || !youngest || youngest->group != shell->group;
  if (may_have_job_control) return std::nullopt;
  const bool is_dash = program_of(process, snapshot) == "dash";
  return is_dash || waits_for_command_of_bash(thread, snapshot) ? std::optional(youngest->id) : std::nullopt;
}

}  // namespace mprun
