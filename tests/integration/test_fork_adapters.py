"""The Python side of the fork hooks: torch, MindSpore, OpenCV, seeds, and the switches of all adapters.

MindSpore and OpenCV cannot be installed here: the tests create packages with the same interface.
"""
from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import harness
from harness import RunCommand

PYTHON = harness.MPRUN_PYTHON


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# --- torch -------------------------------------------------------------------------------------

CUDA_IN_PARENT = """
import os, sys
import torch

torch.cuda._initialized = True  # as after the parent's first use of a GPU
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    print("available", torch.cuda.is_available(), torch.cuda.device_count(), repr(os.environ.get("CUDA_VISIBLE_DEVICES")))
    print(torch.ones(2).sum().item(), torch._C._get_default_device())
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        print("error:", error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
print("parent", torch.cuda._initialized, repr(os.environ.get("CUDA_VISIBLE_DEVICES")))
"""


def test_cuda_used_before_the_fork_gets_a_clear_error(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {"uses_gpu.py": CUDA_IN_PARENT})
    lines = run_mprun("--", PYTHON, "uses_gpu.py").check().stdout.splitlines()
    assert lines[:2] == ["available False 0 ''", "2.0 cpu"]
    assert lines[2].startswith("error: CUDA was initialised before this process was forked")
    assert "start method spawn" in lines[2]
    assert lines[3] == "parent True None"


def test_a_child_of_a_parent_without_cuda_is_left_alone(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {"uses_gpu.py": CUDA_IN_PARENT.replace("torch.cuda._initialized = True", "pass")})
    out = run_mprun("--", PYTHON, "uses_gpu.py").check().stdout
    assert "None" in out.splitlines()[0] and "CUDA was initialised before" not in out


def test_the_torch_adapter_can_be_switched_off(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {"uses_gpu.py": CUDA_IN_PARENT.replace("except RuntimeError", "except Exception")})
    for switch in (["--set", 'adapters.torch="off"'], []):
        env = {} if switch else {"MPRUN_ADAPTERS": "-torch"}
        out = run_mprun(*switch, "--", PYTHON, "uses_gpu.py", env=env).check().stdout
        assert "CUDA was initialised before" not in out and "None" in out.splitlines()[0]


AUTOGRAD = """
import os, sys
import torch

torch.set_num_threads(2)

def gradient():
    x = torch.ones(400, 400, requires_grad=True)
    (x @ x).sum().backward()
    return x.grad.sum().item()

mine = gradient()
pid = os.fork()
if pid == 0:
    try:
        os._exit(0 if gradient() == mine else 1)
    except RuntimeError as refusal:
        print(refusal, file=sys.stderr, flush=True)
        os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_autograd_works_on_both_sides_of_a_fork(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {"autograd.py": AUTOGRAD})
    run = run_mprun("--", PYTHON, "autograd.py")
    refusal = re.search(r"Unable to handle autograd's threading in combination with fork.*", run.stderr)
    if refusal and int(metadata.version("torch").split(".")[0]) >= 2:
        pytest.skip(f"torch refuses: {refusal[0]}")
    run.check()


# --- MindSpore and OpenCV ----------------------------------------------------------------------

MINDSPORE = {
    "mindspore/__init__.py": """
from mindspore import _c_expression

_context = {"device_target": "Ascend"}

def get_context(key):
    return _context[key]

def set_context(**values):
    _context.update(values)
""",
    "mindspore/_c_expression.py": """
import types

calls = []
fork_utils = types.SimpleNamespace(
    prepare_before_fork=lambda: calls.append("prepare"),
    parent_at_fork=lambda: calls.append("parent"),
    child_at_fork=lambda: calls.append("child"),
)
""",
    "mindspore/multiprocessing.py": """
import multiprocessing as mp
from mindspore._c_expression import fork_utils


class Process(mp.Process):
    def run(self):
        fork_utils.child_at_fork()
        super().run()

    def start(self):
        fork_utils.prepare_before_fork()
        super().start()
        fork_utils.parent_at_fork()
""",
}

USE_MINDSPORE = """
import multiprocessing, os, sys
import mindspore
from mindspore._c_expression import calls

def tell():
    print("child", calls, mindspore.get_context("device_target"), flush=True)

multiprocessing.set_start_method("fork")
if sys.argv[1] == "own":
    from mindspore.multiprocessing import Process
else:
    from multiprocessing import Process
