#!/usr/bin/env python3
"""What the two orders that start the longest CTAs first cost under a causal mask, by algorithm and shape.

    reports/order_times.py HBMSCOPE > order_times.jsonl
"""
import json
import subprocess
import sys
import tempfile

SHAPES = [(seqlen, head_dim, 1024 // head_dim) for head_dim in (64, 128, 256) for seqlen in (4096, 8192, 16384, 32768)]
SHAPES += [(65536, 128, 4), (8192, 128, 32), (2048, 128, 32)]


def row(run, algorithm):
    """Of a result of `hbmscope run --json`, what matters here."""
    counted = [t["read_bytes"] for t in algorithm["traffic"] if t["boundary"] == "l2_hbm" and t["provenance"] == "hw_counter"]
    return {"git": run["meta"]["git"], "gpu": run["gpu"]["name"], "algorithm": algorithm["name"], "shape": run["shape"],
            "plan": algorithm["plan"], "measured_median_s": algorithm["time"]["measured_median_s"],
            "hbm_read_bytes": counted[0] if counted else None}


def main():
    for seqlen, head_dim, heads in SHAPES:
        for order in ("longest-first", "longest-first-interleaved"):
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                subprocess.run([sys.argv[1], "run", "--engine", "gpu", "--dtype", "bf16", "--algorithm", "flash_v2,flash_v3", "--causal",
                                "--seqlen", str(seqlen), "--head-dim", str(head_dim), "--heads", str(heads), "--order", order,
                                "--repeats", "7", "--json", file.name], check=True, stdout=subprocess.DEVNULL)
                run = json.load(open(file.name))
            for algorithm in run["algorithms"]:
                print(json.dumps(row(run, algorithm), separators=(",", ":")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
