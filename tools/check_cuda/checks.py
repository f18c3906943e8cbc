"""The checks of what is computed: kernels, losses, graphs, recompute, resume, and the same under a sanitizer."""
import json
import pathlib
import random
import shutil

import places
from harness import Check, Failed, Skipped, Unusable

STEPS = 10

# How far the loss of a step may be from the CPU's, relative to it. What rounding alone does to these runs is known from
# the CPU: from float64's losses float32's are off by up to 6e-8, float16's by 6e-5 and bfloat16's by 7e-4. A device rounds
# as much in other places, and ten updates of AdamW, which divides small gradients by their own size, carry it on: six to
# thirty times that is allowed, and of float64 as much of its own.
LOSS_TOLERANCE = {"float64": 1e-11, "float32": 2e-6, "float16": 5e-4, "bfloat16": 4e-3}

SMALL = """
[model]
family = "gpt2"
layers = 2
heads = 2
width = 128
context = 128
[data]
paths = ["{text}"]
validation_fraction = 0
[optimizer]
lr = 1e-3
[train]
steps = {steps}
batch = 8
microbatch = 4
save_minutes = 0
peak_flops = 1e12
"""
LLAMA = ["model.family=llama", "model.heads=4", "model.kv_heads=2"]


def small_run(session):
    """The file of a run of seconds, with text to train on."""
    path = session.out / "small.toml"
    if not path.exists():
        draw = random.Random(1)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(1, 8))) for _ in range(400)]
        text = session.out / "text.txt"
        text.write_text("\n".join(" ".join(draw.choices(words, k=12)) for _ in range(4000)))
        path.write_text(SMALL.format(text=text, steps=STEPS))
    return path


def trained(session, name, *words):
    """Folder, steps and output of `braid train` of the small run."""
    folder = session.out / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    output = session.run(session.programs / "braid", "train", small_run(session), f"train.out={folder}", *words)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return folder, [line for line in lines if line["kind"] == "step"], output


def losses(session, name, *words):
    _, steps, output = trained(session, name, *words)
    refuse_lost_graphs(output)
    return [step["loss"] for step in steps]


def refuse_lost_graphs(output):
    for line in output.splitlines():
        if "no CUDA graphs" in line:
            raise Failed(line.strip())


def largest_difference(found, expected):
    if len(found) != len(expected):
        raise Failed(f"{len(found)} steps in place of {len(expected)}")
    if any(value is None for value in found + expected):
        raise Failed("a loss is not finite")
    return max(abs(a - b) / abs(b) for a, b in zip(found, expected))


def require_close(found, expected, dtype, what=""):
    difference, allowed = largest_difference(found, expected), LOSS_TOLERANCE[dtype]
    text = f"{what}{difference:.1e} of the loss, {allowed:.1e} allowed"
    if not difference <= allowed:
        worst = max(range(len(found)), key=lambda i: abs(found[i] - expected[i]))
        raise Failed(f"{text}; step {worst + 1}: {found[worst]} in place of {expected[worst]}")
    return text


def check_products(session):
    output = session.run(session.programs / "braid_cuda_check", "products")
    flops = json.loads(output.splitlines()[-1])
    session.facts["products"] = flops
    text = ", ".join(f"{name} {flops[name] / 1e12:.0f}" for name in ("bfloat16", "float16", "tf32", "float32"))
    return f"{text} TFLOP/s of a product of {flops['size']}", flops


def kernel_lines(output):
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("no kernel was judged")
    return lines


def check_kernels(session):
    command = [session.programs / "braid_cuda_check", "kernels", "--sizes", "full"]
    lines = kernel_lines(session.run(*command, codes=(0, 1)))
    wrong = [line for line in lines if not line["ok"]]
    worst = max(lines, key=lambda line: line["worst"])
    if wrong:
        first = wrong[0]
        why = first.get("failure") or f"{first['where']} is off by {first['worst']:.2g} times what is allowed"
        raise Failed(f"{len(wrong)} of {len(lines)}: {first['kernel']} in {first['dtype']}: {why}")
    text = (f"{len(lines)} kernels and types; the worst took {worst['worst']:.2f} of what is allowed "
            f"({worst['kernel']}, {worst['dtype']})")
    return text, {"kernels": lines}


def losses_against_the_cpu(dtype):
    families = {"gpt2": [], "llama": LLAMA} if dtype in ("float32", "bfloat16") else {"gpt2": []}

    def run(session):
        said = []
        for family, words in families.items():
            words = [*words, f"train.dtype={dtype}"]
            on_cpu, on_device = (losses(session, f"{dtype}-{family}-{device}", *words, f"train.device={device}")
                                 for device in ("cpu", "cuda"))
            said.append(require_close(on_device, on_cpu, dtype, f"{family} "))
        return "; ".join(said)
    return run


def on_device(session, name, *words, dtype="bfloat16"):
    return losses(session, name, "train.device=cuda", f"train.dtype={dtype}", "model.dropout=0.1", *words)


def check_graphs(session):
    said = []
    for dtype in ("float32", "bfloat16"):
        off = on_device(session, f"graphs-off-{dtype}", "train.cuda_graph=off", dtype=dtype)
        on = on_device(session, f"graphs-on-{dtype}", dtype=dtype)
        same = "same bits" if on == off else require_close(on, off, dtype)
        said.append(f"{dtype} {same}")
    return "; ".join(said)


