// The tiles' animation: replays the events that stand in the page beside it. Without this script the page still holds
// what was scaled, and the table of bytes.
"use strict";
(function () {
  // Fields of an event, which is a list of numbers.
  const REQUEST = 0, STAGE = 1, TENSOR = 2, ROW = 3, COLUMN = 4, BYTES = 5, STORE = 6, THROUGH_HBM = 7, CTA = 8, STEP = 9,
    FIRST_OF_STEP = 10;

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const key = event => event[TENSOR] + "," + event[ROW] + "," + event[COLUMN];
  const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

  /** One algorithm: its boxes, and how far its events have been played. */
  class Panel {
    constructor(root, algorithm, data, most) {
      this.algorithm = algorithm;
      this.data = data;
      this.most = most;
      this.cells = new Map();
      const panel = element("section", "tiles-panel");
      panel.setAttribute("aria-label", algorithm.name);
      panel.append(element("h3", "", algorithm.name));
      this.counters = new Map();
      for (const [boundary, words] of [["l2_hbm", "through HBM"], ["sm_l2", "between SM and L2"]]) {
        const line = element("div", "tiles-count");
        line.append(element("span", "", words));
        const counter = element("span", "tiles-counter");
        counter.dataset.algorithm = algorithm.name;
        counter.dataset.boundary = boundary;
        line.append(counter);
        panel.append(line);
        const bar = element("div", "tiles-bar"), filled = element("div");
        bar.append(filled);
        panel.append(bar);
        this.counters.set(boundary, {counter, filled});
      }
      this.now = element("div", "tiles-now");
      panel.append(this.now);
      panel.append(this.hbmBox());
      this.hbmWay = element("div", "tiles-way");
      panel.append(this.hbmWay);
      this.l2 = this.chipBox(panel, "tiles-l2", data.l2_bytes === 0 ? "no L2" : "L2, " + data.l2_words);
      this.smWay = element("div", "tiles-way");
      panel.append(this.smWay);
      this.sm = this.chipBox(panel, "tiles-sm", "SRAM of the SM: tiles of this step");
      root.append(panel);
      this.reset();
    }

    tile(className, tensor, text) {
      return element("div", className + " tiles-of-" + this.data.tensors[tensor].name, text);
    }

    chipBox(panel, className, title) {
      const box = element("div", "tiles-box " + className), chips = element("div", "tiles-chips");
      box.append(element("b", "", title), chips);
      panel.append(box);
      return chips;
    }

    hbmBox() {
      const box = element("div", "tiles-box tiles-hbm");
      box.append(element("b", "", "HBM"));
      for (const [tensor, rows, columns] of this.algorithm.grids) {
        const block = element("div", "tiles-tensor"), grid = element("div", "tiles-grid");
        block.append(element("div", "", this.data.tensors[tensor].name), grid);
        grid.style.gridTemplateColumns = "repeat(" + columns + ", auto)";
        for (let row = 0; row < rows; ++row) {
          for (let column = 0; column < columns; ++column) {
            const cell = this.tile("tiles-cell", tensor);
            grid.append(cell);
            this.cells.set(tensor + "," + row + "," + column, cell);
          }
        }
        box.append(block);
      }
      return box;
    }

    reset() {
      this.played = 0;
      this.bytes = {l2_hbm: 0, sm_l2: 0};
      this.held = new Map();      // tiles in L2, the oldest first; true: not yet in HBM
      this.onChip = [];           // requests of the step
      this.inHbm = new Set();
      for (const [tensor, rows, columns, there] of this.algorithm.grids) {
        if (!there) continue;
        for (let row = 0; row < rows; ++row)
          for (let column = 0; column < columns; ++column) this.inHbm.add(tensor + "," + row + "," + column);
      }
    }

    /** Plays one event without drawing. */
    play() {
      const event = this.algorithm.events[this.played++], tile = key(event);
      if (event[THROUGH_HBM]) this.bytes.l2_hbm += event[BYTES];
      if (!event[REQUEST]) {
        this.held.delete(tile);
        if (event[THROUGH_HBM]) this.inHbm.add(tile);
        return;
      }
      this.bytes.sm_l2 += event[BYTES];
      if (event[FIRST_OF_STEP]) this.onChip = [];
      this.onChip.push(event);
      const dirty = Boolean(event[STORE]) || this.held.get(tile) === true;
      this.held.delete(tile);
      if (event[BYTES] <= this.data.l2_bytes) this.held.set(tile, dirty);
      if (event[STORE] && event[THROUGH_HBM]) this.inHbm.add(tile);
    }

    showAt(place) {
      const target = Math.min(place, this.algorithm.events.length);
      if (target < this.played) this.reset();
      while (this.played < target) this.play();
      this.draw();
    }

    words(event) {
      const name = this.data.tensors[event[TENSOR]].name;
      const [, rows, columns] = this.algorithm.grids.find(grid => grid[0] === event[TENSOR]);
      return name + (columns > 1 ? " " + event[ROW] + "," + event[COLUMN] : rows > 1 ? " " + event[ROW] : "");
    }

    draw() {
      const last = this.played > 0 ? this.algorithm.events[this.played - 1] : null, moving = last ? key(last) : "";
      for (const [boundary, {counter, filled}] of this.counters) {
        counter.textContent = grouped(this.bytes[boundary]) + " B";
        counter.dataset.bytes = String(this.bytes[boundary]);
        filled.style.width = (this.most[boundary] ? 100 * this.bytes[boundary] / this.most[boundary] : 0) + "%";
      }
      for (const [tile, cell] of this.cells) {
        cell.classList.toggle("in-hbm", this.inHbm.has(tile));
        cell.classList.toggle("in-l2", this.held.has(tile));
        cell.classList.toggle("moves", tile === moving);
      }
      this.l2.replaceChildren(...[...this.held].map(([tile, dirty]) => {
        const [tensor, row, column] = tile.split(",").map(Number);
        const chip = this.tile("tiles-chip", tensor, this.words([1, 0, tensor, row, column]));
        chip.classList.toggle("dirty", dirty);
        chip.classList.toggle("moves", tile === moving);
        return chip;
      }));
      this.sm.replaceChildren(...this.onChip.map(event => this.tile("tiles-chip" + (event === last ? " moves" : ""),
        event[TENSOR], (event[STORE] ? "write " : "read ") + this.words(event))));
      this.drawWays(last);
    }

    drawWays(last) {
      const request = Boolean(last && last[REQUEST]), through = Boolean(last && last[THROUGH_HBM]);
      const bytes = last ? grouped(last[BYTES]) + " B" : "", store = Boolean(last && last[STORE]);
      this.smWay.classList.toggle("moves", request);
      this.smWay.textContent = request ? (store ? "\u2191 " : "\u2193 ") + bytes : "\u2195";
      this.hbmWay.classList.toggle("moves", through);
      this.hbmWay.textContent = through ? (store ? "\u2191 " : "\u2193 ") + bytes : "\u2195";
      this.now.textContent = this.sentence(last, request, through, store);
    }

    sentence(last, request, through, store) {
      if (!last) return "Nothing has moved yet.";
      const end = this.played === this.algorithm.events.length ? " The end." : "";
      if (!request) return (through ? "L2 writes " + this.words(last) + " back to HBM." :
        "L2 drops " + this.words(last) + ", which HBM has.") + end;
      const who = this.algorithm.stages[last[STAGE]] + ", CTA " + last[CTA] + ", step " + last[STEP] + ": ";
      if (store) return who + "writes " + this.words(last) + (through ? " to HBM." : " to L2.") + end;
      return who + "reads " + this.words(last) + (through ? ", which has to come from HBM." : ", a hit in L2.") + end;
    }
  }

  /** All panels, and what moves them on together. */
  class Player {
    constructor(root) {
      this.root = root;
      const data = JSON.parse(root.querySelector(".tiles-data").textContent);
      const most = {};
      for (const boundary of ["l2_hbm", "sm_l2"]) most[boundary] = Math.max(...data.algorithms.map(a => a[boundary]));
      const panels = root.querySelector(".tiles-panels");
      this.panels = data.algorithms.map(algorithm => new Panel(panels, algorithm, data, most));
      this.length = Math.max(...data.algorithms.map(a => a.events.length));
      this.place = 0;
      this.timer = null;
      this.find = name => root.querySelector("[data-tiles=" + name + "]");
      this.speed = this.find("speed");
      this.scrub = this.find("place");
      this.scrub.max = String(this.length);
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.speed.value = "2";
      this.find("start").addEventListener("click", () => this.go(0));
      this.find("back").addEventListener("click", () => this.go(this.place - 1));
      this.find("play").addEventListener("click", () => this.toggle());
      this.find("step").addEventListener("click", () => this.go(this.place + 1));
      this.find("end").addEventListener("click", () => this.go(this.length));
      this.scrub.addEventListener("input", () => this.go(Number(this.scrub.value)));
      this.speed.addEventListener("input", () => this.setSpeed(0));
      root.addEventListener("keydown", event => this.onKey(event));
      for (const controls of root.querySelectorAll(".tiles-controls")) controls.hidden = false;
      this.setSpeed(0);
      this.show();
    }

    onKey(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const slider = event.target instanceof HTMLInputElement, button = event.target instanceof HTMLButtonElement;
      const actions = {
        "+": () => this.setSpeed(1), "-": () => this.setSpeed(-1), "p": () => this.toggle(),
        ...(!button && {" ": () => this.toggle()}),
        // Sliders have these keys for themselves.
        ...(!slider && {"ArrowRight": () => this.go(this.place + 1), "ArrowLeft": () => this.go(this.place - 1),
          "Home": () => this.go(0), "End": () => this.go(this.length)}),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    }

    setSpeed(by) {
      if (by) this.speed.value = String(Number(this.speed.value) + by);
      this.find("speed-words").textContent = this.speed.value + " events a second";
      if (this.timer !== null) this.start();
    }

    toggle() {
      if (this.timer !== null) return this.pause();
      if (this.place === this.length) this.move(0);
      this.start();
    }

    start() {
      clearInterval(this.timer);
      this.timer = setInterval(() => {
        this.move(this.place + 1);
        if (this.place === this.length) this.pause();
      }, 1000 / Number(this.speed.value));
      this.find("play").textContent = "Pause";
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      this.find("play").textContent = "Play";
      this.say();
    }

    /** Where the user wants to be; stops what plays. */
    go(place) {
      this.move(place);
      this.pause();
    }

    move(place) {
      this.place = Math.max(0, Math.min(this.length, place));
      this.show();
    }

    show() {
      for (const panel of this.panels) panel.showAt(this.place);
      this.scrub.value = String(this.place);
      this.find("place-words").textContent = "event " + this.place + " of " + this.length;
      this.find("back").disabled = this.find("start").disabled = this.place === 0;
      this.find("step").disabled = this.find("end").disabled = this.place === this.length;
      this.root.dataset.place = String(this.place);
    }

    /** For whoever hears the page: only when it stands still. */
    say() {
      this.find("said").textContent = "Event " + this.place + " of " + this.length + ". " + this.panels.map(panel =>
        panel.algorithm.name + ": " + grouped(panel.bytes.l2_hbm) + " bytes through HBM.").join(" ");
    }
  }

  for (const root of document.querySelectorAll(".tiles")) {
    if (!root.dataset.place) new Player(root);
  }
})();
