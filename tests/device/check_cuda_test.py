#!/usr/bin/env python3
"""scripts/check_cuda against made-up programs, a made-up LibTorch and a device of paper: what is run, what is judged, what is
written, and that a check that fails, hangs or crashes costs no other."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/check_cuda"))
sys.dont_write_bytecode = True
import harness  # noqa: E402
import places  # noqa: E402

# The programs begin alike: FAULTS names what goes wrong, by the run's or the command's name.
START = f"""#!{sys.executable} -IS
import json, os, signal, sys, time
faults = json.loads(os.environ.get("FAULTS", "{{}}"))
def meet(name):
    fault = faults.get(name, "")
    if fault == "hang":
        time.sleep(600)
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    return fault
"""

BRAID = START + """
if sys.argv[1] == "--help":
    sys.exit(0)
words = dict(word.split("=", 1) for word in sys.argv[3:])
out = words["train.out"]
fault = meet(os.path.basename(out))
if fault == "graphs":
    print("note: no CUDA graphs: operation not permitted when stream is capturing")
first = int(words["train.resume"].rpartition("-")[2]) + 1 if "train.resume" in words else 1
off = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-4, "bfloat16": 1e-3}[words["train.dtype"]]
off = 0.1 if fault == "wrong" else off if words["train.device"] == "cuda" else 0
os.makedirs(out)
with open(os.path.join(out, "metrics.jsonl"), "w") as metrics:
    metrics.write(json.dumps({"kind": "run"}) + "\\n")
    for step in range(first, 11):
        loss = (5 - 0.1 * step) * (1 + off)
        metrics.write(json.dumps({"kind": "step", "step": step, "loss": loss, "grad_norm": 1.0}) + "\\n")
"""

CUDA_CHECK = START + """
# built with: libtorch=2.11.0 cuda=13.0.88 architectures=80-real,90;
command = sys.argv[1]
fault = meet(command)
if command == "device":
    if fault == "none":
        print('train.device = "cuda": needs a CUDA device: no CUDA-capable device is detected')
        sys.exit(2)
    print(json.dumps({"name": "Made of paper", "capability": fault or "9.0", "processors": 132, "bytes": 80 << 30,
                      "driver": "13.0", "runtime": "13.0"}))
if command == "products":
    print(json.dumps({"size": 8192, "bfloat16": 8e14, "float16": 8e14, "float32": 5e13, "tf32": 4e14}))
if command == "kernels":
    assert sys.argv[2:] in ([], ["--sizes", "full"])
    for kernel in ("norm", "loss"):
        wrong = fault == "wrong" and kernel == "loss"
        print(json.dumps({"kernel": kernel, "dtype": "Half", "compared": 3, "ok": not wrong,
                          "worst": 7.5 if wrong else 0.25, "where": "sum, 5 x 7, 5 real"}))
    sys.exit(fault == "wrong")
if command == "steps":
    assert 'preset = "' in open(sys.argv[2]).read()
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        answer = {"parameters": 124, "tokens_per_step": 32768, "flops_per_token": 8e8}
        if line.strip() == "step":
            answer = {"seconds": 0.0625, "loss": 9.0, "peak_bytes": 12 << 30}
        print(json.dumps(answer), flush=True)
"""

SANITIZER = START + """
tool = sys.argv[2]
assert os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
fault = meet(tool)
print("========= COMPUTE-SANITIZER")
print("========= " + ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" if tool == "racecheck" else
                      "ERROR SUMMARY: 10 errors" if fault == "wrong" else "ERROR SUMMARY: 0 errors"))
sys.exit(99 if fault == "wrong" else 0)
"""

# What PyTorch's side prints, in the place of the import that it begins with.
TORCH = """
import json, os, sys
if os.path.basename(sys.argv[0]) == "peer.py":
    if sys.argv[2] in json.loads(os.environ.get("FAULTS", "{}")):
        sys.exit("CUDA out of memory")
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": 0.125, "loss": 9.1, "peak_bytes": 20 << 30}), flush=True)
    sys.exit(0)