def check_recompute(session):
    plain = on_device(session, "recompute-none", "train.cuda_graph=off")
    said = []
    for policy in ("full", "selective"):
        again = on_device(session, f"recompute-{policy}", f"memory.recompute={policy}")
        said.append(f"{policy} " + ("same bits" if again == plain else require_close(again, plain, "bfloat16")))
    return "; ".join(said)


# The context is long enough for the attention's backward to be cut among several blocks, which may add in any order.
def check_reproducible(session):
    said, wrong = [], False
    for dtype in ("float32", "bfloat16"):
        runs = []
        for number in (1, 2):
            words = ["train.device=cuda", f"train.dtype={dtype}", "train.reduction=reproducible", "model.context=512"]
            _, steps, _ = trained(session, f"reproducible-{dtype}-{number}", *words)
            runs.append([(step["loss"], step["grad_norm"]) for step in steps])
        differ = [i + 1 for i, (a, b) in enumerate(zip(*runs)) if a != b]
        wrong = wrong or bool(differ) or len(runs[0]) != len(runs[1])
        said.append(f"{dtype} differs from step {differ[0]} on" if differ else f"{dtype} same bits")
    if wrong:
        raise Failed("; ".join(said) + " (LibTorch's attention may be the cause: docs/cuda.md)")
    return "; ".join(said)


def check_resume(first, then):
    def run(session):
        words = ["train.dtype=float32", f"train.save_every={STEPS // 2}"]
        folder, steps, _ = trained(session, f"resume-{first}", *words, f"train.device={first}")
        _, rest, _ = trained(session, f"resume-{first}-to-{then}", *words, f"train.device={then}",
                             f"train.resume={folder}/step-{STEPS // 2}")
        expected = [step["loss"] for step in steps[STEPS // 2:]]
        return require_close([step["loss"] for step in rest], expected, "float32")
    return run


# LibTorch's cache of memory would hide where a tensor ends, and cannot be recorded without.
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": 1}


def sanitized(tool, command):
    def run(session):
        sanitizer = shutil.which("compute-sanitizer", path=session.environment.get("PATH")) or shutil.which(
            "compute-sanitizer", path="/usr/local/cuda/bin")
        if not sanitizer:
            raise Skipped("compute-sanitizer is not installed (package cuda-sanitizer-13-0)")
        output = session.run(sanitizer, "--tool", tool, "--error-exitcode", 99, *command(session), codes=(0, 1, 99),
                             **UNCACHED)
        summary = [line.strip("= ") for line in output.splitlines() if "SUMMARY" in line]
        if not summary and "not supported" in output:
            raise Skipped(next(line.strip("= ") for line in output.splitlines() if "not supported" in line))
        if not summary:
            raise Failed("compute-sanitizer gave no summary; the log has what it said")
        if "SUMMARY: 0 " not in summary[-1]:
            raise Failed(summary[-1])
        return summary[-1]
    return run


def kernels_command(session):
    return [session.programs / "braid_cuda_check", "kernels"]


def step_command(session):
    folder = session.out / "runs" / "sanitized"
    shutil.rmtree(folder, ignore_errors=True)
    return [session.programs / "braid", "train", small_run(session), f"train.out={folder}", "train.device=cuda",
            "train.steps=2", "train.dtype=bfloat16", "train.cuda_graph=off", "model.dropout=0.1"]


def correctness_checks():
    return [Check("products", 60, check_products),
            Check("kernels", 150, check_kernels),
            *(Check(f"losses-{dtype}", 90, losses_against_the_cpu(dtype)) for dtype in LOSS_TOLERANCE),
            Check("graphs", 90, check_graphs),
            Check("recompute", 90, check_recompute),
            Check("reproducible", 90, check_reproducible),
            Check("resume-from-cpu", 60, check_resume("cpu", "cuda")),
            Check("resume-on-cpu", 60, check_resume("cuda", "cpu"))]


def sanitizer_checks():
    return [Check("memcheck-kernels", 180, sanitized("memcheck", kernels_command)),
            Check("racecheck-kernels", 180, sanitized("racecheck", kernels_command)),
            Check("memcheck-step", 180, sanitized("memcheck", step_command))]


def check_device(session, built):
    """First of all. Unusable where there is none."""
    output = session.run(session.programs / "braid_cuda_check", "device", codes=(0, 2))
    if not output.strip().startswith("{"):
        raise Unusable(output.strip())
    device = json.loads(output.strip().splitlines()[-1])
    session.facts["device"] = device
    if not places.runs_on(device["capability"], built.architectures):
        raise Failed(f"{device['name']} has compute capability {device['capability']}, and libbraid_cuda.so code for "
                     f"{', '.join(built.architectures)}: build it with -DCMAKE_CUDA_ARCHITECTURES="
                     f"{device['capability'].replace('.', '')}")
    smi = shutil.which("nvidia-smi", path=session.environment.get("PATH"))
    if smi:
        try:
            asked = session.run(smi, "--query-gpu=driver_version", "--format=csv,noheader")
            device["driver_version"] = asked.split("\n")[0].strip()
        except Failed:
            pass
    driver = device.get("driver_version", "of CUDA " + device["driver"])
    return (f"{device['name']}, {device['bytes'] / 2**30:.0f} GiB, driver {driver}, compute capability "
            f"{device['capability']}, code for {', '.join(built.architectures)}", device)
