"""What comes out: one JSON, and one Markdown page fit for bench/."""
import json


def state_of(results):
    return {status: sum(result.status == status for result in results) for status in ("ok", "FAILED", "skipped")}


def write_json(path, environment, results):
    checks = [{**vars(result), "seconds": round(result.seconds, 1)} for result in results]
    path.write_text(json.dumps({**environment, "counts": state_of(results), "checks": checks}, indent=1) + "\n")


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def speed_lines(results):
    measured = [result.details for result in results if "rows" in result.details]
    if not measured:
        return []
    lines = ["", "| model | tokens per step | program | step, s | tokens/s | MFU | peak GiB | its step / braid's |",
             "|---|---|---|---|---|---|---|---|"]
    for details in measured:
        for one in details["rows"]:
            ratio = f"{one['ratio']:.2f}" if "ratio" in one else ""
            mfu = f"{one['mfu']:.1%}" if "mfu" in one else ""
            lines.append(f"| {details['model']} | {details['batch']} x {details['context']} | {one['program']} "
                         f"| {one['seconds']:.4f} | {one['tokens_per_second']:,.0f} | {mfu} "
                         f"| {one['peak_bytes'] / 2**30:.1f} | {ratio} |")
    return lines + ["", "Medians; the first steps are dropped, and programs take turns, a step of one, a step of the other. "
                    "braid and PyTorch compute in bfloat16 with float32 masters (autocast). MFU is measured against the "
                    "bfloat16 product above."]


def write_markdown(path, environment, results):
    device = environment.get("device", {})
    counts = state_of(results)
    lines = [f"# braid on {device.get('name', 'a CUDA device')}", "",
             f"`scripts/check_cuda`, {environment['date']}, commit {environment['commit']}: {counts['ok']} ok, "
             f"{counts['FAILED']} failed, {counts['skipped']} skipped.", "",
             "| what | version |", "|---|---|"]
    built = environment["built"]
    versions = {"device": device.get("name"),
                "memory": f"{device['bytes'] / 2**30:.0f} GiB" if "bytes" in device else None,
                "compute capability": device.get("capability"),
                "driver": device.get("driver_version", device.get("driver")),
                "torch": environment["torch"], "CUDA of the programs": built["cuda"],
                "architectures": ", ".join(built["architectures"]), "host": environment["host"]}
    lines += [f"| {name} | {cell(value)} |" for name, value in versions.items() if value]
    lines += ["", "| check | result | seconds | number |", "|---|---|---|---|"]
    for result in results:
        lines.append(f"| {result.name} | {result.status} | {result.seconds:.1f} | {cell(result.number)} |")
    path.write_text("\n".join(lines + speed_lines(results)) + "\n")