"""

VERSION = "__version__ = '{}'\ncuda: Optional[str] = '{}'\n"


class CheckCuda(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name).resolve()
        self.program("bin/braid", BRAID)
        self.program("bin/braid_cuda_check", CUDA_CHECK)
        self.program("bin/libbraid_cuda.so", "")
        self.program("path/nvidia-smi", START + 'print("580.1")')
        self.program("path/compute-sanitizer", SANITIZER)
        self.program("site/torch/lib/libtorch_cpu.so", "")
        self.program("site/torch/__init__.py", TORCH)
        self.torch("2.11.0+cu130", "13.0")

    def program(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def torch(self, version, cuda):
        (self.path / "site/torch/version.py").write_text(VERSION.format(version, cuda))

    def check(self, *words, faults=None, torch="site"):
        """The finished script; the made-up LibTorch is that of the Python that runs it."""
        environment = os.environ | {"PATH": f"{self.path}/path:/usr/bin:/bin", "PYTHONPATH": str(self.path / "site"),
                                    "FAULTS": json.dumps(faults or {}), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, ROOT / "scripts/check_cuda", "--bin", self.path / "bin", "--out", self.path / "out",
                   "--torch", self.path / torch, "--commit", "abc123", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def results(self):
        return json.loads((self.path / "out/check_cuda.json").read_text())

    def statuses(self):
        return {check["name"]: check["status"] for check in self.results()["checks"]}

    def numbers(self):
        return {check["name"]: check["number"] for check in self.results()["checks"]}


class Run(CheckCuda):
    def test_everything_passes_and_is_written_down(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found, numbers = self.results(), self.numbers()
        self.assertEqual(list(self.statuses()),
                         ["device", "products", "kernels", "losses-float64", "losses-float32", "losses-float16",
                          "losses-bfloat16", "graphs", "recompute", "reproducible", "resume-from-cpu", "resume-on-cpu",
                          "speed-gpt2", "speed-llama", "memcheck-kernels", "racecheck-kernels", "memcheck-step"])
        self.assertEqual(set(self.statuses().values()), {"ok"})
        self.assertEqual((found["commit"], found["torch"], found["device"]["driver_version"]),
                         ("abc123", "2.11.0+cu130", "580.1"))
        self.assertEqual(found["built"], {"libtorch": "2.11.0", "cuda": "13.0.88", "architectures": ["80-real", "90"]})
        self.assertIn("Made of paper, 80 GiB, driver 580.1, compute capability 9.0", numbers["device"])
        self.assertIn("bfloat16 800, float16 800, tf32 400, float32 50 TFLOP/s", numbers["products"])
        self.assertIn("gpt2 1.0e-06 of the loss, 2.0e-06 allowed; llama 1.0e-06", numbers["losses-float32"])
        self.assertIn("float32 same bits; bfloat16 same bits", numbers["graphs"])
        # 32768 tokens in 1/16 s, 8e8 operations each, of 8e14 a second.
        self.assertEqual(numbers["speed-gpt2"],
                         "524,288 tokens/s, MFU 52%, 12.0 GiB; 2.00 x PyTorch eager; 2.00 x PyTorch compile")
        page = (self.path / "out/check_cuda.md").read_text()
        self.assertIn("commit abc123: 17 ok, 0 failed, 0 skipped.", page)
        self.assertIn("| gpt2-124m | 32 x 1024 | braid | 0.0625 | 524,288 | 52.4% | 12.0 |  |", page)
        self.assertIn("| gpt2-124m | 32 x 1024 | PyTorch compile | 0.1250 | 262,144 | 26.2% | 20.0 | 2.00 |", page)
        self.assertIn("| memcheck-step | ok |", page)
        self.assertIn("kernels --sizes full", (self.path / "out/logs/kernels.log").read_text())

    def test_what_fails_or_crashes_costs_no_other(self):
        names = "kernels,losses-float32,losses-bfloat16,graphs,reproducible,resume,speed-gpt2,memcheck"
        faults = {"float32-gpt2-cuda": "wrong", "bfloat16-llama-cuda": "crash", "graphs-on-float32": "graphs",
                  "reproducible-bfloat16-2": "wrong", "kernels": "wrong", "compile": "", "memcheck": "wrong"}
        done = self.check("--only", names, faults=faults)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        numbers = self.numbers()
        passed = {name for name, status in self.statuses().items() if status == "ok"}
        self.assertEqual(passed, {"device", "resume-from-cpu", "resume-on-cpu", "speed-gpt2"})
        self.assertEqual(numbers["kernels"], "1 of 2: loss in Half: sum, 5 x 7, 5 real is off by 7.5 times what is allowed")
        self.assertRegex(numbers["losses-float32"],
                         r"gpt2 1\.0e-01 of the loss, 2\.0e-06 allowed; step 1: 5\.39\d* in place of 4\.9")
        self.assertIn("braid was ended by SIGSEGV", numbers["losses-bfloat16"])
        self.assertIn("no CUDA graphs: operation not permitted", numbers["graphs"])
        self.assertIn("float32 same bits; bfloat16 differs from step 1 on", numbers["reproducible"])
        self.assertIn("2.00 x PyTorch eager; PyTorch compile: compile ended with exit code 1", numbers["speed-gpt2"])
        self.assertEqual(numbers["memcheck-step"], "ERROR SUMMARY: 10 errors")
        self.assertIn("4 ok, 7 failed, 0 skipped", done.stdout)

    def test_what_hangs_is_ended_at_its_limit(self):
        done = self.check("--only", "losses-float16,speed-gpt2", "--limit", "1",
                          faults={"float16-gpt2-cpu": "hang", "steps": "hang"})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.statuses(), {"device": "ok", "losses-float16": "FAILED", "speed-gpt2": "FAILED"})
        self.assertIn("braid did not end within the limit", self.numbers()["losses-float16"])
        self.assertIn("braid did not answer within the limit", self.numbers()["speed-gpt2"])

    @unittest.skipIf(pathlib.Path("/usr/local/cuda/bin/compute-sanitizer").exists(), "it is found there")
    def test_what_is_not_installed_is_skipped_and_said(self):
        (self.path / "path/compute-sanitizer").unlink()
        (self.path / "path/nvidia-smi").unlink()
        done = self.check("--only", "racecheck")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.statuses(), {"device": "ok", "racecheck-kernels": "skipped"})
        self.assertIn("compute-sanitizer is not installed", self.numbers()["racecheck-kernels"])

    def test_a_device_without_code_for_it_fails_and_the_rest_is_tried(self):
        done = self.check("--only", "resume-on-cpu", faults={"device": "7.5"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("compute capability 7.5, and libbraid_cuda.so code for 80-real, 90", self.numbers()["device"])
        self.assertEqual(self.statuses()["resume-on-cpu"], "ok")


class NothingToCheck(CheckCuda):
    def refused(self, *words, **options):
        done = self.check(*words, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertFalse((self.path / "out/check_cuda.json").exists())
        return done.stdout

    def test_no_device(self):
        said = self.refused("--only", "losses", faults={"device": "none"})
        self.assertIn("nothing can be checked: train.device = \"cuda\": needs a CUDA device: no CUDA-capable device", said)
        self.assertIn("it would run: device, losses-float64, losses-float32, losses-float16, losses-bfloat16\n", said)

    def test_no_libtorch_or_another(self):
        (self.path / "empty").mkdir()
        self.assertIn("empty: there is no lib/libtorch_cpu.so", self.refused(torch="empty"))
        self.torch("2.9.1+cu130", "13.0")
        said = self.refused()
        self.assertIn("built with LibTorch 2.11.0, and there is 2.9.1+cu130 in", said)
        self.assertIn("pip install torch==2.11.0", said)
        self.torch("2.11.0+cu128", "12.8")
        self.assertIn("built with CUDA 13.0.88, and torch 2.11.0+cu128", self.refused())
        with mock.patch.object(places, "torches_of_pythons", return_value=[]):
            with self.assertRaisesRegex(harness.Unusable, r"no Python on PATH has torch: pip install torch==2\.11\.0"):
                places.find_torch(self.path, None, "2.11.0")

    def test_no_programs_and_nothing_to_build_them_with(self):
        (self.path / "bin/libbraid_cuda.so").unlink()
        self.assertIn("libbraid_cuda.so missing", self.refused())
        torch = places.torch_in(self.path / "site")
        for there, said in (((), "cmake, ninja, g.. missing"),
                            (("cmake", "ninja", "g++"), "no nvcc .* cuda-nvcc-13-0"),
                            (("cmake", "ninja", "g++", "nvcc"), "no NVIDIA driver .* nothing was built")):
            with mock.patch.object(places.shutil, "which", lambda name, path=None: name if name in there else None), \
                    mock.patch.object(places, "has_driver", return_value=False):
                with self.assertRaisesRegex(harness.Unusable, said):
                    places.build(self.path, torch, self.path / "log")

    def test_a_program_that_does_not_start(self):
        loader = "error while loading shared libraries: libpcre2-8.so.0: cannot open shared object file"
        self.program("bin/braid", f"#!/bin/sh\necho '{loader}' >&2; exit 127")
        self.assertIn("libpcre2-8.so.0 is missing (package libpcre2-8-0)", self.refused())
        self.program("bin/braid", "#!/bin/sh\necho \"/lib/libc.so.6: version 'GLIBC_2.38' not found\" >&2; exit 1")
        self.assertIn("built on a newer system", self.refused())

    def test_a_check_that_there_is_not(self):
        done = self.check("--only", "losses,speeed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no check is called speeed", done.stderr)


class Fit(unittest.TestCase):
    def test_machine_code_runs_within_a_generation_and_ptx_on_all_later_ones(self):
        built = ["80-real", "90"]
        for capability in ("8.0", "8.9", "9.0", "10.0", "12.0"):
            self.assertTrue(places.runs_on(capability, built), capability)
        self.assertFalse(places.runs_on("7.5", built))
        self.assertFalse(places.runs_on("9.0", ["80-real"]))
        self.assertFalse(places.runs_on("8.0", ["86-real"]))
        self.assertTrue(places.runs_on("8.6", ["80-virtual"]))


if __name__ == "__main__":
    unittest.main()
