// What a user asks of a job or a program, however it was asked: made by cli/ from the command line, read by core/run.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "json/document.h"

namespace mprun {

struct JobRequest {
  std::string spec_path;             ///< JOB.json, "-" for standard input; empty: the layer has the script and the rest
  Document layer;                    ///< what the options set
  std::vector<std::string> program;  ///< of `mprun -- COMMAND` and `mprun doctor -- COMMAND`
  std::vector<pid_t> pids;           ///< of `mprun watch` and `mprun inspect`: the first processes of the trees
  std::string run_dir;               ///< of `mprun resume`, `mprun report` and `mprun merge`
  bool continues_run = false;        ///< the run in `run_dir` (`mprun resume`)
  bool resume = false;               ///< continue the run in the output directory if there is one
  bool retry_failed = false, accept_changes = false;  ///< of a resumed run
  bool quiet = false, verbose = false, explain = false, summary_json = false;
  bool log_events = false;  ///< -d events
  std::string log_level;    ///< --log-level, as LogLevels::set() takes it; empty: not given
  LogFormat log_format = LogFormat::kText;
  std::string junit;  ///< a file to be written; empty: none
};

}  // namespace mprun
