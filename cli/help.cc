#include "help.h"

namespace mprun {
namespace {

constexpr const char* kPurpose = "Run a function, a script or a program in many processes; never hang silently.\n";

constexpr const char* kFirst = R"(
  mprun -- python train.py              protect and watch a program as it is
  mprun -n 4 score.py:score a.png ...   call a function for every input
  mprun job.json                        run a job; mprun init writes one

Then:
  mprun resume RUN_DIR     finish a run that was cut short
  mprun report RUN_DIR     what happened in a run; --html FILE: as a page
  mprun inspect PID        why is this process tree stuck?
  mprun check JOB.json     what would run; launches nothing
  mprun doctor             what mprun can use here, and what limits it

Most used options:
  -n, --processes N|auto                   workers, or ranks
  --start-method fork|spawn|forkserver     how Python workers start
  --output DIR                             the run directory
  --retries N                              further attempts of a failed task
  --task-timeout S                         seconds a task may take

All options: mprun --help-all. A part of the manual: mprun help TOPIC
)";

constexpr const char* kUsage = R"(mprun [OPTIONS] JOB.json
       mprun [OPTIONS] SCRIPT.py[:FUNCTION] [ARGS...]
       mprun [OPTIONS] -- COMMAND [ARGS...]
       mprun init SCRIPT.py[:FUNCTION]
       mprun check JOB.json
       mprun [OPTIONS] resume RUN_DIR
       mprun [OPTIONS] submit --nodes N [--wait] JOB.json
       mprun merge RUN_DIR
       mprun report [--html FILE] [--trace FILE] [--junit FILE] RUN_DIR
       mprun inspect [--json | --dot] [--wait S] [--record FILE] PID
       mprun inspect --all [--json] [--wait S]
       mprun [OPTIONS] watch PID...
       mprun explain [ID]
       mprun help [TOPIC]
       mprun [OPTIONS] doctor
       mprun [OPTIONS] doctor SCRIPT.py [ARGS...]
       mprun [OPTIONS] doctor -- COMMAND [ARGS...])";

}  // namespace

std::string short_help() { return std::string(kPurpose) + kFirst; }

std::string full_help(const std::string& options) {
  return std::string(kPurpose) + "\nUsage: " + kUsage + "\n" + options;
}

}  // namespace mprun
