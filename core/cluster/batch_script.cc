#include "cluster/batch_script.h"

#include <algorithm>
#include <string_view>

namespace mprun {
namespace {

/// Whether the options themselves say how much of a node is wanted.
bool says_how_much(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    for (const std::string_view name : {"--exclusive", "--cpus-per-task", "-c", "--oversubscribe", "-s", "--mincpus"}) {
      if (option.compare(0, name.size(), name) == 0) return true;
    }
    return false;
  });
}

/// sbatch splits words at blanks, and handles quotes as a shell does.
std::string directive(const std::string& name, const std::string& value) {
  return value.empty() ? "" : "#SBATCH --" + name + "=" + shell_quoted(value) + "\n";
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string batch_script(const BatchJob& job) {
  std::string text =
      "#!/bin/bash\n"
      "# Made by mprun submit: one mprun on each node, each with its shard of the tasks.\n"
      "# Requeued or submitted again, it goes on with what is not done yet.\n";
  text += directive("job-name", job.name);
  text += directive("nodes", std::to_string(job.nodes)) + directive("ntasks-per-node", "1");
  if (!says_how_much(job.options)) text += "#SBATCH --exclusive\n";
  text += directive("partition", job.partition) + directive("time", job.time) + directive("account", job.account);
  text += directive("chdir", job.working_directory);
  text += directive("output", job.run_dir + "/slurm-%j.out");
  text +=
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n"
      "# A minute before the time limit, every mprun is asked to stop and to keep what it has.\n"
      "#SBATCH --signal=USR2@60\n";
  if (job.outlives_nodes) text += "# When a node fails, the others take over its tasks.\n#SBATCH --no-kill\n";
  for (const std::string& option : job.options) text += "#SBATCH " + option + "\n";
  text +=
      "\n"
      "# srun does not take this over by itself.\n"
      "if [[ -n ${SLURM_CPUS_PER_TASK:-} ]]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi\n"
      "\n"
      "exec srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=";
  text += job.end_together ? "1" : "0";
  if (job.outlives_nodes) text += " --no-kill";
  text += " \\\n ";
  for (const std::string& word : job.command) text += " " + shell_quoted(word);
  return text + "\n";
}

}  // namespace mprun
