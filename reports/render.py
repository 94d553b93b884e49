#!/usr/bin/env python3
"""Renders the pages under reports/ from the saved runs beside them, so that no figure is typed by hand.

usage: reports/render.py [--check]      --check: exits with 1 if a page differs from its runs, and changes nothing
"""
import json, pathlib, sys

HERE = pathlib.Path(__file__).parent


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def size(n):
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= factor:
            value = n / factor
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    return f"{n} B"


def seconds(s):
    return f"{s * 1e3:.3g} ms" if s >= 1e-3 else f"{s * 1e6:.0f} us"


def ratio(measured, predicted):
    return f"{measured / predicted:.3f}" if predicted else "-"


def key_bytes(run):
    """K of one head; the runs are of 16-bit types."""
    return run["shape"]["seqlen_kv"] * run["shape"]["head_dim"] * 2


def shape_cells(s):
    return [f"{s['seqlen_q']:,}", str(s["head_dim"]), f"{s['batch']} x {s['num_heads']}", s["mask"]["kind"]]


def table(header, body):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(r) + " |" for r in body]


def entry(algorithm, boundary, provenance):
    found = [t for t in algorithm["traffic"] if (t["boundary"], t["provenance"]) == (boundary, provenance)]
    return found[-1] if found else None


def predict_anew(runs, predictions):
    """Puts what the model as it is now predicts (hbmscope_predict) into saved runs, whose own predictions are of their day."""
    now = {(p["algorithm"], json.dumps(p["shape"], sort_keys=True)): p for p in predictions}
    for run in runs:
        for a in run["algorithms"]:
            p = now.get((a["name"], json.dumps(run["shape"], sort_keys=True)))
            for boundary, provenance in (("sm_l2", "closed_form"), ("l2_hbm", "simulated")):
                old = entry(a, boundary, provenance)
                if p and old:
                    old.update(p[boundary])


def received_again(algorithm, boundary, key):
    """What a cluster loads once and the hardware counts as it arrives in each SM: K and V, in all SMs but one."""
    if (boundary, key) != ("sm_l2", "read_bytes"):
        return 0
    tensors = entry(algorithm, "sm_l2", "closed_form")["tensors"]
    return (algorithm["plan"].get("cluster", 1) - 1) * (tensors["K"]["read_bytes"] + tensors["V"]["read_bytes"])


def pair(algorithm, boundary, predicted, key):
    p, m = entry(algorithm, boundary, predicted), entry(algorithm, boundary, "hw_counter")
    if not p or p[key] is None:
        return ["-", "-", "-"]
    expected = p[key] + received_again(algorithm, boundary, key)
    if not m or m[key] is None:
        return [size(expected), "-", "-"]
    return [size(expected), size(m[key]), ratio(m[key], expected)]


def looked_up(runs):
    """As `worst`, of the bytes that L2 looked up for clusters against those they load, which is what sharing saves."""
    found = []
    for run in runs:
        lookups = {p["name"]: p["hw"]["l2_lookup_bytes"] for p in run["device"].get("pipelines", [])}
        for a in run["algorithms"]:
            if a["plan"].get("cluster", 1) > 1 and lookups.get(a["name"]):
                cell = ratio(lookups[a["name"]], entry(a, "sm_l2", "closed_form")["read_bytes"])
                found.append((abs(float(cell) - 1), cell, ", ".join(shape_cells(run["shape"]))))
    return max(found)[1:] + (len(found),) if found else None


def worst(runs, names, boundary, predicted, key, keep=lambda run, a: True):
    """The ratio farthest from 1 and where it is."""
    found = []
    for run in runs:
        for a in run["algorithms"]:
            cells = pair(a, boundary, predicted, key)
            if a["name"] in names and cells[2] != "-" and keep(run, a):
                found.append((abs(float(cells[2]) - 1), cells[2], ", ".join(shape_cells(run["shape"]))))
    return max(found)[1:] + (len(found),) if found else None


