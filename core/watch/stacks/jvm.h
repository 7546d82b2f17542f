// What a HotSpot virtual machine knows of its threads, read from outside: which of them it runs for itself, and which
// monitor of a Java object each waits for. libjvm.so exports a table of its structures for jhsdb
// (src/hotspot/share/runtime/vmStructs.cpp), so no offset is written down here. Nothing is stopped or disturbed. Used
// by the judge.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "procfs/process_facts.h"

namespace mprun {

/// A thread that runs Java, or that belongs to the machine and could.
struct JvmThread {
  bool is_helper = false;         ///< a thread of the machine itself, such as a compiler's
  bool enters_monitor = false;    ///< it waits for the monitor of an object: `synchronized`
  bool waits_for_notify = false;  ///< it is in Object.wait()
  bool is_parked = false;         ///< it waits for something of java.util.concurrent
  bool has_returned = false;      ///< its main method has: it waits until no other thread keeps the machine up
  pid_t owner = 0;                ///< enters_monitor: the thread that has the monitor; 0: not known
};

struct Jvm {
  std::map<pid_t, JvmThread> threads;  ///< by TID; the machine does not know the others as Java threads
};

/// nullopt: there is none, or it does not show its threads (JDK 9 and older, or it is just starting).
[[nodiscard]] std::optional<Jvm> read_jvm(ProcSource* proc, pid_t pid, const std::vector<Mapping>& maps);

/// True if a signal that asks the machine to end (SIGHUP, SIGINT, SIGTERM) runs no code of the program: it has neither
/// a shutdown hook nor a handler of its own. Not known counts as false.
[[nodiscard]] bool jvm_only_ends(ProcSource* proc, pid_t pid, const std::vector<Mapping>& maps);

}  // namespace mprun
