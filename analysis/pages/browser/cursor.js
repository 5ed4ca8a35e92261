// One cursor and one view for all drawings: drag to scrub, zoom by buttons, keys, wheel or pinch.

const LEAST = 1000; // microseconds in view

class Timeline {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.tracks = readTracks(data);
    this.lanes = new Lanes(data, this.tracks);
    this.latencies = { produce: new Latency(data, "produce") };
    this.latencies.end_to_end = new Latency(data, "end_to_end");
    this.space = data.space ? new Space(data.space) : null;
    this.wide = 1e6;
    this.shown = "produce";
    this.view = { from: 0, to: data.end };
    this.cursor = data.faults.length ? clamp(data.faults[0].from, 0, data.end) : 0;
    this.waits = false;
    this.listen();
    this.legend();
    this.draw();
  }

  listen() {
    for (const name of ["lq-lanes", "lq-heat", "lq-bands"]) this.scrubs(byId(name), () => this.view);
    const whole = { from: 0, to: this.data.end };
    this.scrubs(byId("lq-overview"), () => whole);
    byId("lq-in").addEventListener("click", () => this.zoom(0.5, this.cursor));
    byId("lq-out").addEventListener("click", () => this.zoom(2, this.cursor));
    byId("lq-all").addEventListener("click", () => this.look(0, this.data.end));
    const internal = byId("lq-internal");
    internal.hidden = !this.lanes.hasInternal;
    internal.setAttribute("aria-pressed", String(this.lanes.internal));
    internal.addEventListener("click", () => {
      this.lanes.showInternal(!this.lanes.internal);
      internal.setAttribute("aria-pressed", String(this.lanes.internal));
      this.soon();
    });
    const slider = byId("lq-slider");
    slider.max = String(this.data.end);
    slider.addEventListener("input", () => this.moveTo(Number(slider.value)));
    byId("lq-lanes").addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.soon());
    for (const button of this.root.querySelectorAll("button[data-latency]")) {
      button.addEventListener("click", () => this.choose(button, "latency", "shown"));
    }
    for (const button of this.root.querySelectorAll("button[data-wide]")) {
      button.addEventListener("click", () => this.choose(button, "wide", "wide"));
    }
    if (this.space) this.pans(byId("lq-space"));
  }

  choose(button, key, field) {
    for (const other of this.root.querySelectorAll(`button[data-${key}]`)) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    const value = button.dataset[key];
    this[field] = key === "wide" ? Number(value) : value;
    this.soon();
  }

  // The instant below a point of a drawing.
  under(canvas, event, view) {
    const box = canvas.getBoundingClientRect();
    const left = gutterOf(box.width);
    const share = (event.clientX - box.left - left) / Math.max(1, box.width - 6 - left);
    return view.from + clamp(share, 0, 1) * (view.to - view.from);
  }

  scrubs(canvas, viewOf) {
    const fingers = new Map();
    let chosen = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, event.clientX);
      const at = this.under(canvas, event, viewOf());
      chosen = event.shiftKey || canvas.id === "lq-overview" ? at : null;
      this.moveTo(at);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = spread(fingers);
      fingers.set(event.pointerId, event.clientX);
      const at = this.under(canvas, event, viewOf());
      if (fingers.size === 2) this.zoom(clamp(before / Math.max(1, spread(fingers)), 0.5, 2), at);
      else this.moveTo(at);
    });
    const lifted = (event) => {
      if (!fingers.delete(event.pointerId) || chosen === null) return;
      const at = this.under(canvas, event, viewOf());
      const apart = Math.abs(at - chosen) / (viewOf().to - viewOf().from);
      if (apart > 0.005) this.look(Math.min(at, chosen), Math.max(at, chosen));
      chosen = null;
    };
    canvas.addEventListener("pointerup", lifted);
    canvas.addEventListener("pointercancel", (event) => {
      fingers.delete(event.pointerId);
      chosen = null;
    });
    canvas.addEventListener("dblclick", (event) => {
      if (canvas.id !== "lq-overview") this.zoom(0.25, this.under(canvas, event, viewOf()));
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.altKey) return;
        event.preventDefault();
        this.zoom(Math.exp(clamp(event.deltaY, -200, 200) / 300), this.under(canvas, event, viewOf()));
      },
      { passive: false }
    );
  }

  // The space-time diagram is dragged along under the cursor.
  pans(canvas) {
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = event.clientX;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (last === null) return;
      const width = canvas.getBoundingClientRect().width;
      const pixels = Math.max(1, width - 6 - gutterOf(width));
      this.moveTo(this.cursor - ((event.clientX - last) / pixels) * this.wide);
      last = event.clientX;
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        last = null;
      });
    }
  }

  key(event) {
    const step = ((this.view.to - this.view.from) / 200) * (event.shiftKey ? 10 : 1);
    const keys = {
      ArrowLeft: () => this.moveTo(this.cursor - step),
      ArrowRight: () => this.moveTo(this.cursor + step),
      "+": () => this.zoom(0.5, this.cursor),
      "-": () => this.zoom(2, this.cursor),
      0: () => this.look(0, this.data.end),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  // The view follows a cursor that leaves it.
  moveTo(at) {
    this.cursor = Math.round(clamp(at, 0, this.data.end));
    const wide = this.view.to - this.view.from;
    if (this.cursor < this.view.from || this.cursor > this.view.to) {
      this.look(this.cursor - wide / 2, this.cursor + wide / 2);
    }
    this.soon();
  }

  zoom(factor, at) {
    const { from, to } = this.view;
    const wide = clamp((to - from) * factor, Math.min(LEAST, this.data.end), this.data.end);
    const share = clamp((at - from) / (to - from), 0, 1);
    this.look(at - wide * share, at - wide * share + wide);
  }

  look(from, to) {
    const wide = clamp(to - from, Math.min(LEAST, this.data.end), this.data.end);
    const start = clamp(from, 0, this.data.end - wide);
    this.view = { from: Math.round(start), to: Math.round(start + wide) };
    this.soon();
  }

  // At most one drawing for each picture that the browser shows.
  soon() {
    if (this.waits) return;
    this.waits = true;
    window.requestAnimationFrame(() => {
      this.waits = false;
      this.draw();
    });
  }

  draw() {
    const { view, cursor, data } = this;
    drawOverview(byId("lq-overview"), data, view, cursor);
    this.lanes.draw(byId("lq-lanes"), view, cursor);
    const latency = this.latencies[this.shown];
    byId("lq-heat-none").hidden = !latency.isEmpty();
    byId("lq-latency").hidden = latency.isEmpty();
    if (!latency.isEmpty()) {
      latency.drawHeat(byId("lq-heat"), view, cursor);
      latency.drawBands(byId("lq-bands"), view, cursor);
    }
    if (this.space) this.drawSpace();
    byId("lq-slider").value = String(cursor);
    byId("lq-at").textContent = instant(cursor);
    byId("lq-view").textContent = `${instant(view.from)} to ${instant(view.to)}`;
    this.root.dataset.cursor = String(cursor);
    this.root.dataset.from = String(view.from);
    this.root.dataset.to = String(view.to);
    this.tell();
  }

  drawSpace() {
    const { cursor, data } = this;
    const seen = this.space.window(cursor, this.wide, data.end);
    const told = this.space.draw(byId("lq-space"), seen, cursor, data.faults);
    this.root.dataset.drawn = String(told.drawn);
    const kept = told.kept.toLocaleString("en");
    const total = told.total.toLocaleString("en");
    const all = told.kept === told.total ? `all ${total}` : `${kept} of ${total}`;
    byId("lq-space-note").textContent =
      `${instant(seen.from)} to ${instant(seen.to)}: ${told.drawn.toLocaleString("en")} messages ` +
      `drawn; this page holds ${all} that were sent in these seconds.`;
  }

  legend() {
    if (!this.space) return;
    const list = byId("lq-kinds");
    for (const name of this.space.families) {
      const button = element("button", name, "kind");
      button.type = "button";
      button.style.borderColor = this.space.colours.get(name);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        const hides = this.space.hidden.delete(name) ? false : Boolean(this.space.hidden.add(name));
        button.setAttribute("aria-pressed", String(!hides));
        this.soon();
      });
      list.appendChild(button);
    }
  }

  // What was the case at the cursor, in words.
  tell() {
    const at = this.cursor;
    const list = byId("lq-state");
    list.textContent = "";
    const say = (name, lines) => {
      if (!lines.length) return;
      list.appendChild(element("dt", name));
      for (const line of lines.slice(0, 8)) list.appendChild(element("dd", line));
      if (lines.length > 8) list.appendChild(element("dd", `and ${lines.length - 8} more`));
    };
    const faults = this.data.faults.filter((f) => f.from <= at && at <= f.to);
    say("faults at work", faults.map((f) => `#${f.n} ${f.kind}: ${f.resolved || f.target}`));
    for (const track of this.tracks) {
      const now = track.lanes.map((lane) => [lane, spanAt(lane, at)]).filter(([, span]) => span);
      if (track.name === "controller") {
        for (const [lane, span] of now) say(lane.name, [`${span.state} (${span.detail})`]);
      } else if (track.name === "server" || track.name === "registration") {
        const off = now.filter(([, span]) => span.level);
        const title = track.name === "server" ? "not running" : "not registered as alive";
        say(title, off.map(([lane, span]) => `${lane.name}: ${span.state}`));
      } else if (track.name === "partition") {
        const off = now.filter(([, span]) => span.level);
        off.sort((a, b) => b[1].level - a[1].level);
        const well = `${now.length - off.length} of ${now.length} shown are all in sync`;
        say("partitions", [well, ...off.map(([lane, span]) => told(lane, span))]);
      } else say("groups", now.map(([lane, span]) => `${lane.name}: ${span.state}; ${span.detail}`));
    }
    const found = this.latencies[this.shown].at(at);
    const names = ["p50", "p90", "p99", "p99.9", "max"];
    if (found) say("latency", [found.map((us, i) => `${names[i]} ${duration(us)}`).join(", ")]);
  }
}

function told(lane, span) {
  const leader = span.value >= 0 ? `leader ${span.value}, ` : "";
  const more = span.changes > 1 ? `; the worst of ${span.changes} changes` : "";
  return `${lane.name}: ${span.state}; ${leader}${span.detail}${more}`;
}

function spread(fingers) {
  const [one, other] = Array.from(fingers.values());
  return other === undefined ? 0 : Math.abs(one - other);
}

const timelineRoot = byId("lq-timeline");
if (timelineRoot) {
  timelineRoot.hidden = false;
  new Timeline(timelineRoot, JSON.parse(byId("lq-data").textContent));
}
