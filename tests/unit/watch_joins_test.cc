// Names of waiting calls, as a person would say them, from Python stacks.
#include "watch/causes/joins.h"

#include <gtest/gtest.h>

#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

const std::string kPythonLib = "/usr/lib/python3.11/";
const std::string kTorchPackages = "/usr/lib/python3/dist-packages/torch/";
const PythonFrame kUser{"/home/anna/train.py", 42, "main"};
const PythonFrame kUserModule{"/home/anna/train.py", 60, "<module>"};

// What the user's line called, given these library frames below it.
std::string named(std::vector<PythonFrame> inner) {
  inner.push_back(kUser);
  inner.push_back(kUserModule);
  const auto call = name_call(inner);
  if (!call) return "nothing";
  EXPECT_EQ(call->file, kUser.file);
  EXPECT_EQ(call->line, kUser.line);
  return call->call;
}

TEST(Joins, NamesThoseOfMultiprocessing) {
  const PythonFrame lock{kPythonLib + "threading.py", 1112, "Thread.join"};
  EXPECT_EQ(named({lock, {kPythonLib + "multiprocessing/pool.py", 665, "Pool.join"}}),
            "multiprocessing.pool.Pool.join");
  const PythonFrame condition{kPythonLib + "threading.py", 320, "Condition.wait"};
  EXPECT_EQ(named({condition,
                   {kPythonLib + "multiprocessing/pool.py", 765, "ApplyResult.wait"},
                   {kPythonLib + "multiprocessing/pool.py", 768, "ApplyResult.get"}}),
            "multiprocessing.pool.AsyncResult.get");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/pool.py", 768, "ApplyResult.get"},
                   {kPythonLib + "multiprocessing/pool.py", 367, "Pool.map"}}),
            "multiprocessing.pool.Pool.map");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/popen_fork.py", 27, "Popen.poll"},
                   {kPythonLib + "multiprocessing/popen_fork.py", 43, "Popen.wait"},
                   {kPythonLib + "multiprocessing/process.py", 149, "BaseProcess.join"}}),
            "multiprocessing.Process.join");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/connection.py", 378, "Connection._recv"},
                   {kPythonLib + "multiprocessing/queues.py", 103, "Queue.get"}}),
            "multiprocessing.Queue.get");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/synchronize.py", 95, "SemLock.__enter__"}}),
            "multiprocessing.SemLock.__enter__");
}

TEST(Joins, NamesMethodsOfProxies) {
  const PythonFrame asks{"/usr/lib/python3.11/multiprocessing/managers.py", 818, "BaseProxy._callmethod"};
  EXPECT_EQ(named({asks, {"<string>", 2, "get"}}), "multiprocessing.managers.BaseProxy.get");
  EXPECT_EQ(name_call({asks, {"<string>", 2, "<module>"}})->line, 2) << "python -c";
}

TEST(Joins, NamesThoseOfExecutors) {
  const PythonFrame join{kPythonLib + "threading.py", 1112, "Thread.join"};
  EXPECT_EQ(named({join,
                   {kPythonLib + "concurrent/futures/thread.py", 235, "ThreadPoolExecutor.shutdown"},
                   {kPythonLib + "concurrent/futures/_base.py", 647, "Executor.__exit__"}}),
            "concurrent.futures.Executor.shutdown");
  EXPECT_EQ(named({join, {kPythonLib + "concurrent/futures/process.py", 851, "ProcessPoolExecutor.shutdown"}}),
            "concurrent.futures.ProcessPoolExecutor.shutdown");
  EXPECT_EQ(named({{kPythonLib + "threading.py", 320, "Condition.wait"},
                   {kPythonLib + "concurrent/futures/_base.py", 451, "Future.result"}}),
            "concurrent.futures.Future.result");
}

TEST(Joins, NamesWhatTheLibraryRunsInAThreadOfItsOwn) {
  const std::string file = kPythonLib + "threading.py";
  const auto timer = name_call({{file, 324, "Condition.wait"},
                                {file, 629, "Event.wait"},
                                {file, 1378, "Timer.run"},
                                {file, 1038, "Thread._bootstrap_inner"},
                                {file, 995, "Thread._bootstrap"}});
  ASSERT_TRUE(timer);
  EXPECT_EQ(timer->call, "threading.Timer.run");
  EXPECT_EQ(timer->line, 1378);
  EXPECT_EQ(name_call({{file, 995, "Thread._bootstrap"}})->call, "threading.Thread._bootstrap");
}

TEST(Joins, NamesTheFunctionThatADecoratorHasWrapped) {
  const std::string file = kTorchPackages + "distributed/distributed_c10d.py";
  const std::string logger = kTorchPackages + "distributed/c10d_logger.py";
  const PythonFrame outer{logger, 81, "_exception_logger.<locals>.wrapper"};
  const PythonFrame inner{logger, 95, "_time_logger.<locals>.wrapper"};
  EXPECT_EQ(named({{file, 860, "_store_based_barrier"}, {file, 1710, "init_process_group"}, inner, outer}),
            "torch.distributed.distributed_c10d.init_process_group");
  EXPECT_EQ(named({outer}), "torch.distributed.c10d_logger._exception_logger.<locals>.wrapper");
}

