"""The command: what is asked for, in which order, and how it ends."""
import argparse
import datetime
import pathlib
import platform
import subprocess

import checks
import places
import results
import speed
from harness import Check, Session, Unusable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ABOUT = """Checks everything that braid does on a CUDA device, the most valuable first: kernels against float64, losses against
the CPU's, graphs, recompute, resume, speed against PyTorch, compute-sanitizer. One line for each check; results in
check_cuda.json and check_cuda.md, output in logs/, all under --out."""
EXIT_CODES = """exit code: 0 all checks passed or were skipped for a reason that is printed; 1 one failed; 2 nothing could be
checked: no device, no LibTorch or another version, no programs and nothing to build them with."""


def arguments(words, names):
    parser = argparse.ArgumentParser(prog="scripts/check_cuda", description=ABOUT, epilog=EXIT_CODES)
    add = parser.add_argument
    add("--torch", metavar="DIR", help="the torch folder of another Python, or that Python's environment")
    add("--bin", metavar="DIR", type=pathlib.Path,
        help=f"where {', '.join(places.PROGRAMS)} are (default: build/release/bin, built when they are not there)")
    add("--out", metavar="DIR", type=pathlib.Path, default=ROOT / "runs/check_cuda", help="default: runs/check_cuda")
    add("--only", metavar="NAME,...", help="checks, or what their names begin with: " + ", ".join(names))
    add("--limit", metavar="SECONDS", type=float, default=float("inf"),
        help="for each check but the first, below its own limit")
    add("--commit", metavar="NAME", help="of the programs, where there is no .git")
    options = parser.parse_args(words)
    options.only = [word for word in (options.only or "").split(",") if word]
    unknown = [word for word in options.only if not any(name.startswith(word) for name in names)]
    if unknown:
        parser.error(f"--only: no check is called {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def commit_of(named):
    if named:
        return named
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def programs_and_torch(options):
    """The folder of the programs and the LibTorch they run with; builds where there are none."""
    folder = options.bin or ROOT / "build/release/bin"
    missing = [name for name in places.PROGRAMS if not (folder / name).exists()]
    if missing and options.bin:
        raise Unusable(f"--bin {folder}: {', '.join(missing)} missing")
    if not missing:
        built = places.built_with(folder / "braid_cuda_check")
        return folder, built, places.find_torch(ROOT, options.torch, built.libtorch)
    torch = places.find_torch(ROOT, options.torch, "")
    print(f"building with torch {torch.version} (log in {options.out}/build.log)", flush=True)
    folder = places.build(ROOT, torch, options.out / "build.log")
    return folder, places.built_with(folder / "braid_cuda_check"), torch


def prepared(options):
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    folder, built, torch = programs_and_torch(options)
    places.refuse_what_does_not_fit(built, torch)
    environment = places.environment_for(torch)
    places.refuse_what_does_not_start(folder, environment)
    session = Session(folder.resolve(), environment, options.out)
    session.peer = torch.python
    return session, built, torch


def perform_all(session, chosen, limit):
    done = []
    for check in chosen:
        done.append(session.perform(check, limit))
        print(done[-1].line(), flush=True)
    return done


def write(session, built, torch, options, done):
    environment = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                   "commit": commit_of(options.commit), "torch": torch.version, "built": vars(built),
                   "host": platform.platform(), "device": session.facts.get("device", {})}
    results.write_json(options.out / "check_cuda.json", environment, done)
    results.write_markdown(options.out / "check_cuda.md", environment, done)


def main(words):
    planned = [*checks.correctness_checks(), *speed.speed_checks(), *checks.sanitizer_checks()]
    options = arguments(words, ["device", *(check.name for check in planned)])
    wanted = options.only or [""]
    chosen = [check for check in planned if any(check.name.startswith(word) for word in wanted)]
    try:
        session, built, torch = prepared(options)
        print(f"torch {torch.version} in {torch.folder}", flush=True)
        device = Check("device", 180, lambda at: checks.check_device(at, built))
        done = perform_all(session, [device], device.limit)
    except Unusable as why:
        print(f"check_cuda: nothing can be checked: {why}")
        print(f"it would run: {', '.join(['device', *(check.name for check in chosen)])}")
        return 2
    done += perform_all(session, chosen, options.limit)
    write(session, built, torch, options, done)
    counts = results.state_of(done)
    print(f"{counts['ok']} ok, {counts['FAILED']} failed, {counts['skipped']} skipped; {options.out}/check_cuda.md, .json")
    return 1 if counts["FAILED"] else 0