process = Process(target=tell)
process.start()
process.join()
print("parent", calls, mindspore.get_context("device_target"))
"""


def test_mindspores_hooks_run_around_a_plain_fork(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {**MINDSPORE, "use.py": USE_MINDSPORE})
    run = run_mprun("--", PYTHON, "use.py", "plain").check()
    assert run.stdout.splitlines() == [
        "child ['prepare', 'child'] CPU",
        "parent ['prepare', 'parent'] Ascend",
    ]
    assert run.stderr == ""


def test_mindspores_own_processes_are_not_prepared_twice(run_mprun: RunCommand, tmp_path: Path) -> None:
    write(tmp_path, {**MINDSPORE, "use.py": USE_MINDSPORE})
    run = run_mprun("--", PYTHON, "use.py", "own").check()
    assert "child ['prepare', 'child']" in run.stdout and "parent ['prepare', 'parent']" in run.stdout


def test_a_failing_adapter_is_named_and_the_program_goes_on(run_mprun: RunCommand, tmp_path: Path) -> None:
    broken = MINDSPORE["mindspore/_c_expression.py"].replace(
        'lambda: calls.append("prepare")', "lambda: 1 / 0"
    )
    write(tmp_path, {**MINDSPORE, "mindspore/_c_expression.py": broken, "use.py": USE_MINDSPORE})
    run = run_mprun("--", PYTHON, "use.py", "plain").check()
    assert run.stdout.splitlines() == ["child [] Ascend", "parent [] Ascend"]
    assert 'the fork hook "mindspore" failed in its prepare half: ZeroDivisionError' in run.stderr


OPENCV = """
threads = 4

def getNumThreads():
    return threads

def setNumThreads(count):
    global threads
    threads = count
"""


def test_opencv_forks_without_threads(run_mprun: RunCommand, tmp_path: Path) -> None:
    use = "import cv2, os\nif os.fork() == 0:\n    print('child', cv2.threads, flush=True)\n    os._exit(0)\n"
    write(tmp_path, {"cv2.py": OPENCV, "use.py": use + "os.wait()\nprint('parent', cv2.threads)\n"})
    assert run_mprun("--", PYTHON, "use.py").check().stdout == "child 0\nparent 4\n"
    off = run_mprun("--", PYTHON, "use.py", env={"MPRUN_ADAPTERS": "-all"}).check()
    assert off.stdout == "child 4\nparent 4\n"


# --- workers of a job --------------------------------------------------------------------------

DRAW = """
import os, random
import numpy, torch

def draw(_):
    numbers = [random.random(), float(numpy.random.rand()), float(torch.rand(1))]
    return numbers + [os.environ.get("CUDA_VISIBLE_DEVICES")]
