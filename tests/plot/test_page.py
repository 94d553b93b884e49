"""Opens pages of pictures in a real Chromium: nothing complains, every mark is there with the file's value, and keyboard,
pointer, dark mode and print work."""
import json
import os

import chromium
import harness
from harness import check, entry, equal, hbmscope

BROWSER = chromium.find()
if not BROWSER:
    harness.skip("no Chromium is installed")


def expected_bars(run):
    """Every bar of the traffic picture: its values, as the result has them."""
    bars = []
    for algorithm in run["algorithms"]:
        wanted = [entry(algorithm, "compulsory", "formula")]
        for boundary in ("l2_hbm", "sm_l2"):
            wanted += [entry(algorithm, boundary, *harness.PREDICTED[boundary]), entry(algorithm, boundary, *harness.MEASURED)]
        for one in filter(None, wanted):
            tensors = one["tensors"] or {"": {"read_bytes": one["read_bytes"], "write_bytes": one["write_bytes"]}}
            bars.append(sorted(t["read_bytes"] + t["write_bytes"] for t in tensors.values()))
    return bars


def expected_lines(runs):
    """Series of the sweep picture: N to bytes of one head."""
    series = {}
    for run in runs:
        heads = run["shape"]["batch"] * run["shape"]["num_heads"]
        for algorithm in run["algorithms"]:
            for boundary, name in harness.NAMES.items():
                for witnesses, suffix in ((harness.PREDICTED[boundary], ""), (harness.MEASURED, ", measured")):
                    one = entry(algorithm, boundary, *witnesses)
                    if one:
                        key = f"{algorithm['name']} at {name}{suffix}"
                        series.setdefault(key, {})[run["shape"]["seqlen_q"]] = one["total_bytes"] / heads
    return series


LINES = """(() => {
  const figure = document.getElementById(%s), out = {};
  const rows = [...figure.querySelectorAll('tbody tr')];
  for (const group of figure.querySelectorAll('g.series')) {
    const column = Number(group.dataset.column);
    const cells = rows.filter((row) => row.cells[column].textContent.trim() !== '');
    out[group.dataset.toggle] = {
      values: cells.map((row) => [Number(row.cells[0].textContent), Number(row.cells[column].textContent)]),
      marks: (group.querySelector('.dots').getAttribute('d').match(/M/g) || []).length,
    };
  }
  return out;
})()"""


BARS = """[...document.querySelectorAll('#traffic figure')].map((figure) => [...figure.querySelectorAll('g.bar')].map(
    (bar) => [...bar.querySelectorAll('rect.mark')].map((rect) => Number(rect.dataset.value)).sort((a, b) => a - b)))"""


def forward(page, path):
    runs = harness.forward_runs()
    page.open(path)
    equal("sections", page.run("[...document.querySelectorAll('main > section')].map((s) => s.id)"),
          ["traffic", "agreement", "roofline", "sweep", "sram", "memory", "amdahl", "error", "tiles"])

    equal("bars of all results", page.run(BARS), [expected_bars(run) for run in runs])

    groups = {}
    for run in runs:
        groups.setdefault((run["shape"]["head_dim"], run["shape"]["mask"]["kind"]), []).append(run)
    equal("sweeps", page.run("document.querySelectorAll('#sweep figure').length"), len(groups))
    for index, ((width, mask), of) in enumerate(groups.items()):
        label = page.run(f"document.querySelectorAll('#sweep option')[{index}].textContent")
        equal("the label of a sweep", label, f"head_dim {width}, mask {mask}")
        drawn, expected = page.run(LINES % json.dumps(f"sweep-{index}")), expected_lines(of)
        equal("series", sorted(drawn), sorted(expected))
        for name, values in expected.items():
            equal(f"values of {name}", drawn[name]["values"], [[n, values[n]] for n in sorted(values)])
            equal(f"marks of {name}", drawn[name]["marks"], len(values))

    pairs = sum(1 for run in runs for a in run["algorithms"] for b in harness.NAMES
                if entry(a, b, *harness.PREDICTED[b]) and entry(a, b, *harness.MEASURED))
    equal("marks of agreement", page.run("""[...document.querySelectorAll('#agreement .dots')].reduce(
        (sum, path) => sum + path.getAttribute('d').match(/M/g).length, 0)"""), pairs)
    return runs, groups


