// The batch script of `mprun submit`: one mprun on each node of one allocation. Pure; called by cli/.
#pragma once

#include <string>
#include <vector>

namespace mprun {

struct BatchJob {
  std::string name;  ///< of the job
  int nodes = 1;
  std::string run_dir;                   ///< absolute, of the whole run
  std::string working_directory;         ///< where mprun is started
  std::vector<std::string> command;      ///< mprun and its words
  std::string partition, time, account;  ///< as sbatch takes them; empty: the cluster's defaults
  std::vector<std::string> options;      ///< more of sbatch's: "--mem=4G"
  bool end_together = false;             ///< the end of one mprun with a failure ends the others: ranks need each other
  bool outlives_nodes = false;           ///< when a node fails the others go on: they take over its tasks
};

/// The text of the script.
[[nodiscard]] std::string batch_script(const BatchJob& job);

/// `word`, quoted where a shell needs that to read it back.
[[nodiscard]] std::string shell_quoted(const std::string& word);

}  // namespace mprun
