// The commands of mprun but for those that run a job or a program (core/run). main calls one of them once. Each prints
// what there is to say and returns mprun's exit code.
#pragma once

#include <cstdio>
#include <string>

#include "base/result.h"
#include "job/resolve.h"
#include "options.h"
#include "os/inheritance.h"

namespace mprun {

/// Prints "mprun: message" on stderr and returns the error's exit code.
int report_error(const Error& error);

/// Writes all of a text that the user has asked for: "the report". A reader that has had enough of it is no error.
[[nodiscard]] Result<void> print_text(const std::string& text, const char* what, std::FILE* to = stdout);

/// `mprun check`: the resolved plan on stdout; launches nothing.
int check_job(const Resolved& resolved);

/// `mprun doctor`, for the machine, a program or a script; starts its own guard.
int doctor(const CommandLine& line, const Inheritance& inheritance);

/// `mprun inspect PID`, `mprun inspect --all`: needs no guard, starts nothing; its exit code is the verdict.
int inspect(const CommandLine& line);

/// `mprun explain [ID]`: the page of a cause, or the list of all.
int explain(const CommandLine& line);

/// `mprun help [TOPIC]`: becomes `man` with parts of the manual pages, or prints the list of topics.
int help(const CommandLine& line);

/// `mprun init SCRIPT.py`: executes, in its own place, the Python that writes the spec.
int init(const CommandLine& line);

/// `mprun submit JOB.json`: hands the job to Slurm, and waits for it if asked to.
int submit(const CommandLine& line);

/// `mprun merge RUN_DIR`: joins the shards of a run; returns the exit code of the whole run.
int merge(const CommandLine& line);

/// `mprun report RUN_DIR`: reads only.
int report(const CommandLine& line);

}  // namespace mprun
