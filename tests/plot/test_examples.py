"""The examples of docs/plots.md run as they stand there, each where its program exists."""
import json
import os
import re
import shutil
import subprocess
import sys

import harness
from harness import check, equal, hbmscope

EXAMPLES = os.path.join(harness.SOURCE, "docs", "plots")
with open(os.path.join(harness.SOURCE, "docs", "plots.md"), encoding="utf-8") as page:
    DOCUMENT = page.read()
ran = []


def quoted(name):
    """What the document shows is the file."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        check(f"docs/plots.md shows docs/plots/{name}", file.read().strip() in DOCUMENT)


def matplotlib_python():
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import matplotlib"], capture_output=True).returncode == 0:
            return python
    return None


with harness.folder() as folder:
    rows = os.path.join(folder, "rows.jsonl")
    results = [json.loads(hbmscope("run", "--seqlen", n, "--engine", "sim", "--json", "-")) for n in ("512", "1k", "2k")]
    with open(rows, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(result) + "\n" for result in results)
    for name in ("traffic.vl.json", "traffic.gp", "traffic.py"):
        quoted(name)

    gnuplot = shutil.which("gnuplot")
    if gnuplot and shutil.which("python3"):
        picture = os.path.join(folder, "gnuplot.svg")
        run = subprocess.run([gnuplot, "-c", os.path.join(EXAMPLES, "traffic.gp"), rows, picture], capture_output=True, text=True)
        equal("gnuplot's complaints", (run.returncode, run.stderr), (0, ""))
        with open(picture, encoding="utf-8") as file:
            svg = file.read()
        for name in ("naive", "flash_v1", "flash_v2"):
            check(f"gnuplot names {name}", name in svg)
        # Three marks a line, and one in the legend of each.
        equal("marks of gnuplot", len(re.findall(r"<use xlink:href='#gpPt\d+' transform='translate", svg)), 3 * 3 + 3)
        ran.append("gnuplot")

    python = matplotlib_python()
    if python:
        picture = os.path.join(folder, "matplotlib.svg")
        run = subprocess.run([python, os.path.join(EXAMPLES, "traffic.py"), harness.FORWARD, picture], capture_output=True, text=True)
        equal("matplotlib's complaints", (run.returncode, run.stderr), (0, ""))
        kinds = {"simulated": 0, "hw_counter": 0}
        for result in harness.forward_runs():
            for entry in (e for a in result["algorithms"] for e in a["traffic"] if e["boundary"] == "l2_hbm" and e["status"] == "ok"):
                kinds[entry["provenance"]] += 1
        equal("points of matplotlib", run.stdout, f"{kinds['simulated']} predicted, {kinds['hw_counter']} measured\n")
        check("matplotlib's picture", os.path.getsize(picture) > 10000)
        ran.append("matplotlib")

    node = shutil.which("node")
    modules = os.environ.get("HBMSCOPE_VEGA", os.path.join(harness.SOURCE, ".cache", "vega", "node_modules"))
    if node and os.path.isdir(os.path.join(modules, "vega-lite")):
        with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
            json.dump(results[0], file, indent=2)
        script = os.path.join(folder, "draw.mjs")
        with open(script, "w", encoding="utf-8") as file:
            file.write("""
import { createRequire } from 'node:module';
import fs from 'node:fs';
const [, , modules, spec, data] = process.argv;
const require = createRequire(modules + '/x.js');
const vega = require('vega'), lite = require('vega-lite');
const loader = vega.loader({ baseURL: data + '/' });
const view = new vega.View(vega.parse(lite.compile(JSON.parse(fs.readFileSync(spec, 'utf8'))).spec), { renderer: 'none', loader });
await view.runAsync();
const bars = [];
const walk = (item) => { if (item.marktype === 'rect' && item.role === 'mark') for (const bar of item.items) bars.push([bar.datum.row, bar.datum.direction, bar.datum.sum_bytes]); for (const child of item.items || []) walk(child); };
walk(view.scenegraph().root);
console.log(JSON.stringify(bars));
""")
        run = subprocess.run([node, script, os.path.abspath(modules), os.path.join(EXAMPLES, "traffic.vl.json"), folder], capture_output=True, text=True)
        equal("vega's complaints", (run.returncode, run.stderr), (0, ""))
        expected = []
        for algorithm in results[0]["algorithms"]:
            for boundary in harness.NAMES:
                one = harness.entry(algorithm, boundary, *harness.PREDICTED[boundary])
                row = f"{algorithm['name']} at {boundary}"
                expected += [[row, "read", one["read_bytes"]], [row, "written", one["write_bytes"]]]
        equal("bars of vega", sorted(json.loads(run.stdout or "[]")), sorted(expected))
        ran.append("Vega-Lite")

print("ran:", ", ".join(ran) or "none")
if not ran:
    harness.skip("none of gnuplot, matplotlib and vega-lite is installed")
harness.finish()