def times_table(runs, roof, peers):
    """Time of each pipeline, its share of the tensor roof that it can reach, and the peers."""
    body = []
    for run in runs:
        s = run["shape"]
        pipelines = {p["name"]: p for p in run["device"].get("pipelines", [])}
        taken = {name: p["time"]["measured_median_s"] for name, p in pipelines.items() if p["time"]["measured_median_s"]}
        if "flash_v2" not in taken:
            continue
        at = (s["batch"], s["num_heads"], s["seqlen_q"], s["head_dim"], s["mask"]["kind"])
        together = {name: peers[(name, *at)]["median_s"] for name in ("fa2", "cudnn", "flash_v2", "flash_v3") if (name, *at) in peers}
        best = min((n for n in taken if n.startswith("flash")), key=taken.get)

        def speed(name, tensor_roof):
            if name not in taken:
                return ["-", "-"]
            rate = pipelines[name]["achieved_flop_per_s"]
            return [f"{rate / 1e12:.0f}", f"{rate / roof[tensor_roof]:.0%}" if roof.get(tensor_roof) else "-"]

        def against(name, implementation):
            return f"{together[implementation] / together[name]:.2f}x" if implementation in together and name in together else "-"

        a = next(x for x in run["algorithms"] if x["name"] == best)
        hbm = entry(a, "l2_hbm", "hw_counter")
        intensity = a["flops"]["matmul"] / hbm["total_bytes"] if hbm and hbm["total_bytes"] else None
        tensor = roof.get("wgmma" if best == "flash_v3" else "mma_sync")
        ridge = tensor / roof["read"] if tensor and roof.get("read") else None
        body.append(shape_cells(s) + [seconds(taken["naive"]) if "naive" in taken else "does not fit", seconds(taken["flash_v2"]),
                                      seconds(taken["flash_v3"]) if "flash_v3" in taken else "-",
                                      f"{taken['naive'] / taken[best]:.2f}x" if "naive" in taken else "-"]
                    + speed("flash_v2", "mma_sync") + speed("flash_v3", "wgmma")
                    + [against("flash_v2", "fa2"), against("flash_v3", "fa2"), against("flash_v3", "cudnn"),
                       f"{intensity:,.0f}" if intensity else "-",
                       "-" if not intensity or not ridge else "HBM" if intensity < ridge else "tensor"])
    text = ["## Time", "",
            "Speed-up: naive over the faster of flash_v2 and flash_v3. TFLOP/s count live pairs. Of the roof: of the rate that `gpu probe` "
            "measured on mma.sync for flash_v2, on wgmma for flash_v3. FA2 and cuDNN: PyTorch's FlashAttention-2 and cuDNN backends over "
            "ours, timed in turns in one process (`peers.jsonl`), above 1 where ours is faster. Intensity: FLOP of live pairs a counted HBM byte, of the faster.", ""]
    return text + table(["N", "d", "batch x heads", "mask", "naive", "flash_v2", "flash_v3", "speed-up", "v2 TFLOP/s", "of the roof",
                         "v3 TFLOP/s", "of the roof", "FA2 / v2", "FA2 / v3", "cuDNN / v3", "FLOP/B", "bound"], body) + [""]


