# Writes OUTPUT, which defines MPRUN_COMMIT: the commit that SOURCE was built from, according to git; empty outside a
# repository. Run by every build; leaves OUTPUT alone if nothing has changed.
cmake_minimum_required(VERSION 3.25)  # run with -P, it would have no policies
set(commit "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -c safe.directory=* -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n\n#define MPRUN_COMMIT \"@commit@\"\n" @ONLY)
