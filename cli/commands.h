// The commands of mprun: run a job, check a spec, run a program, examine one, inspect a running one. main calls one of
// them once. Each prints what there is to say and returns mprun's exit code.
#pragma once

#include <functional>

#include "base/exit_codes.h"
#include "job/resolve.h"
#include "launch/environment.h"
#include "launch/guard.h"
#include "options.h"
#include "resume.h"
#include "wire/notes.h"

namespace mprun {

/// Where mprun was started.
[[nodiscard]] std::string current_directory();

/// Prints "mprun: message" on stderr and returns the error's exit code.
int report_error(const Error& error);

/// Reads all layers of a job's spec and resolves them.
[[nodiscard]] Result<Resolved> resolve_command_line(const CommandLine& line);

/// Resolves the job.json of a run directory, which has all fields, together with what the command line sets.
[[nodiscard]] Result<Resolved> resolve_recorded(Document recorded, const CommandLine& line);

/// `mprun check`: the resolved plan on stdout; launches nothing.
int check_job(const Resolved& resolved);

/// `mprun JOB.json`, `mprun resume`: runs in the supervisor's process.
int run_job(const CommandLine& line, Plan plan, const Guard& guard);

/// What `mprun doctor` changes when it runs a program.
struct ProgramObserver {
  Environment environment;                       ///< replaces mprun's own
  bool stdout_to_stderr = false;                 ///< keeps the program's output out of ours
  std::function<bool(const AdapterNote&)> take;  ///< true: the note is handled, and not shown
  bool started = false;                          ///< set by run_program: the program ran
};

/// `mprun -- COMMAND`: runs in the supervisor's process.
int run_program(const CommandLine& line, const Guard& guard, ProgramObserver* observer = nullptr);

/// `mprun doctor`, for the machine, a program or a script; starts its own guard.
int doctor(const CommandLine& line, const Inheritance& inheritance);

/// `mprun inspect PID`: needs no guard, starts nothing.
int inspect(const CommandLine& line);

/// `mprun explain [ID]`: the page of a cause, or the list of all.
int explain(const CommandLine& line);

/// `mprun init SCRIPT.py`: executes, in its own place, the Python that writes the spec.
int init(const CommandLine& line);

/// `mprun submit JOB.json`: hands the job to Slurm, and waits for it if asked to.
int submit(const CommandLine& line);

/// `mprun merge RUN_DIR`: joins the shards of a run; returns the exit code of the whole run.
int merge(const CommandLine& line);

/// `mprun report RUN_DIR`: reads only.
int report(const CommandLine& line);

/// Writes what `mprun report --junit` writes, for a job with that option. kUsage errors name the option.
[[nodiscard]] Result<void> write_junit(const std::string& run_dir, const std::string& path);

}  // namespace mprun