def forward_page(folder):
    runs = rows(folder / "forward.jsonl")
    if not runs:
        return None
    predict_anew(runs, rows(folder / "forward_model.jsonl"))
    probe = json.loads((folder / "probe.json").read_text()) if (folder / "probe.json").exists() else {"roofs": []}
    roof = {r["name"]: r["rate"] for r in probe["roofs"]}
    peers = {}
    for p in rows(folder / "peers.jsonl"):
        s = p["shape"]
        peers[(p["implementation"], s["batch"], s["num_heads"], s["seqlen_q"], s["head_dim"], s["mask"]["kind"])] = p
    meta, device = runs[0]["meta"], next(r["device"] for r in runs if r["device"].get("name"))
    out = [f"# Forward pass on {device['name']}: predicted and measured", "",
           f"Driver {device['driver']}, CUDA {device['cuda_runtime']}, {runs[0]['shape']['dtype']}, cold L2. Rendered by "
           "`reports/render.py` from `forward.jsonl` (`reports/forward.sh`), `peers.jsonl` (`reports/peers.py`) and "
           "`probe.json` (`hbmscope gpu probe`). Predicted: the closed form at SM-L2, the simulated L2 at HBM, with the "
           "clocks of each launch (docs/l2-model.md), both of the present model (`forward_model.jsonl`), not of the model of the day of the runs. Measured: the "
           "hardware's counters. Ratios are measured over predicted. Of flash_v3 in clusters of two CTAs (`cluster` in the plan) the "
           "SM-L2 reads predicted are those received: K and V twice what the closed form has them load.", ""]
    equal = [(a["name"], entry(a, "sm_l2", "kernel_counter")["total_bytes"] == entry(a, "sm_l2", "closed_form")["total_bytes"])
             for r in runs for a in r["algorithms"] if entry(a, "sm_l2", "kernel_counter") and entry(a, "sm_l2", "kernel_counter")["total_bytes"] is not None]
    out += ["## How well they agree", "",
            f"Kernels' own counters equal the closed form in {sum(e for _, e in equal)} of {len(equal)} runs of an algorithm.", ""]
    body = []
    for label, names, boundary, predicted, key, keep in (
            ("SM-L2 reads, naive", ["naive"], "sm_l2", "closed_form", "read_bytes", lambda r, a: True),
            ("SM-L2 reads, flash_v1 and flash_v2", ["flash_v1", "flash_v2"], "sm_l2", "closed_form", "read_bytes", lambda r, a: True),
            ("SM-L2 reads, flash_v3 (its copies count the zeros beyond the last key)", ["flash_v3"], "sm_l2", "closed_form", "read_bytes",
             lambda r, a: True),
            ("SM-L2 writes, all", ["naive", "flash_v1", "flash_v2", "flash_v3"], "sm_l2", "closed_form", "write_bytes", lambda r, a: True),
            ("HBM reads, naive, K of a head up to 15 MiB", ["naive"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: key_bytes(r) <= 15 << 20),
            ("HBM reads, naive, beyond", ["naive"], "l2_hbm", "simulated", "read_bytes", lambda r, a: key_bytes(r) > 15 << 20),
            ("HBM reads, flash_v2, no mask, K and V in flight up to 15 MiB", ["flash_v2"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: r["shape"]["mask"]["kind"] == "none" and a["kv_in_flight_bytes"] <= 15 << 20),
            ("HBM reads, flash_v2, no mask, beyond", ["flash_v2"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: r["shape"]["mask"]["kind"] == "none" and a["kv_in_flight_bytes"] > 15 << 20),
            ("HBM reads, flash_v2, causal", ["flash_v2"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: r["shape"]["mask"]["kind"] == "causal"),
            ("HBM reads, flash_v3, no mask", ["flash_v3"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: r["shape"]["mask"]["kind"] == "none"),
            ("HBM reads, flash_v3, causal", ["flash_v3"], "l2_hbm", "simulated", "read_bytes",
             lambda r, a: r["shape"]["mask"]["kind"] == "causal"),
            ("HBM writes, all", ["naive", "flash_v1", "flash_v2", "flash_v3"], "l2_hbm", "simulated", "write_bytes", lambda r, a: True)):
        w = worst(runs, names, boundary, predicted, key, keep)
        if w:
            body.append([label, str(w[2]), w[0], w[1]])
        if names == ["flash_v3"] and boundary == "sm_l2" and (w := looked_up(runs)):
            body.append(["L2 look-ups for flash_v3 in clusters, against the closed form's reads", str(w[2]), w[0], w[1]])
    out += table(["what", "runs", "farthest ratio", "at (N, d, batch x heads, mask)"], body) + [""]
    for boundary, predicted, title in (("sm_l2", "closed_form", "Bytes between SMs and L2"), ("l2_hbm", "simulated", "Bytes through HBM")):
        body = []
        for run in runs:
            for a in run["algorithms"]:
                cells = pair(a, boundary, predicted, "read_bytes") + pair(a, boundary, predicted, "write_bytes")
                if cells[0] != "-":
                    body.append(shape_cells(run["shape"]) + [a["name"]] + cells)
        out += [f"## {title}", ""]
        out += table(["N", "d", "batch x heads", "mask", "algorithm", "reads", "measured", "ratio", "writes", "measured", "ratio"], body) + [""]
    out += times_table(runs, roof, peers)
    return "\n".join(out)


def ladder_page(folder):
    """The Hopper kernel rung by rung, beside its peers."""
    runs, peers = rows(folder / "ladder.jsonl"), rows(folder / "peers.jsonl")
    if not runs or not peers:
        return None
    roof = {r["name"]: r["rate"] for r in json.loads((folder / "probe.json").read_text())["roofs"]}
    rate, names, shapes = {}, [], []
    for p in peers:
        s = p["shape"]
        shape = (s["head_dim"], s["mask"]["kind"], s["seqlen_q"])
        rate[(p["implementation"], *shape)] = p["tflops"]
        names += [p["implementation"]] if p["implementation"] not in names else []
        shapes += [shape] if shape not in shapes else []
    meta, device = peers[0]["meta"], runs[0]["device"]
    columns = [(d, mask) for d in sorted({x[0] for x in shapes}) for mask in ("none", "causal")]
    out = [f"# The kernels against each other on {device['name']}", "",
           f"Driver {device['driver']}, PyTorch {meta['versions']['torch']}, cuDNN {meta['versions']['cudnn']}, bf16, 16,384 tokens a batch, "
           "2,048 columns over all heads. Rendered by `reports/render.py` from `peers.jsonl` (`reports/peers.py`: all in one process, "
           "in turns) and `ladder.jsonl` (`hbmscope run --rungs`). TFLOP/s = 4 B H N^2 d over the median, halved under the causal mask.", "",
           "## TFLOP/s at N = 8,192", ""]
    body = []
    for name in names:
        cells = [rate.get((name, d, mask, 8192)) for d, mask in columns]
        body.append([name] + [f"{c:.0f}" if c else "-" for c in cells])
    out += table(["kernel"] + [f"d = {d}{', causal' if mask == 'causal' else ''}" for d, mask in columns], body) + [""]
    out += ["## flash_v3 over N", ""]
    body = []
    for d, mask, n in sorted(shapes, key=lambda x: (x[0], x[1] != "none", x[2])):
        v3 = rate.get(("flash_v3", d, mask, n))
        over = lambda name: f"{v3 / rate[(name, d, mask, n)]:.2f}x" if v3 and (name, d, mask, n) in rate else "-"
        body.append([f"{n:,}", str(d), mask, f"{v3:.0f}" if v3 else "-", over("cudnn"), over("fa2"), over("flash_v2"), over("flash_v3e")])
    out += table(["N", "d", "mask", "TFLOP/s", "of cuDNN", "of FA2", "of flash_v2", "of flash_v3e"], body) + [""]
    out += ["## What each moved and computed", "",
            "Timed and counted by `run` at N = 8,192: longer runs of one kernel, so with lower clocks than above. Of the roof: of the wgmma "
            f"rate that `gpu probe` measured, {roof['wgmma'] / 1e12:.0f} TFLOP/s. Bytes are the hardware's counters.", ""]
    body = []
    for run in runs:
        s = run["shape"]
        for p in sorted(run["device"]["pipelines"], key=lambda p: p["name"] + "~"):
            achieved, hw, kernel = p["achieved_flop_per_s"], p["hw"], p["stages"][0]["kernel"]
            known = lambda key: size(hw[key]) if hw.get(key) is not None else "-"
            body.append([str(s["head_dim"]), s["mask"]["kind"], p["name"], f"{achieved / 1e12:.0f}" if achieved else "-",
                         f"{achieved / roof['wgmma']:.0%}" if achieved else "-", known("sm_l2_read_bytes"), known("sm_l2_write_bytes"),
                         known("l2_hbm_read_bytes"), known("l2_hbm_write_bytes"), *resources(kernel)])
    out += table(["d", "mask", "kernel", "TFLOP/s", "of the roof", "SM-L2 reads", "SM-L2 writes", "HBM reads", "HBM writes"]
                 + RESOURCES, body) + ["", RESOURCES_NOTE, ""]
    return "\n".join(out)


RESOURCES = ["registers", "SMEM", "spilled"]
RESOURCES_NOTE = ("Registers of a thread as the kernel starts, before warpgroups trade any; SMEM of a CTA; spilled: local memory of a "
                  "thread.")


def resources(kernel):
    """Cells of what a kernel takes of an SM."""
    if kernel["registers"] is None:
        return ["-"] * 3
    return [str(kernel["registers"]), f"{kernel['smem_bytes']:,} B", f"{kernel['local_bytes']} B"]


def tiles_page(folder):
    """What the search found, one table a head_dim: kernels down, shapes across."""
    path = folder / "tiles.json"
    if not path.exists():
        return None
    search = json.loads(path.read_text())
    meta, searches = search["meta"], search["tile_searches"]
    out = [f"# Tiles and schedules of flash_v3 on {meta['gpu']}", "",
           f"Driver {meta['gpu_driver']}, CUDA {meta['cuda_runtime']}, bf16, 2,048 columns over all heads. Rendered by `reports/render.py` from "
           f"`tiles.json`: `{' '.join(meta['argv'])}`, in a build with `HBMSCOPE_TILE_SEARCH`. Each kernel was held against fp64, then all took "
           "turns. TFLOP/s at the median, halved under the causal mask; the fastest of each column in bold. A name gives rows x keys of the "
           "tile, and what is chosen: q, Q in registers; first, first scores in turn; turns, all products in turn; grid, a "
           "CTA for each query tile and not CTAs that stay; cluster, two CTAs that share K and V by multicast; s3 "
           "and s4, three and four stages.", ""]
    for d in sorted({s["shape"]["head_dim"] for s in searches}):
        of_d = [s for s in searches if s["shape"]["head_dim"] == d]
        kernels = {k["name"]: k for s in of_d for k in s["kernels"]}
        rate = lambda s, name: next((k["achieved_flop_per_s"] for k in s["kernels"] if k["name"] == name), None) or 0
        mean = lambda name: sum(rate(s, name) / max(rate(s, n) for n in kernels) for s in of_d if rate(s, name)) / len(of_d)
        body = []
        for name in sorted(kernels, key=mean, reverse=True):
            cells = []
            for s in of_d:
                r = rate(s, name)
                text = f"{r / 1e12:.0f}" if r else "-"
                cells.append(f"**{text}**" if r and r == max(rate(s, n) for n in kernels) else text)
            body.append([name] + cells + resources(kernels[name]["kernel"]))
        shapes = [f"{s['shape']['seqlen_q']:,}{', causal' if s['shape']['mask']['kind'] == 'causal' else ''}" for s in of_d]
        out += [f"## head_dim {d}", ""] + table(["kernel"] + shapes + RESOURCES, body) + [""]
    out += [RESOURCES_NOTE + " `flash_v3` is what the measured build ships; where it stands in a column says how well its tile was chosen.", ""]
    return "\n".join(out)


PAGES = {"forward.md": forward_page, "ladder.md": ladder_page, "tiles.md": tiles_page}


def main():
    stale = []
    for folder in sorted(p for p in HERE.iterdir() if p.is_dir()):
        for name, render in PAGES.items():
            page, target = render(folder), folder / name
            if page is None:
                continue
            if "--check" in sys.argv:
                if not target.exists() or target.read_text() != page:
                    stale.append(str(target))
            else:
                target.write_text(page)
    if stale:
        sys.exit("differs from its runs (reports/render.py mends it): " + ", ".join(stale))


if __name__ == "__main__":
    main()
