"""Where LibTorch and the programs are, whether they fit together, and what it takes where they are missing."""
import ctypes.util
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

from harness import Unusable

PROGRAMS = ("braid", "braid_cuda_check", "libbraid_cuda.so")
NVCC_PACKAGES = ("NVIDIA's apt packages cuda-nvcc-13-0, cuda-cudart-dev-13-0, cuda-cccl-13-0, libcublas-dev-13-0, "
                 "libcusparse-dev-13-0 and libcusolver-dev-13-0, or cuda-toolkit-13-0 for all of them")
# What a machine without a compiler may lack of what braid names beside LibTorch.
LIBRARY_PACKAGES = {"libpcre2-8.so.0": "libpcre2-8-0", "libstdc++.so.6": "libstdc++6", "libgcc_s.so.1": "libgcc-s1"}


@dataclasses.dataclass
class Torch:
    folder: pathlib.Path  # with lib/libtorch_cpu.so
    version: str          # 2.11.0+cu130
    cuda: str             # 13.0; empty for a build without
    python: str           # that imports it; empty when none was found

    def plain_version(self):
        return self.version.partition("+")[0]


@dataclasses.dataclass
class Built:
    libtorch: str
    cuda: str
    architectures: list


def torch_in(folder, python=""):
    """The LibTorch of a torch folder, of the site-packages or the environment that it is in; None when it is none."""
    folder = pathlib.Path(folder)
    for place in [folder, folder / "torch", *sorted(folder.glob("lib*/python3*/site-packages/torch"))]:
        if (place / "lib" / "libtorch_cpu.so").exists() and (place / "version.py").exists():
            text = (place / "version.py").read_text()
            version = re.search(r"^__version__ = '([^']+)'", text, re.M)
            cuda = re.search(r"^cuda\b[^=]*= '([^']+)'", text, re.M)
            return Torch(place.resolve(), version[1] if version else "unknown", cuda[1] if cuda else "", python)
    return None


def torches_of_pythons(root):
    """Of the Python that runs this, of those on PATH and of the tree's own, in this order."""
    asked = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s and s.origin else '')"
    pythons = [sys.executable, shutil.which("python3"), shutil.which("python"), str(root / ".venv/bin/python")]
    found = []
    for python in dict.fromkeys(name for name in pythons if name and os.path.exists(name)):
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=60)
        origin = done.stdout.strip()
        torch = torch_in(pathlib.Path(origin).parent, python) if origin else None
        if torch and all(torch.folder != other.folder for other in found):
            found.append(torch)
    return found


def find_torch(root, named, wanted):
    """The LibTorch to run with: `named`, or the first of a Python whose version is `wanted` (any if that is empty)."""
    found = torches_of_pythons(root)
    if named:
        torch = torch_in(named)
        if not torch:
            raise Unusable(f"--torch {named}: there is no lib/libtorch_cpu.so with a version.py in it, nor in a torch "
                           "folder of it")
        torch.python = next((other.python for other in found if other.folder == torch.folder), "")
        found = [torch]
    if not found:
        raise Unusable(f"no Python on PATH has torch: pip install torch{'==' + wanted if wanted else ''}, or name its "
                       "folder with --torch")
    fitting = [torch for torch in found if not wanted or torch.plain_version() == wanted]
    if not fitting:
        there = ", ".join(f"{torch.version} in {torch.folder}" for torch in found)
        raise Unusable(f"the programs were built with LibTorch {wanted}, and there is {there}: "
                       f"pip install torch=={wanted}, or name another with --torch")
    return fitting[0]


def built_with(program):
    """What the program says of itself, read from the file: it may not start here."""
    found = re.search(rb"built with: libtorch=(\S+) cuda=(\S+) architectures=([^;]*);", program.read_bytes())
    if not found:
        raise Unusable(f"{program} does not say what it was built with: it is no braid_cuda_check")
    libtorch, cuda, architectures = (text.decode() for text in found.groups())
    return Built(libtorch, cuda, architectures.split(","))


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def has_driver():
    """Whether NVIDIA's driver library is here, without which no device can be used."""
    return ctypes.util.find_library("cuda") is not None


