"""Vega-Lite specs compile with the real vega-lite without a complaint, and vega draws as many marks as there are values."""
import json
import os
import shutil
import subprocess

import harness
from harness import check, equal, hbmscope

NODE = shutil.which("node")
if not NODE:
    harness.skip("node is not installed")
MODULES = os.environ.get("HBMSCOPE_VEGA", os.path.join(harness.SOURCE, ".cache", "vega", "node_modules"))
if not os.path.isdir(os.path.join(MODULES, "vega-lite")):
    harness.skip("vega-lite is not there: npm install --prefix .cache/vega vega@5 vega-lite@5, or name its node_modules in HBMSCOPE_VEGA")

# Each line of standard input is a spec; each line of output says what the real packages make of it.
SCRIPT = r"""
import { createRequire } from 'node:module';
import readline from 'node:readline';
const require = createRequire(process.argv[2] + '/x.js');
const vega = require('vega'), lite = require('vega-lite');
for await (const line of readline.createInterface({ input: process.stdin })) {
  const spec = JSON.parse(line), complaints = [], marks = {};
  const say = (...words) => { complaints.push(words.map(String).join(' ')); return logger; };
  const logger = { level: () => logger, error: say, warn: say, info: () => logger, debug: () => logger };
  try {
    const compiled = lite.compile(spec, { logger }).spec;
    const view = new vega.View(vega.parse(compiled), { renderer: 'none', logger });
    await view.runAsync();
    const walk = (item, inside) => {
      if (item.marktype && item.role === 'mark') marks[item.marktype] = (marks[item.marktype] || 0) + item.items.length;
      for (const child of item.items || []) walk(child);
    };
    walk(view.scenegraph().root);
    const svg = await view.toSVG();
    console.log(JSON.stringify({ complaints, marks, svg: svg.length, lite: lite.version }));
  } catch (error) { console.log(JSON.stringify({ complaints: [...complaints, String(error)], marks })); }
}
"""


def expected(spec):
    """Marks by type, counted in the values themselves."""
    values = spec["data"]["values"]
    if "layer" not in spec:
        return {"rect": len(values)}
    marks = {"symbol": sum(value["mark"] != "none" for value in values), "line": sum(value["line"] for value in values)}
    for layer in spec["layer"]:
        if "data" in layer:
            marks["rule"] = len(layer["data"]["values"])
    return {kind: count for kind, count in marks.items() if count}


with harness.folder() as folder:
    single = hbmscope("run", "--seqlen", "2k", "--attention-share", "0.3", "--json", "-")
    names = [line.split()[0] for line in hbmscope("plot", "--list").splitlines() if not line.startswith(" ")]
    specs, runs = {}, harness.part_of_forward(folder)
    for name in names:
        specs[name, "forward"] = hbmscope("plot", runs, "--picture", name, "-o", "-", "--format", "vl.json",
                                          "--title", "<b>\"A title\"</b>")
        if name not in ("agreement", "sweep"):
            specs[name, "one run"] = hbmscope("plot", "-", "--picture", name, "-o", "-", "--format", "vl.json", text=single)
    rows = [row for row in harness.sweep_rows([(256, 64), (512, 64), (1024, 64)])]
    specs["sweep", "rows"] = hbmscope("plot", "-", "--picture", "sweep", "-o", "-", "--format", "vl.json",
                                      text="\n".join(map(json.dumps, rows)))
    # What the packages refuse, the test notices.
    broken = json.loads(specs["sweep", "rows"])
    broken["layer"][0]["encoding"]["x"]["type"] = "sideways"
    broken["layer"][0]["mark"] = {"type": "no such mark"}
    specs["sweep", "broken"] = json.dumps(broken)

    script = os.path.join(folder, "validate.mjs")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    run = subprocess.run([NODE, script, os.path.abspath(MODULES)], capture_output=True, text=True,
                         input="\n".join(json.dumps(json.loads(spec)) for spec in specs.values()) + "\n")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    equal("answers", len(answers), len(specs))
    for (key, text), answer in zip(specs.items(), answers):
        if key[1] == "broken":
            check("a broken spec is refused", answer["complaints"], answer)
            continue
        equal(f"complaints about {key}", answer["complaints"], [])
        got = {kind: count for kind, count in answer["marks"].items() if kind in ("rect", "symbol", "line", "rule") and count}
        equal(f"marks of {key}", got, expected(json.loads(text)))
    print(f"vega-lite {answers[0].get('lite')}: {len(specs)} specs")
harness.finish()
