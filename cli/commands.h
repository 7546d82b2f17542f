// What mprun does: run a job, check a spec, run a program, examine one, look at one that runs. Each is called once by
// main and returns mprun's exit code, having printed what there is to say.
#pragma once

#include <functional>

#include "base/result.h"
#include "job/resolve.h"
#include "launch/environment.h"
#include "launch/guard.h"
#include "options.h"
#include "resume.h"
#include "wire/notes.h"

namespace mprun {

/// Where mprun was started.
[[nodiscard]] std::string current_directory();

/// The exit code for an error that ends mprun (mprun(1), EXIT STATUS).
[[nodiscard]] int exit_code_of(const Error& error);

/// Prints "mprun: message" on stderr and returns the error's exit code.
int report_error(const Error& error);

/// Reads all layers of a job's spec and resolves them.
[[nodiscard]] Result<Resolved> resolve_command_line(const CommandLine& line);

/// Resolves the job.json of a run directory, which has all fields, and what the command line sets beside.
[[nodiscard]] Result<Resolved> resolve_recorded(Document recorded, const CommandLine& line);

/// `mprun check`: the resolved plan on stdout; launches nothing.
int check_job(const Resolved& resolved);

/// `mprun JOB.json`, `mprun resume`: in the supervisor's process.
int run_job(const CommandLine& line, Plan plan, const Guard& guard);

/// What `mprun doctor` changes about the run of a program.
struct ProgramObserver {
  Environment environment;                       ///< in place of mprun's own
  bool stdout_to_stderr = false;                 ///< keeps the program's output out of ours
  std::function<bool(const AdapterNote&)> take;  ///< true: the note is dealt with, and not shown
  bool started = false;                          ///< set by run_program: the program ran
};

/// `mprun -- COMMAND`: in the supervisor's process.
int run_program(const CommandLine& line, const Guard& guard, ProgramObserver* observer = nullptr);

/// `mprun doctor`, of the machine, of a program or of a script; does its own guarding.
int doctor(const CommandLine& line, const Inheritance& inheritance);

/// `mprun inspect PID`: needs no guard, starts nothing.
int inspect(const CommandLine& line);

/// `mprun explain [ID]`: the page of a cause, or the list of all.
int explain(const CommandLine& line);

/// `mprun init SCRIPT.py`: becomes the Python that writes the spec.
int init(const CommandLine& line);

/// `mprun submit JOB.json`: hands the job to Slurm, and waits for it if that is asked for.
int submit(const CommandLine& line);

/// `mprun merge RUN_DIR`: joins the shards of a run; the exit code is that of the whole.
int merge(const CommandLine& line);

/// `mprun report RUN_DIR`: reads only.
int report(const CommandLine& line);

/// What `mprun report --junit` writes, for a job with that option. kUsage errors name the option.
[[nodiscard]] Result<void> write_junit(const std::string& run_dir, const std::string& path);

}  // namespace mprun