def keyboard(page, runs, groups):
    """Tab reaches the first chart, of the largest shape; arrows go along a bar and on to the next; values are those of the
    result."""
    lengths = [run["shape"]["seqlen_q"] for run in runs]
    opened = lengths.index(max(lengths))
    equal("what is shown", page.run("[...document.querySelectorAll('#traffic figure')].filter((f) => !f.hidden).map((f) => f.id)"),
          [f"traffic-{opened}"])
    for _ in range(40):
        page.key("Tab")
        if page.run("document.activeElement.className") == "chart":
            break
    equal("the chart in focus", page.run("document.activeElement.closest('figure').id"), f"traffic-{opened}")
    check("its focus is seen", page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid")
    readout = f"document.querySelector('#traffic-{opened} .readout').textContent"
    first = entry(runs[opened]["algorithms"][0], "compulsory", "formula")["tensors"]
    page.key("ArrowRight")
    equal("the first mark", page.run(readout), f"naive, compulsory: Q: {first['Q']['read_bytes']:,} B")
    page.key("ArrowRight")
    equal("the next mark", page.run(readout), f"naive, compulsory: K: {first['K']['read_bytes']:,} B")
    page.key("End")
    equal("the last mark", page.run(readout), f"naive, compulsory: O: {first['O']['write_bytes']:,} B")
    page.key("Home")
    page.key("ArrowDown")
    hbm = entry(runs[opened]["algorithms"][0], "l2_hbm", "simulated")["tensors"]["Q"]
    equal("the bar below", page.run(readout), f"naive, HBM, predicted: Q: {hbm['read_bytes'] + hbm['write_bytes']:,} B")
    check("the cursor is seen", page.run(f"getComputedStyle(document.querySelector('#traffic-{opened} .cursor')).display") != "none")
    page.key("Escape")
    equal("nothing after Escape", page.run(readout), "")

    page.run("document.querySelector('#sweep-0 .chart').focus()")
    page.key("ArrowRight")
    page.key("ArrowRight")
    (of,) = (of for key, of in groups.items() if key == (64, "none"))
    value = expected_lines(of)["naive at HBM"][1024]
    equal("a mark of a line", page.run("document.querySelector('#sweep-0 .readout').textContent"),
          f"naive at HBM: {int(value):,} B at 1,024")


def pick(page, picture, index):
    page.run(f"(() => {{ const s = document.getElementById('{picture}-pick'); s.selectedIndex = {index}; s.dispatchEvent(new Event('change')); }})()")


def pointer_and_controls(page):
    pick(page, "traffic", 0)
    page.run("document.querySelector('#traffic').scrollIntoView()")
    box = page.run("""(() => { const b = document.querySelector('#traffic-0 rect.mark[data-name$=": S"]').getBoundingClientRect();
                      return [b.x + b.width / 2, b.y + b.height / 2]; })()""")
    page.move(5, 5)
    page.move(*box)
    page.move(box[0] + 1, box[1])
    check("a bar under the pointer is read", page.run("document.querySelector('#traffic-0 .readout').textContent").startswith("naive, HBM, predicted: S: "))

    shown = "[...document.querySelectorAll('#traffic-0 g.bar')].filter((bar) => getComputedStyle(bar).display !== 'none').length"
    before = page.run(shown)
    page.run("[...document.querySelectorAll('#traffic-0 .toggles button')].find((b) => b.textContent === 'measured').click()")
    check("measured bars hide", 0 < page.run(shown) < before)
    equal("the button tells", page.run("document.querySelectorAll('#traffic-0 .toggles [aria-pressed=false]').length"), 1)
    page.run("document.querySelector('#traffic-0 .toggles [aria-pressed=false]').click()")
    equal("and show again", page.run(shown), before)

    pick(page, "traffic", 3)
    equal("one result is shown", page.run("[...document.querySelectorAll('#traffic figure')].filter((f) => !f.hidden).map((f) => f.id)"), ["traffic-3"])


CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  const light = (text) => { const [r, g, b] = parse(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (text) => { const l = light(text); return (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05); };
  const least = (selector, property) => Math.min(...[...document.querySelectorAll(selector)].map((e) => contrast(getComputedStyle(e)[property])));
  return {ground, text: least('figure:not([hidden]) text.ink', 'fill'), soft: least('figure:not([hidden]) text.soft', 'fill'),
          caption: least('figcaption p', 'color'), lines: least('figure:not([hidden]) g.series', 'stroke'), bars: least('figure:not([hidden]) rect.mark', 'fill')};
})()"""


def themes(page):
    for scheme, is_dark in (("light", False), ("dark", True)):
        page.media(prefers_color_scheme=scheme)
        seen = page.run(CONTRAST)
        check(f"the ground is {scheme}", (seen["ground"] < 0.2) == is_dark, seen)
        check(f"text is readable in {scheme}", min(seen["text"], seen["soft"], seen["caption"]) >= 4.5, seen)
        check(f"lines and bars stand out in {scheme}", min(seen["lines"], seen["bars"]) >= 3, seen)
        page.run("document.getElementById('theme').click()")
        check("the button turns it round", (page.run(CONTRAST)["ground"] < 0.2) != is_dark)
        page.run("document.getElementById('theme').click()")
        page.run("delete document.documentElement.dataset.theme")  # whose choice outlives the system's
    page.media("print", prefers_color_scheme="dark")
    check("paper is light", page.run(CONTRAST)["ground"] > 0.9)
    equal("no buttons on paper", page.run("[...document.querySelectorAll('button, .toggles')].filter((e) => getComputedStyle(e).display !== 'none').length"), 0)
    page.media()


def accessible(page):
    equal("every drawing has a role and a name", page.run("[...document.querySelectorAll('svg')].filter((s) => s.getAttribute('role') !== 'img' || !s.getAttribute('aria-label')).length"), 0)
    equal("every heading of a table has a scope", page.run("[...document.querySelectorAll('th')].filter((h) => !['row', 'col'].includes(h.scope)).length"), 0)
    equal("ids are unique", page.run("(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size; })()"), 0)
    equal("controls have names", page.run("[...document.querySelectorAll('select')].filter((s) => !s.labels.length).length"), 0)
    equal("a table each", page.run("document.querySelectorAll('figure').length - document.querySelectorAll('figure table').length"), 0)


OVERLAPS = """(() => { const bad = [];
      for (const svg of document.querySelectorAll('figure:not([hidden]) svg')) {
        const boxes = [...svg.querySelectorAll('text')].map((t) => ({t: t.textContent, b: t.getBoundingClientRect(), s: svg.getBoundingClientRect()}));
        boxes.forEach((one, i) => { if (one.b.right > one.s.right + 1 || one.b.left < one.s.left - 1) bad.push('outside: ' + one.t);
          boxes.slice(i + 1).forEach((two) => {
            const w = Math.min(one.b.right, two.b.right) - Math.max(one.b.left, two.b.left), h = Math.min(one.b.bottom, two.b.bottom) - Math.max(one.b.top, two.b.top);
            if (w > 1 && h > 3) bad.push(svg.id + ': ' + one.t + ' / ' + two.t); }); });
      }
      return bad; })()"""


def overlaps(page, name):
    """Texts of a drawing never lie on each other."""
    equal(f"texts that overlap in {name}", page.run(OVERLAPS), [])


# Milliseconds until the page's script has done its work, and those that the first keys take to be answered.
INTERACTIVE = """(() => {
  const before = performance.now();
  const chart = document.querySelector('#sweep-0 .chart');
  chart.focus();
  chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
  if (document.querySelector('#sweep-0 .readout').textContent === '') throw new Error('no answer to a key');
  const answered = performance.now() - before;
  chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  return performance.getEntriesByName('interactive')[0].startTime + answered;
})()"""


def large(page, folder):
    """Ten thousand results: small, quick, and all of them there."""
    rows = list(harness.sweep_rows((64 * (i % 2500 + 1), (32, 64, 128, 256)[i // 2500]) for i in range(10000)))
    path = os.path.join(folder, "large.html")
    hbmscope("plot", "-", "-o", path, text="\n".join(map(json.dumps, rows)))
    size = os.path.getsize(path)
    check("a page of 10,000 results is below 5 MB", size < 5e6, size)
    # By the page's own clock, from the navigation on: how long Chromium takes to start, or to answer this test, is not the
    # page's. One more try, as a machine may have been busy.
    times = []
    for _ in range(2):
        page.open(path)
        times.append(page.run(INTERACTIVE) / 1000)
        if times[-1] < 2:
            break
    check("it is interactive within 2 s", min(times) < 2, times)
    page.run("document.querySelector('#sweep-0 .chart').focus()")
    page.key("End")
    page.key("ArrowRight")
    answer = page.run("document.querySelector('#sweep-0 .readout').textContent")
    total = rows[1]["algorithms"][0]["traffic"][0]["total_bytes"]
    equal("and answers", answer, f"naive at SM-L2: {total:,} B at 128")
    for index in range(4):
        drawn = page.run(LINES % json.dumps(f"sweep-{index}"))
        part = rows[2500 * index:2500 * (index + 1)]
        for place, name in enumerate(("naive", "flash_v2")):
            equal("all its values", drawn[name + " at SM-L2"]["values"],
                  [[row["shape"]["seqlen_q"], row["algorithms"][place]["traffic"][0]["total_bytes"]] for row in part])
    print(f"10,000 results: {size / 1e6:.2f} MB, interactive in {' and '.join(f'{t:.2f}' for t in times)} s")


def documented(page, folder):
    """The pages that reports/pages.sh makes, of the lessons' shapes and of the saved runs."""
    harness.run("bash", os.path.join(harness.SOURCE, "reports", "pages.sh"), harness.PROGRAM, folder)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".html"))
    equal("pages", names, sorted(name + ".html" for name in
                                 ("forward", "ladder", "lesson-4k", "lesson-8k", "lesson-8k-model", "lesson-m-65536", "orders")))
    for name in names:
        stem = name.removesuffix(".html")
        if stem.startswith("lesson"):
            runs = json.loads(hbmscope("scenario", "run", stem, "--json", "-"))["runs"]
        else:
            with open(os.path.join(harness.SOURCE, "reports", "h200", stem + ".jsonl"), encoding="utf-8") as file:
                runs = [json.loads(line) for line in file]
        page.open(os.path.join(folder, name))
        equal(f"bars of {stem}", page.run(BARS), [expected_bars(run) for run in runs])
        if not stem.startswith("lesson"):
            equal(f"measured roofs of {stem}", page.run("""[...document.querySelectorAll('#roofline-0 g.series')].filter(
                (group) => / roof/.test(group.dataset.toggle) && !/^(fp|bf)\\d+( roof|,)/.test(group.dataset.toggle)).length >= 7"""), True)
        overlaps(page, stem)
        accessible(page)


