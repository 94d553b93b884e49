"use strict";
(() => {
  const svgns = "http://www.w3.org/2000/svg";
  const words = (text) => (text === "" ? [] : text.split(" "));
  const grouped = (digits) => (/^-?\d+$/.test(digits) ? digits.replace(/\B(?=(\d{3})+$)/g, ",") : digits);
  const withUnit = (digits, unit) => grouped(digits) + (unit ? " " + unit : "");
  const shown = (element) => !element.closest(".off");

  // ---- light and dark --------------------------------------------------------------------------------------------
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // ---- which of several charts -----------------------------------------------------------------------------------
  for (const select of document.querySelectorAll(".pick select")) {
    const pick = () => {
      for (const option of select.options) document.getElementById(option.value).hidden = !option.selected;
      prepare(document.getElementById(select.value));
    };
    select.addEventListener("change", pick);
    if (select.selectedIndex > 0) addEventListener("load", pick); // a choice that the browser kept
  }

  // ---- marks: where they are and what they say ---------------------------------------------------------------------
  // A series of a line chart has its values in a column of the table, or lists them, as the file has them; their places
  // follow from the axes. A bar is an element with its value. Both are read when a reader first points at a chart, and not before: a page may hold many.
  function scale(list, logarithmic) {
    const [from, to, first, last] = words(list).map(Number);
    const place = logarithmic ? Math.log : (value) => value;
    return (value) => first + ((place(value) - place(from)) / (place(to) - place(from))) * (last - first);
  }

  function marksOfLines(svg) {
    const x = scale(svg.dataset.xrange, svg.dataset.xlog === "1");
    const y = scale(svg.dataset.yrange, svg.dataset.ylog === "1");
    const rows = [...svg.closest("figure").querySelectorAll("tbody tr")];
    const cells = (column) => rows.map((row) => row.cells[column].textContent.trim());
    const groups = [];
    for (const group of svg.querySelectorAll("g.series")) {
      const data = group.dataset;
      const xs = data.column ? cells(0) : words(data.x);
      const ys = data.column ? cells(Number(data.column)) : words(data.y);
      const labels = data.labels ? data.labels.split("|") : [];
      const marks = [];
      ys.forEach((value, i) => {
        if (value === "") return; // this series has nothing at that x
        const place = { x: x(Number(xs[i])), y: y(Number(value)) };
        if (!Number.isFinite(place.x) || !Number.isFinite(place.y)) return; // 0 has no place on a logarithmic axis
        const of = labels[i] ? ", " + labels[i] : "";
        place.text = () =>
          group.dataset.toggle + of + ": " + withUnit(value, svg.dataset.yunit) + " at " + withUnit(xs[i], svg.dataset.xunit);
        marks.push(place);
      });
      groups.push({ element: group, marks });
    }
    return groups;
  }

  function marksOfBars(svg) {
    return [...svg.querySelectorAll("g.bar")].map((group) => ({
      element: group,
      marks: [...group.querySelectorAll("rect.mark")].map((rect) => {
        const box = rect.getBBox();
        return {
          x: box.x + box.width / 2,
          y: box.y + box.height / 2,
          box,
          text: () => rect.dataset.name + ": " + withUnit(rect.dataset.value, svg.dataset.yunit),
        };
      }),
    }));
  }

  function makeChart(chart) {
    const svg = chart.querySelector("svg");
    const readout = chart.parentElement.querySelector(".readout");
    const all = svg.dataset.kind === "lines" ? marksOfLines(svg) : marksOfBars(svg);
    const cursor = document.createElementNS(svgns, "rect");
    cursor.setAttribute("class", "cursor off");
    svg.append(cursor);
    let at = [-1, -1];

    function go(series, mark) {
      at = [series, mark];
      const place = all[series].marks[mark];
      const box = place.box || { x: place.x - 6, y: place.y - 6, width: 12, height: 12 };
      cursor.setAttribute("x", box.x - 2);
      cursor.setAttribute("y", box.y - 2);
      cursor.setAttribute("width", Math.max(box.width, 2) + 4);
      cursor.setAttribute("height", box.height + 4);
      cursor.setAttribute("class", "cursor");
      readout.textContent = place.text();
    }

    // Left and right along a series, up and down to the next one that is shown, Home and End to its ends.
    chart.addEventListener("keydown", (event) => {
      const open = all.map((group, i) => i).filter((i) => all[i].marks.length > 0 && shown(all[i].element));
      if (open.length === 0) return;
      let [series, mark] = at;
      const known = open.includes(series);
      const next = (step) => open[(open.indexOf(series) + step + open.length) % open.length];
      const last = (i) => all[i].marks.length - 1;
      if (event.key === "Escape") {
        cursor.setAttribute("class", "cursor off");
        readout.textContent = "";
        at = [-1, -1];
        return;
      }
      if (!["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
      event.preventDefault();
      if (!known) return go(open[0], 0);
      if (event.key === "ArrowRight") mark = Math.min(mark + 1, last(series));
      if (event.key === "ArrowLeft") mark = Math.max(mark - 1, 0);
      if (event.key === "Home") mark = 0;
      if (event.key === "End") mark = last(series);
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        series = next(event.key === "ArrowDown" ? 1 : -1);
        mark = Math.min(mark, last(series));
      }
      go(series, mark);
    });

    chart.addEventListener("pointermove", (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      let nearest = null;
      let distance = 24 * 24;
      all.forEach((group, series) => {
        if (!shown(group.element)) return;
        group.marks.forEach((mark, i) => {
          const inside = mark.box && point.x >= mark.box.x && point.x <= mark.box.x + mark.box.width && Math.abs(point.y - mark.y) <= mark.box.height / 2;
          const d = inside ? 0 : (mark.x - point.x) ** 2 + (mark.y - point.y) ** 2;
          if (d < distance) [nearest, distance] = [[series, i], d];
        });
      });
      if (nearest) go(...nearest);
    });
  }

  // ---- what is shown ---------------------------------------------------------------------------------------------
  function makeToggles(figure) {
    const box = figure.querySelector(".toggles");
    const names = new Map();
    for (const part of figure.querySelectorAll("[data-toggle]")) {
      if (!names.has(part.dataset.toggle)) names.set(part.dataset.toggle, []);
      names.get(part.dataset.toggle).push(part);
    }
    if (names.size < 2) return;
    for (const [name, parts] of names) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const part of parts) part.classList.toggle("off", !on);
      });
      box.append(button);
    }
  }

  function prepare(figure) {
    if (figure.dataset.ready) return;
    figure.dataset.ready = "1";
    makeToggles(figure);
    const chart = figure.querySelector(".chart");
    let made = false;
    const once = () => {
      if (!made) makeChart(chart);
      made = true;
    };
    chart.addEventListener("focus", once, { capture: true });
    chart.addEventListener("pointerenter", once);
  }
  for (const figure of document.querySelectorAll("figure:not([hidden])")) prepare(figure);
  performance.mark("interactive"); // since the navigation began: what a test, or a reader's tools, can ask for
})();
