#include "watch/stacks/python_harmless.h"

#include <algorithm>
#include <array>

#include "watch/stacks/python_wait_call.h"

namespace mprun {
namespace {

// Modules whose functions and classes change nothing for which a thread waits. Those of logging and warnings write.
constexpr std::array<std::string_view, 43> kHarmlessModules = {
    "_datetime",   "_json",     "_operator", "_psutil_linux", "_random",        "_statistics",
    "_string",     "calendar",  "datetime",  "decimal",       "fractions",      "functools",
    "genericpath", "itertools", "json",      "json.encoder",  "locale",         "logging",
    "math",        "numbers",   "operator",  "os.path",       "pathlib",        "pathlib._local",
    "platform",    "posixpath", "pprint",    "psutil",        "psutil._common", "psutil._pslinux",
    "random",      "re",        "resource",  "shutil",        "statistics",     "string",
    "textwrap",    "time",      "traceback", "tracemalloc",   "uuid",           "warnings",
    "zoneinfo"};
struct ModuleFunctions {
  std::string_view module;
  std::array<std::string_view, 32> names;
};
constexpr std::array kHarmlessFunctions = {
    ModuleFunctions{"builtins", {"abs",  "all", "any", "ascii",      "bin",        "chr",   "divmod", "format",
                                 "hash", "hex", "id",  "isinstance", "issubclass", "len",   "max",    "min",
                                 "oct",  "ord", "pow", "print",      "repr",       "round", "sorted", "sum"}},
    ModuleFunctions{"posix", {"access",  "cpu_count", "fstat",   "fspath", "getcwd",           "getloadavg",
                              "getpgid", "getpid",    "getppid", "getuid", "listdir",          "lstat",
                              "nice",    "readlink",  "scandir", "stat",   "statvfs",          "sched_getaffinity",
                              "sysconf", "times",     "uname",   "utime",  "get_terminal_size"}},
    ModuleFunctions{"os", {"getenv", "fspath", "fsencode", "fsdecode", "get_exec_path"}},
    ModuleFunctions{"sys", {"getsizeof", "getrefcount", "exc_info", "_current_frames", "getallocatedblocks"}},
    ModuleFunctions{"gc", {"get_count", "get_stats", "get_threshold", "get_objects", "isenabled"}},
    ModuleFunctions{"_thread", {"get_ident", "get_native_id"}},
    ModuleFunctions{
        "threading",
        {"active_count", "activeCount", "enumerate", "current_thread", "get_ident", "get_native_id", "main_thread"}},
    ModuleFunctions{"multiprocessing.context", {"cpu_count"}},
    ModuleFunctions{"socket", {"gethostname", "getfqdn"}},
    ModuleFunctions{"_socket", {"gethostname"}},
};
// Objects whose methods are harmless, unless their names are among those below.
constexpr std::array<std::string_view, 24> kHarmlessTypes = {"NoneType",
                                                             "bool",
                                                             "int",
                                                             "float",
                                                             "complex",
                                                             "str",
                                                             "bytes",
                                                             "bytearray",
                                                             "list",
                                                             "tuple",
                                                             "dict",
                                                             "set",
                                                             "frozenset",
                                                             "range",
                                                             "slice",
                                                             "collections.deque",
                                                             "_thread.lock",
                                                             "_thread.RLock",
                                                             "os.stat_result",
                                                             "time.struct_time",
                                                             "_io.TextIOWrapper",
                                                             "datetime.datetime",
                                                             "datetime.timedelta",
                                                             "datetime.date"};
// Objects that threads wait for, or that tell about them.
constexpr std::array<std::string_view, 13> kModulesOfWaits = {"threading",
                                                              "queue",
                                                              "socket",
                                                              "subprocess",
                                                              "concurrent.futures._base",
                                                              "concurrent.futures.thread",
                                                              "multiprocessing.pool",
                                                              "multiprocessing.process",
                                                              "multiprocessing.context",
                                                              "multiprocessing.queues",
                                                              "multiprocessing.synchronize",
                                                              "multiprocessing.sharedctypes",
                                                              "multiprocessing.connection"};
constexpr std::array<std::string_view, 27> kNamesAsking = {
    "done",  "running",  "cancelled", "result",   "exception",  "ready",  "successful", "empty",    "full",
    "qsize", "is_alive", "join",      "is_set",   "wait",       "locked", "value",      "get_lock", "name",
    "ident", "daemon",   "native_id", "exitcode", "returncode", "pid",    "acquire",    "poll",     "get_obj"};
// Methods that may let another thread go on, and those that change a collection or write.
constexpr std::array<std::string_view, 18> kNamesActing = {
    "get",    "get_nowait", "put",  "put_nowait", "set",        "notify",      "notify_all", "release", "send",
    "sendto", "sendall",    "recv", "close",      "write_text", "write_bytes", "touch",      "unlink",  "clear"};
// Methods that take from what a pipe or a socket holds: whoever waits for room there goes on when much has been taken.
constexpr std::array<std::string_view, 10> kNamesTaking = {
    "get", "get_nowait", "recv", "recv_bytes", "recv_into", "recvfrom", "read", "readline", "readlines", "read1"};
constexpr std::array<std::string_view, 18> kNamesChanging = {
    "append", "appendleft", "extend",     "insert", "add",     "update", "pop",         "popleft",   "popitem",
    "remove", "discard",    "setdefault", "sort",   "reverse", "rotate", "__setitem__", "increment", "inc"};
constexpr std::array<std::string_view, 12> kNamesWriting = {"print", "write",    "writelines", "flush",
                                                            "debug", "info",     "warning",    "warn",
                                                            "error", "critical", "log",        "exception"};
// The last of many task_done() lets a thread go on.
constexpr std::array<std::string_view, 10> kNamesDenied = {
    "kill", "terminate", "suspend", "resume", "task_done", "send_signal", "addHandler", "shutdown", "start", "cancel"};
// Methods of what is not known, such as results of other calls.
constexpr std::array<std::string_view, 36> kNamesOfAny = {
    "format",        "strip",       "rstrip",      "lstrip",         "split",       "upper",
    "lower",         "ljust",       "rjust",       "center",         "join",        "encode",
    "decode",        "replace",     "startswith",  "endswith",       "items",       "keys",
    "values",        "copy",        "count",       "isoformat",      "strftime",    "timestamp",
    "total_seconds", "memory_info", "cpu_percent", "memory_percent", "num_threads", "read",
    "readlines",     "done",        "is_alive",    "is_set",         "qsize",       "running"};
// Handlers of logging that only write.
constexpr std::array<std::string_view, 7> kLogHandlers = {
    "StreamHandler",       "_StderrHandler",           "FileHandler",  "NullHandler",
    "RotatingFileHandler", "TimedRotatingFileHandler", "SysLogHandler"};

}  // namespace

bool is_harmless_module(std::string_view module) { return !module.empty() && is_among(kHarmlessModules, module); }

bool is_harmless_function(std::string_view module, std::string_view name) {
  if (is_harmless_module(module)) return !is_among(kNamesDenied, name);
  return std::any_of(kHarmlessFunctions.begin(), kHarmlessFunctions.end(), [&](const ModuleFunctions& one) {
    return one.module == module && !name.empty() && is_among(one.names, name);
  });
}

bool is_method(std::string_view name, PythonMethods kind) {
  switch (kind) {
    case kAsks:
      return is_among(kNamesAsking, name);
    case kActs:
      return is_among(kNamesActing, name);
    case kChanges:
      return is_among(kNamesChanging, name);
    case kWrites:
      return is_among(kNamesWriting, name);
    case kTakes:
      return is_among(kNamesTaking, name);
    case kDenied:
      return is_among(kNamesDenied, name);
    case kHarmlessOfAny:
      return is_among(kNamesOfAny, name);
  }
  return false;
}

bool is_harmless_type(std::string_view type) { return is_among(kHarmlessTypes, type); }
bool has_waits(std::string_view module) { return is_among(kModulesOfWaits, module); }
bool is_log_handler(std::string_view type) { return is_among(kLogHandlers, type); }

}  // namespace mprun