with harness.folder() as folder, chromium.Page(BROWSER) as page:
    path = os.path.join(folder, "forward.html")
    hbmscope("plot", harness.FORWARD, "-o", path)
    runs, groups = forward(page, path)
    keyboard(page, runs, groups)
    pointer_and_controls(page)
    themes(page)
    accessible(page)
    overlaps(page, "reports/h200/forward.jsonl")
    page.run("""(() => { const text = document.querySelector('figure:not([hidden]) svg text'), other = text.cloneNode(true);
                 other.setAttribute('x', Number(text.getAttribute('x')) + 2); text.after(other); })()""")
    equal("a planted overlap is found", len(page.run(OVERLAPS)), 1)
    for name, options in (("prefill", ["--seqlen", "8k", "--head-dim", "128", "--heads", "4"]),
                          ("decode", ["--pass", "decode", "--heads", "32", "--kv-heads", "8", "--seqlen", "4k"]),
                          ("backward", ["--pass", "backward", "--seqlen", "1k", "--attention-share", "0.3"])):
        hbmscope("plot", "-", "-o", path, text=hbmscope("run", *options, "--json", "-"))
        page.open(path)
        overlaps(page, name)
        accessible(page)
    evil = next(iter(harness.sweep_rows([(512, 64)])))
    evil["algorithms"][0]["name"] = "\"><img src=x onerror=\"document.title='broken'\">"
    hbmscope("plot", "-", "-o", path, "--title", "</title><script>document.title='broken'</script>", text=json.dumps(evil))
    page.open(path)
    equal("a title with markup is a title", page.run("document.title"), "</title><script>document.title='broken'</script>")
    large(page, folder)
    with harness.folder() as pages:
        documented(page, pages)
    equal("complaints of the browser", page.complaints, [])
    equal("requests besides the pages", [url for url in page.requests if not url.startswith("file://")], [])
harness.finish()
