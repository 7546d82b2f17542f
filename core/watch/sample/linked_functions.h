// Which functions of libc a process may call, by the names in the images that it has mapped.
#pragma once

#include <string_view>

#include "procfs/process_facts.h"

namespace mprun {

/// Whether an image has the name of `function` without defining it, or may have. `tid`: a living thread of the process;
/// `maps`: its mappings. False of a library with a megabyte of names, as libtorch has, and of what makes system calls
/// itself.
[[nodiscard]] bool may_call(std::string_view function, ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps);

}  // namespace mprun
