"""SVGs look the same in Chromium and in rsvg-convert."""
import base64
import os
import re
import shutil
import subprocess

import chromium
import harness
from harness import check, hbmscope

BROWSER, RSVG = chromium.find(), shutil.which("rsvg-convert")
if not BROWSER:
    harness.skip("no Chromium is installed")
if not RSVG:
    harness.skip("rsvg-convert is not installed")

# Both images on a canvas, and the mean colour of each square of 12 pixels compared: edges and letters are smoothed by
# each in its own way, but what is drawn, where and in which colour is the same.
COMPARE = """(async (svg, png) => {
  const load = (url) => new Promise((done, fail) => { const i = new Image(); i.onload = () => done(i); i.onerror = fail; i.src = url; });
  const [a, b] = await Promise.all([load('data:image/svg+xml;base64,' + svg), load('data:image/png;base64,' + png)]);
  const width = b.width, height = b.height, side = 12;
  const pixels = (image) => { const c = document.createElement('canvas'); c.width = width; c.height = height;
    const x = c.getContext('2d'); x.drawImage(image, 0, 0, width, height); return x.getImageData(0, 0, width, height).data; };
  const one = pixels(a), two = pixels(b);
  let worst = 0, where = null, sum = 0, count = 0;
  for (let y0 = 0; y0 + side <= height; y0 += side) for (let x0 = 0; x0 + side <= width; x0 += side) {
    const d = [0, 0, 0];
    for (let y = y0; y < y0 + side; ++y) for (let x = x0; x < x0 + side; ++x) for (let c = 0; c < 3; ++c)
      d[c] += one[4 * (y * width + x) + c] - two[4 * (y * width + x) + c];
    const off = Math.max(...d.map(Math.abs)) / side ** 2;
    sum += off; ++count;
    if (off > worst) { worst = off; where = [x0, y0]; }
  }
  return {worst, where, mean: sum / count, size: [a.width, a.height, width, height]};
})(%r, %r)"""
WORST, MEAN = 30, 0.7


def rendered(svg, folder):
    path = os.path.join(folder, "picture.svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg)
    return subprocess.run([RSVG, path], capture_output=True, check=True).stdout


def compare(page, svg, png):
    return page.run(COMPARE % (base64.b64encode(svg.encode()).decode(), base64.b64encode(png).decode()))


def same(seen):
    return seen["worst"] < WORST and seen["mean"] < MEAN


def pictures(folder):
    runs = harness.part_of_forward(folder)
    names = [line.split()[0] for line in hbmscope("plot", "--list").splitlines() if not line.startswith(" ")]
    single = hbmscope("run", "--seqlen", "4k", "--attention-share", "0.3", "--json", "-")
    for name in names:
        yield "h200/forward.jsonl", name, hbmscope("plot", runs, "--picture", name, "-o", "-", "--format", "svg",
                                                   "--title", "An H200 & its counters")
        if name not in ("agreement", "sweep"):
            yield "one run", name, hbmscope("plot", "-", "--picture", name, "-o", "-", "--format", "svg", text=single)


with harness.folder() as folder, chromium.Page(BROWSER) as page:
    for source, name, svg in pictures(folder):
        png = rendered(svg, folder)
        seen = compare(page, svg, png)
        check(f"{name} of {source} looks the same in both", same(seen), seen)
        check("and is as large", seen["size"][:2] == seen["size"][2:], seen)
        check("it has a title and a description", svg.count("<title id=") == 1 and svg.count("<desc id=") == 1)
        check("no style sheet, script or reference outwards", not re.search(r"<style|<script|href|var\(|style=", svg))
        # The comparison would see marks, lines or bars that one of them did not draw.
        for part in (r'<path [^>]*class="dots[^>]*/>', r'<path class="line[^>]*/>', r'<rect [^>]*class="mark.*?</rect>'):
            without = re.sub(part, "", svg)
            if without != svg:
                break
        check(f"parts of {name} that are missing are noticed", without != svg and not same(compare(page, without, png)), source)
harness.finish()
