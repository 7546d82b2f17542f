"""Makes torch usable after fork: the child computes on the CPU.

CUDA cannot be used again in a child of a process that had initialised it. By itself torch would raise an error far from
the cause. With this adapter the child sees no accelerator and the default device becomes the CPU: code that checks
before it uses one works, and code that does not gets an error that names the cure. A child of a process that never
used CUDA is left alone: it may use it.
"""
import os
import sys

CURE = (
    "CUDA was initialised before this process was forked, and cannot be used again in it: move what uses CUDA "
    "to after the fork, or use the start method spawn (mprun --start-method spawn --device cuda; "
    'multiprocessing.set_start_method("spawn"))'
)

_cuda_used = False


def prepare():
    global _cuda_used
    torch = sys.modules["torch"]
    cuda = getattr(torch, "cuda", None)
    _cuda_used = bool(getattr(cuda, "_initialized", False))


def child():
    if _cuda_used:
        hide_accelerators()


def hide_accelerators():
    """Makes the CPU this process's only device. Also called in the workers that mprun forks."""
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"):
        os.environ[variable] = ""
    torch = sys.modules.get("torch")
    if torch is None or not _cuda_used:
        return  # CUDA reads the variables when it is first used
    cuda = torch.cuda

    def refuse(*_args, **_kwargs):
        raise RuntimeError(CURE)

    cuda._lazy_init = refuse
    cuda.init = refuse
    cuda.is_available = lambda: False
    cuda.device_count = lambda: 0
    if hasattr(torch, "set_default_device"):  # torch 2
        if str(torch.get_default_device()) != "cpu":
            torch.set_default_device("cpu")
    elif torch._C._get_default_device() != "cpu":
        kind = str(torch.get_default_dtype()).rpartition(".")[2]
        names = {"float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor"}
        torch.set_default_tensor_type(getattr(torch, names.get(kind, "FloatTensor")))