def build(root, torch, log):
    """Builds the programs with this LibTorch; returns their folder."""
    missing = [name for name in ("cmake", "ninja", "g++") if not shutil.which(name)]
    if missing:
        raise Unusable("there are no programs in build/release/bin and nothing to build them with "
                       f"({', '.join(missing)} missing): copy {', '.join(PROGRAMS)} here, or run scripts/setup")
    nvcc = find_nvcc()
    if not nvcc:
        raise Unusable("there is no libbraid_cuda.so in build/release/bin, and no nvcc to build it with: it takes "
                       f"{NVCC_PACKAGES}; or copy {', '.join(PROGRAMS)} from where they were built")
    if not has_driver():
        raise Unusable("there is no NVIDIA driver (libcuda.so.1) on this machine, so nothing was built")
    environment = os.environ | {"BRAID_TORCH_ROOT": str(torch.folder),
                                "PATH": f"{pathlib.Path(nvcc).parent}:{os.environ['PATH']}"}
    with open(log, "w") as out:
        done = subprocess.run([root / "scripts/build", "release", "braid", "braid_cuda", "braid_cuda_check"],
                              env=environment, stdout=out, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Unusable(f"building failed; see {log} (scripts/setup installs what a build needs)")
    return root / "build/release/bin"


def runs_on(capability, architectures):
    """Whether code for `architectures` (80-real: machine code; 90-virtual: PTX; 90: both) runs on "9.0"."""
    major, minor = map(int, capability.split("."))
    for architecture in architectures:
        number, _, kind = architecture.partition("-")
        if not number.isdigit():
            continue
        built_major, built_minor = divmod(int(number), 10)
        if kind != "virtual" and built_major == major and built_minor <= minor:
            return True
        if kind != "real" and (built_major, built_minor) <= (major, minor):
            return True
    return False


def environment_for(torch):
    """LibTorch's folder and those of NVIDIA's packages beside it come first."""
    folders = [torch.folder / "lib", *sorted((torch.folder.parent / "nvidia").glob("*/lib"))]
    before = os.environ.get("LD_LIBRARY_PATH", "")
    paths = [str(folder) for folder in folders] + ([before] if before else [])
    # Said here, so that programs do not start themselves again to say it: tools that follow one process would lose them.
    return os.environ | {"LD_LIBRARY_PATH": ":".join(paths), "OMP_WAIT_POLICY": "passive"}


def refuse_what_does_not_fit(built, torch):
    if built.cuda == "none":
        raise Unusable("braid_cuda_check was built without CUDA sources: build where nvcc is, with -DBRAID_CUDA=ON")
    if not torch.cuda:
        raise Unusable(f"torch {torch.version} in {torch.folder} was built without CUDA")
    if torch.cuda.partition(".")[0] != built.cuda.partition(".")[0]:
        raise Unusable(f"libbraid_cuda.so was built with CUDA {built.cuda}, and torch {torch.version} in {torch.folder} "
                       f"with CUDA {torch.cuda}: they must have the same first number")


def why_it_does_not_start(text):
    """In the user's words, from the loader's."""
    for library, package in LIBRARY_PACKAGES.items():
        if f"{library}: cannot open" in text:
            return f"{library} is missing (package {package})"
    if "GLIBC" in text:
        return "the programs were built on a newer system than this one: build them here, or on an older one"
    return text.strip().splitlines()[-1] if text.strip() else "it does not say why"


def refuse_what_does_not_start(folder, environment):
    for words in ([folder / "braid", "--help"], [folder / "braid_cuda_check", "built"]):
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unusable(f"{words[0]} does not start: {error}")
        if done.returncode != 0:
            raise Unusable(f"{words[0]} does not start: {why_it_does_not_start(done.stdout + done.stderr)}")