TEST(Joins, NamesThoseOfTorch) {
  const PythonFrame wait{kPythonLib + "multiprocessing/connection.py", 930, "wait"};
  const PythonFrame join{kTorchPackages + "multiprocessing/spawn.py", 109, "ProcessContext.join"};
  const PythonFrame start{kTorchPackages + "multiprocessing/spawn.py", 198, "start_processes"};
  EXPECT_EQ(named({wait, join, start, {kTorchPackages + "multiprocessing/spawn.py", 240, "spawn"}}),
            "torch.multiprocessing.spawn");
  EXPECT_EQ(named({wait, join, start}), "torch.multiprocessing.start_processes");
  EXPECT_EQ(named({wait, join}), "torch.multiprocessing.ProcessContext.join");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/queues.py", 103, "Queue.get"},
                   {kTorchPackages + "utils/data/dataloader.py", 1163, "_MultiProcessingDataLoaderIter._try_get_data"},
                   {kTorchPackages + "utils/data/dataloader.py", 628, "_BaseDataLoaderIter.__next__"}}),
            "torch.utils.data.DataLoader: _BaseDataLoaderIter.__next__");
}

// No user code is on the stack: the outermost frame is what waits.
TEST(Joins, NamesExitHandlers) {
  const PythonFrame lock{kPythonLib + "threading.py", 1132, "Thread._wait_for_tstate_lock"};
  const auto at_exit = [&](const std::string& file, const std::string& function) {
    const auto call = name_call({lock, {kPythonLib + file, 31, function}});
    EXPECT_TRUE(call);
    EXPECT_EQ(call->file, kPythonLib + file);
    EXPECT_EQ(call->line, 31);
    return call->call;
  };
  EXPECT_EQ(at_exit("threading.py", "_shutdown"), "the exit handler threading._shutdown");
  EXPECT_EQ(at_exit("multiprocessing/util.py", "_exit_function"),
            "the exit handler multiprocessing.util._exit_function");
  EXPECT_EQ(at_exit("concurrent/futures/thread.py", "_python_exit"),
            "the exit handler concurrent.futures.thread._python_exit");
  EXPECT_EQ(at_exit("concurrent/futures/process.py", "_python_exit"),
            "the exit handler concurrent.futures.process._python_exit");
}

TEST(Joins, LeavesALineThatWaitsByItselfWithoutACall) {
  EXPECT_EQ(named({}), "");
  const auto call = name_call({{"<string>", 3, "f"}, {kPythonLib + "threading.py", 975, "Thread.run"}});
  ASSERT_TRUE(call);
  EXPECT_EQ(call->call, "");
  EXPECT_EQ(call->file, "<string>");
}

TEST(Joins, TakesTheInnermostLineOfTheUser) {
  const auto call = name_call({{kPythonLib + "queue.py", 171, "Queue.get"},
                               {"/home/anna/work.py", 7, "Worker.run"},
                               {kPythonLib + "threading.py", 1038, "Thread._bootstrap_inner"},
                               kUser});
  ASSERT_TRUE(call);
  EXPECT_EQ(call->call, "queue.Queue.get");
  EXPECT_EQ(call->file, "/home/anna/work.py");
  EXPECT_EQ(call->line, 7);
}

TEST(Joins, SaysNothingOfAThreadThatExecutesNoPython) { EXPECT_FALSE(name_call({})); }

TEST(Joins, KnowsModulesByTheirFiles) {
  EXPECT_EQ(named({{"<frozen importlib._bootstrap>", 1178, "_find_and_load"}}), "importlib._bootstrap._find_and_load");
  EXPECT_EQ(named({{kPythonLib + "asyncio/__init__.py", 1, "run"}}), "asyncio.run");
  EXPECT_EQ(named({{"/home/anna/venv/lib/python3.12/site-packages/joblib/parallel.py", 1, "Parallel.__call__"}}),
            "joblib.parallel.Parallel.__call__");
  EXPECT_EQ(named({{kPythonLib + "multiprocessing/pool_of_mine.py", 1, "f"}}), "multiprocessing.pool_of_mine.f")
      << "no known name, though one begins so";
}

// Names are read from another process's memory.
TEST(Joins, MakesSomethingOfNonsense) {
  for (const char* file : {"", "<frozen ", "<frozen >", "/lib/python3.", "/lib/python3.11", "/dist-packages/",
                           "/site-packages/.py", "/__init__.py", ".py"}) {
    EXPECT_TRUE(name_call({{file, -1, ""}})) << file;
    EXPECT_TRUE(name_call({{file, -1, ""}, kUser})) << file;
  }
}

TEST(Joins, TellsLibrariesFromTheUsersFiles) {
  for (const std::string& file :
       {kPythonLib + "threading.py", kTorchPackages + "__init__.py", std::string("<frozen runpy>"),
        std::string("/opt/env/lib/python3.12/site-packages/a.py")}) {
    EXPECT_TRUE(is_library_file(file)) << file;
  }
  for (const char* file : {"/home/anna/lib/train.py", "train.py", "<string>", "<stdin>", "<frozen", ""}) {
    EXPECT_FALSE(is_library_file(file)) << file;
  }
}

}  // namespace
}  // namespace mprun
