"""What the tests of pictures share: running hbmscope, checks that count, and skipping where a program is missing."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
FORWARD = os.path.join(SOURCE, "reports", "h200", "forward.jsonl")
_failures = 0
_checks = 0


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def check(what, holds, details=""):
    global _failures, _checks
    _checks += 1
    if not holds:
        _failures += 1
        print(f"FAILED: {what} {details}")


def equal(what, got, expected):
    check(what, got == expected, f"\n  got      {str(got)[:400]}\n  expected {str(expected)[:400]}")


def finish():
    print(f"{_checks} checks, {_failures} failed")
    check("something was checked", _checks > 0)
    sys.exit(1 if _failures else 0)


def run(*command, text=None):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{' '.join(command)[:200]}: {result.stderr}")
        sys.exit(1)
    return result.stdout


def hbmscope(*arguments, text=None):
    return run(PROGRAM, *arguments, text=text)


def folder():
    return tempfile.TemporaryDirectory(prefix="hbmscope_plot_")


def forward_runs():
    with open(FORWARD, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def part_of_forward(folder):
    """A file with the runs of one head dimension: a third of the time to read."""
    path = os.path.join(folder, "part.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(run) + "\n" for run in forward_runs() if run["shape"]["head_dim"] == 128)
    return path


def entry(algorithm, boundary, *provenances):
    """The bytes of an algorithm's own tiles, by the first of these witnesses that has some."""
    for provenance in provenances:
        for one in algorithm["traffic"]:
            if (one["boundary"], one["provenance"], one["status"]) == (boundary, provenance, "ok") and \
                    one["plan"] == algorithm["plan"]:
                return one
    return None


PREDICTED = {"l2_hbm": ("simulated",), "sm_l2": ("closed_form", "simulated"), "compulsory": ("formula",)}
MEASURED = ("hw_counter", "kernel_counter")
NAMES = {"l2_hbm": "HBM", "sm_l2": "SM-L2"}


def sweep_rows(points):
    """Rows as `sweep` writes them, of naive and flash_v2 at SM-L2, with their textbook bytes."""
    for index, (length, width) in enumerate(points):
        shape = {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "seqlen_q": length, "seqlen_kv": length,
                 "head_dim": width, "head_dim_v": width, "dtype": "fp16", "pass": "forward",
                 "mask": {"kind": "none", "alignment": "bottom_right", "window_left": None, "window_right": None}}
        passes = -(-length // 128)
        of = {"naive": 8 * length * length + 8 * length * width,
              "flash_v2": 4 * passes * length * width + 4 * length * width + 4 * length}
        algorithms = [
            {"name": name, "traffic": [
                {"boundary": "sm_l2", "provenance": "closed_form", "status": "ok", "reason": None,
                 "read_bytes": total - 2 * length * width, "write_bytes": 2 * length * width, "total_bytes": total}],
             "flops": {"matmul": 4 * length * length * width},
             "memory": {"intermediate_bytes": 4 * length * length if name == "naive" else 4 * length}}
            for name, total in of.items()]
        yield {"schema_version": "1.0",
               "sweep": {"index": index, "key": f"{index:016x}", "axes": {"seqlen": length, "head_dim": width},
                         "status": "ok", "reason": None},
               "meta": {"tool": "hbmscope", "version": "0.1.0", "git": "unknown"}, "shape": shape,
               "gpu": {"name": "H200"}, "algorithms": algorithms}