"""


def test_workers_draw_numbers_of_their_own(run_job: RunCommand, start_method: str) -> None:
    """Every task is done by a new worker, and no two of them draw the same number from any generator."""
    spec = {
        "script": "draw.py",
        "function": "draw",
        "start_method": start_method,
        "processes": 2,
        "inputs": {"range": 4},
        "limits": {"tasks_per_worker": 1},
    }
    values = run_job(spec, scripts={"draw.py": DRAW}).check().values()
    for generator in range(3):
        assert len({value[generator] for value in values}) == 4
    hidden = "" if start_method == "fork" else None
    assert {value[3] for value in values} == {hidden}


def test_a_program_may_ask_for_seeds(run_mprun: RunCommand, tmp_path: Path) -> None:
    draw = "import os, numpy.random, torch\nfor _ in range(2):\n    if os.fork() == 0:\n"  # numpy 2 loads it at its use
    draw += "        print(numpy.random.rand(), torch.rand(1).item(), flush=True)\n        os._exit(0)\n    os.wait()\n"
    write(tmp_path, {"draw.py": draw})
    for adapters, different in (("", 1), ("+seeds", 2)):
        out = run_mprun("--", PYTHON, "draw.py", env={"MPRUN_ADAPTERS": adapters}).check().stdout
        numpy, torch = zip(*(line.split() for line in out.splitlines()))
        assert (len(set(numpy)), len(set(torch))) == (different, different)


def test_a_job_switches_adapters_off(run_job: RunCommand) -> None:
    script = "import os\n\ndef adapters(_):\n    return os.environ.get('MPRUN_ADAPTERS')\n"
    spec = {"script": "adapters.py", "function": "adapters", "inputs": {"range": 1}}
    assert run_job(spec, scripts={"adapters.py": script}).check().values() == [None]
    spec["adapters"] = {"libgomp": "off", "quiet": "auto", "torch": "off"}
    values = run_job(spec, scripts={"adapters.py": script}, env={"MPRUN_ADAPTERS": "-tbb"}).check().values()
    assert values == ["-tbb,-libgomp,-torch"]


def test_an_unknown_adapter_is_an_error(run_job: RunCommand, run_mprun: RunCommand) -> None:
    spec = {"script": "t.py", "function": "f", "inputs": {"range": 1}, "adapters": {"libgom": "off"}}
    run = run_job(spec, scripts={"t.py": ""}).check(2)
    assert "/adapters/libgom" in run.stderr and "libgomp" in run.stderr
    run = run_mprun("--set", 'adapters.libgomp="of"', "--", "true").check(2)
    assert "/adapters/libgomp" in run.stderr and '"off"' in run.stderr


# --- a libgomp that cannot be paused -----------------------------------------------------------

REGION = """
int team(void) {
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads += 1;
  return threads;
}
"""


@pytest.fixture(name="old_libgomp")
def library_with_old_libgomp(tmp_path: Path) -> Path:
    """A library that uses a copy of libgomp without omp_pause_resource_all, as wheels bundle it."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    asked = ["cc", "-print-file-name=libgomp.so.1"]
    system = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    if not system.is_absolute():
        system = Path("/usr/lib/x86_64-linux-gnu/libgomp.so.1")
    if not system.is_file():
        pytest.skip("needs libgomp.so.1")
    content = system.resolve().read_bytes()
    content = content.replace(b"omp_pause_resource_all", b"omp_gone_resource_all\0")
    (tmp_path / "libgold.so.1").write_bytes(content.replace(b"libgomp.so.1\0", b"libgold.so.1\0"))
    (tmp_path / "team.c").write_text(REGION)
    build = ["cc", "-fopenmp", "-shared", "-fPIC", "-o", "libteam.so", "team.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    library = (tmp_path / "libteam.so").read_bytes()
    (tmp_path / "libteam.so").write_bytes(library.replace(b"libgomp.so.1\0", b"libgold.so.1\0"))
    return tmp_path / "libteam.so"


USE_TEAM = """
import ctypes, os, threading

team = ctypes.CDLL(os.path.abspath("libteam.so")).team

def warm():
    assert team() == 2

def use(_):
    current = threading.current_thread()
    return [team(), current is threading.main_thread()]
"""


def test_workers_live_through_an_old_libgomp(run_job: RunCommand, old_libgomp: Path) -> None:
    spec = {
        "script": "use.py",
        "function": "use",
        "setup": "warm",
        "processes": 2,
        "inputs": {"range": 6},
        "limits": {"tasks_per_worker": 2, "job_seconds": 60},
    }
    env = {"LD_LIBRARY_PATH": str(old_libgomp.parent)}
    run = run_job(spec, scripts={"use.py": USE_TEAM}, env=env).check()
    assert run.values() == [[2, True]] * 6
    assert "too old" not in run.stderr


def test_a_program_with_an_old_libgomp_works_and_is_warned(
    run_mprun: RunCommand, old_libgomp: Path
) -> None:
    use = """
warm()
pid = os.fork()
if pid == 0:
    os._exit(team())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) + team())
"""
    write(old_libgomp.parent, {"use.py": "import sys\n" + USE_TEAM + use})
    env = {"LD_LIBRARY_PATH": str(old_libgomp.parent)}
    run = run_mprun("--", PYTHON, "use.py", env=env).check(2 + 2)
    assert run.stderr.count("libgold.so.1 is too old") == 1 and "libomp5" in run.stderr


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_an_isolated_python_works_and_is_noted(run_mprun: RunCommand, tmp_path: Path, flag: str) -> None:
    write(tmp_path, {"fork.py": "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nprint('done')\n"})
    run = run_mprun("--", PYTHON, flag, "fork.py").check()
    assert run.stdout == "done\n"
    assert run.stderr.count("started with -I, -E or -S") == 1
    assert run_mprun("--", PYTHON, "fork.py").check().stderr == ""


# --- libraries with threads --------------------------------------------------------------------

TBB = r"""
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// True once two threads have met inside one parallel loop. By the clock: on a busy machine each yield takes milliseconds.
bool has_workers() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(2);
  while (Clock::now() < end) {
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    tbb::parallel_for(0, 2, [&](int) {
      ++inside;
      for (int i = 0; i < 1000 && !met && Clock::now() < end; ++i) {
        if (inside > 1) met = true;
        std::this_thread::yield();
      }
      --inside;
    });
    if (met) return true;
  }
  return false;
}

int main() {
  tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  const bool before = has_workers();
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) _exit(has_workers() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  std::printf("%d %d %d\n", before, status == 0, has_workers());
}
"""


def test_onetbb_has_its_threads_on_both_sides(run_mprun: RunCommand, tmp_path: Path) -> None:
    if not Path("/usr/include/tbb/parallel_for.h").is_file():
        pytest.skip("needs libtbb-dev")
    write(tmp_path, {"use_tbb.cc": TBB})
    build = ["c++", "-std=c++17", "-O1", "use_tbb.cc", "-o", "use_tbb", "-ltbb"]
    subprocess.run(build, cwd=tmp_path, check=True)
    assert run_mprun("--", "./use_tbb").check().stdout == "1 1 1\n"
    off = run_mprun("--", "./use_tbb", env={"MPRUN_ADAPTERS": "-tbb"}).check()
    assert off.stdout == "1 0 1\n"


TBB_TASK = r"""
#include <tbb/global_control.h>
#include <tbb/task_group.h>

#include <cstdio>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

int main() {
  alarm(60);
  sem_t started, forked;
  sem_init(&started, 0, 0);
  sem_init(&forked, 0, 0);
  tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  tbb::task_group group;
  group.run([&] { sem_post(&started); while (sem_wait(&forked) != 0) {} });
  sem_wait(&started);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  sem_post(&forked);
  group.wait();
  waitpid(pid, nullptr, 0);
  std::puts("done");
}
"""


def test_a_task_of_onetbb_may_wait_for_the_fork(run_mprun: RunCommand, tmp_path: Path) -> None:
    if not Path("/usr/include/tbb/parallel_for.h").is_file():
        pytest.skip("needs libtbb-dev")
    write(tmp_path, {"task.cc": TBB_TASK})
    subprocess.run(["c++", "-std=c++17", "task.cc", "-o", "task", "-ltbb"], cwd=tmp_path, check=True)
    run = run_mprun("--", "./task", timeout=120).check()
    assert run.stdout == "done\n"
    assert "oneTBB was in use when the process forked" in run.stderr


# As that of a library which calls oneTBB may.
TBB_ABOVE_A_STACK = r"""
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

sem_t started, forked;

void* wait_for_the_fork(void*) {
  sem_post(&started);
  while (sem_wait(&forked) != 0) {}
  return nullptr;
}

int main() {
  tbb::parallel_for(0, 2, [](int) {});
  const size_t size = 1 << 20, page = sysconf(_SC_PAGESIZE);
  char* stack = static_cast<char*>(mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *reinterpret_cast<void**>(stack + size) = dlsym(RTLD_DEFAULT, "TBB_runtime_interface_version");
  mprotect(stack + size, page, PROT_READ);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, size);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, wait_for_the_fork, nullptr) != 0) return 1;
  sem_wait(&started);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  sem_post(&forked);
  pthread_join(thread, nullptr);
  waitpid(pid, nullptr, 0);
  std::puts("done");
}
"""


def test_a_stack_ends_where_other_memory_begins(run_mprun: RunCommand, tmp_path: Path) -> None:
    """What a library above a stack has of oneTBB is no task of that thread."""
    if not Path("/usr/include/tbb/parallel_for.h").is_file():
        pytest.skip("needs libtbb-dev")
    write(tmp_path, {"above.cc": TBB_ABOVE_A_STACK})
    build = ["c++", "-std=c++17", "above.cc", "-o", "above", "-ltbb", "-ldl"]
    subprocess.run(build, cwd=tmp_path, check=True)
    run = run_mprun("--", "./above").check()
    assert (run.stdout, run.stderr) == ("done\n", "")


OPENBLAS = """
import ctypes, os, sys

blas = ctypes.CDLL(sys.argv[1])
blas.openblas_set_num_threads(2)
SIZE = 300
Matrix = ctypes.c_double * (SIZE * SIZE)
ones, product = Matrix(*[1.0] * (SIZE * SIZE)), Matrix()

def multiply():
    blas.cblas_dgemm(101, 111, 111, SIZE, SIZE, SIZE, ctypes.c_double(1), ones, SIZE, ones, SIZE,
                     ctypes.c_double(0), product, SIZE)
    return product[0] == SIZE == product[SIZE * SIZE - 1]

right = [multiply()]
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if multiply() and blas.openblas_get_num_threads() == 2 else 1)
    right += [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, multiply()]
sys.exit(0 if all(right) else 1)
"""


@pytest.mark.parametrize("build", ["pthread", "openmp"])
def test_openblas_before_and_after_fork(run_mprun: RunCommand, tmp_path: Path, build: str) -> None:
    found = list(Path("/usr/lib").glob(f"*/openblas-{build}/libopenblas.so.0"))
    if not found:
        pytest.skip(f"needs libopenblas0-{build}")
    write(tmp_path, {"blas.py": OPENBLAS})
    run_mprun("--", PYTHON, "blas.py", found[0]).check()
