// What mprun does: run a job, check a spec, run a program. Each is called once by main and returns
// mprun's exit code, having printed what there is to say.
#pragma once

#include "base/result.h"
#include "job/resolve.h"
#include "launch/guard.h"
#include "options.h"

namespace mprun {

/// DESIGN's exit code for an error that ends mprun.
[[nodiscard]] int exit_code_of(const Error& error);

/// Prints "mprun: message" on stderr and returns the error's exit code.
int report_error(const Error& error);

/// Reads all layers of a job's spec and resolves them.
[[nodiscard]] Result<Resolved> resolve_command_line(const CommandLine& line);

/// `mprun check`: the resolved plan on stdout; launches nothing.
int check_job(const Resolved& resolved);

/// `mprun JOB.json`: in the supervisor's process.
int run_job(const CommandLine& line, Resolved resolved, const Guard& guard);

/// `mprun -- COMMAND`: in the supervisor's process.
int run_program(const CommandLine& line, const Guard& guard);

}  // namespace mprun
