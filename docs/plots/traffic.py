"""HBM bytes against N, predicted as lines and measured as marks, from lines of results that differ in N alone:
    hbmscope sweep --seqlen 1k:64k:x2 --engine sim -o rows.jsonl
    python3 docs/plots/traffic.py rows.jsonl traffic.svg"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

lines, marks = {}, {}
for text in open(sys.argv[1], encoding="utf-8"):
    result = json.loads(text)
    for algorithm in result["algorithms"]:
        for entry in algorithm["traffic"]:
            if entry["boundary"] != "l2_hbm" or entry["status"] != "ok":
                continue
            where = marks if entry["provenance"] == "hw_counter" else lines
            point = (result["shape"]["seqlen_kv"], entry["total_bytes"])
            where.setdefault(algorithm["name"], []).append(point)

figure, axes = plt.subplots(figsize=(8, 5))
for name, points in lines.items():
    axes.plot(*zip(*sorted(points)), label=f"{name}, predicted")
for name, points in marks.items():
    axes.plot(*zip(*sorted(points)), "o", fillstyle="none", label=f"{name}, measured")
axes.set(xscale="log", yscale="log", xlabel="N", ylabel="bytes through HBM")
axes.legend()
figure.savefig(sys.argv[2])
print(sum(map(len, lines.values())), "predicted,", sum(map(len, marks.values())), "measured")
