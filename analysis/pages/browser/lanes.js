// The timeline: faults above, a row for each lane, all on the time axis that the page shares.

const ROW = 17;
const OUTAGE = "rgba(192, 38, 38, 0.72)";
const SPAN = 7; // numbers that tell a span, in the page's data
const TRACKS = { controller: "Control", server: "Servers", partition: "Partitions", group: "Groups" };

// Spans as objects, once; their words stand in one table.
function readTracks(data) {
  return data.tracks.map((track) => ({
    name: track.name,
    lanes: track.lanes.map((lane) => {
      const spans = [];
      for (let i = 0; i < lane.spans.length; i += SPAN) {
        const [from, to, state, level, value, detail, changes] = lane.spans.slice(i, i + SPAN);
        const words = data.words;
        spans.push({ from, to, state: words[state], level, value, detail: words[detail], changes });
      }
      return { name: lane.name, spans };
    }),
    all: track.all,
  }));
}

function isInternal(lane) {
  return lane.name.startsWith("__");
}

function spanAt(lane, at) {
  return lane.spans.find((span) => span.from <= at && at < span.to);
}

// Faults in as few rows as they need: one that begins after another one has ended goes below none.
function faultRows(faults, end) {
  const ends = [];
  return faults.map((fault) => {
    let row = ends.findIndex((until) => until <= fault.from);
    if (row < 0) row = ends.length;
    if (row > 5) row = 5;
    ends[row] = Math.max(fault.to, fault.from + end / 12);
    return row;
  });
}

class Lanes {
  constructor(data, tracks) {
    this.faults = data.faults;
    this.outages = data.outages;
    this.rows = faultRows(data.faults, data.end);
    this.depth = this.rows.reduce((most, row) => Math.max(most, row + 1), 0);
    const known = tracks.find((track) => track.name === "registration");
    this.registered = new Map((known ? known.lanes : []).map((lane) => [lane.name, lane]));
    this.every = tracks.filter((track) => track.name in TRACKS && track.lanes.length);
    const named = tracks.filter((t) => t.name === "partition").flatMap((t) => t.lanes);
    this.hasInternal = named.some(isInternal);
    this.showInternal(!named.some((lane) => !isInternal(lane)));
    const leaders = this.tracks.filter((track) => track.name === "controller");
    const names = leaders.flatMap((t) => t.lanes).flatMap((l) => l.spans).map((s) => s.state);
    this.colours = new Map(Array.from(new Set(names), (n, i) => [n, LINES[i % LINES.length]]));
  }

  // Partitions of internal topics are shown where they are asked for, or there are no others.
  showInternal(shown) {
    this.internal = shown;
    this.tracks = this.every.map((track) => {
      const seen = shown || track.name !== "partition";
      return { ...track, lanes: seen ? track.lanes : track.lanes.filter((l) => !isInternal(l)) };
    });
  }

  height() {
    const rows = this.tracks.reduce((sum, track) => sum + track.lanes.length, 0);
    return (this.depth ? 22 + this.depth * ROW : 0) + this.tracks.length * 22 + rows * ROW + 24;
  }

  draw(canvas, view, cursor) {
    const { pen, width, height } = sheet(canvas, this.height());
    const left = gutterOf(width);
    const place = { pen, left, right: width - 6, view, bottom: height - 22 };
    drawTimes(pen, view, left, place.right, 0, place.bottom);
    shadeFaults(place, this.faults, 0);
    let y = this.drawFaults(place);
    for (const track of this.tracks) {
      const note = track.all > track.lanes.length ? ` (${track.lanes.length} of ${track.all})` : "";
      this.title(place, TRACKS[track.name] + note, y);
      y += 22;
      for (const lane of track.lanes) {
        this.drawLane(place, track.name, lane, y);
        y += ROW;
      }
    }
    drawCursor(place, cursor);
  }

  title({ pen, left }, text, y) {
    pen.fillStyle = INK;
    pen.font = "600 " + FONT;
    pen.fillText(fitted(pen, text, left + 200), 2, y + 13);
    pen.font = FONT;
  }

  drawFaults(place) {
    if (!this.depth) return 0;
    this.title(place, "Faults", 0);
    const { pen, left, right } = place;
    within(pen, left, 0, right - left, place.bottom, () => {
      this.faults.forEach((fault, number) => {
        const y = 22 + this.rows[number] * ROW;
        const [x, to] = ends(place, fault.from, fault.to);
        pen.fillStyle = fault.bit ? SHADE : "#e5e7eb";
        pen.fillRect(x, y + 2, Math.max(3, to - x), ROW - 4);
      });
      this.nameFaults(place);
    });
    return 22 + this.depth * ROW;
  }

  // From the right, so that each name knows where the next one of its row begins: where there is no
  // room for all of it, the number alone stands, or nothing.
  nameFaults(place) {
    const { pen, left, right } = place;
    const taken = this.rows.map(() => right);
    pen.fillStyle = "#5c3d00";
    for (let number = this.faults.length - 1; number >= 0; number -= 1) {
      const fault = this.faults[number];
      const row = this.rows[number];
      const [x, to] = ends(place, fault.from, fault.to);
      if (x >= right || to <= left) continue;
      const name = `#${fault.n} ${fault.kind}`;
      const isLast = taken[row] === right;
      const back = isLast ? right - pen.measureText(name).width - 4 : right;
      const start = Math.max(left + 4, Math.min(Math.max(x, left) + 4, back));
      const fits = (text) => start + pen.measureText(text).width <= taken[row] - 4;
      const text = [name, `#${fault.n}`].find(fits);
      if (text) pen.fillText(text, start, 22 + (row + 0.5) * ROW);
      taken[row] = Math.min(x, start);
    }
  }

  isNamed(track, span) {
    return track === "controller" && span.level === 0;
  }

  drawWords(place, track, lane, y) {
    const { pen, left, right } = place;
    let leader = null;
    for (const span of lane.spans) {
      const [x, to] = ends(place, span.from, span.to);
      const words = wordsOf(track, span, leader);
      leader = span.value;
      if (to < left || x > right || !words) continue;
      if (to - Math.max(x, left) <= pen.measureText(words).width + 6) continue;
      pen.fillStyle = this.isNamed(track, span) || span.level > 1 ? "#ffffff" : INK;
      pen.fillText(words, Math.max(x, left) + 4, y + ROW / 2);
    }
  }

  // Over the lane: what producers saw, whatever the controller had committed.
  drawOutages(place, edges, y) {
    const { pen } = place;
    for (let i = 0; i < edges.length; i += 2) {
      const [x, to] = ends(place, edges[i], edges[i + 1]);
      pen.fillStyle = OUTAGE;
      pen.fillRect(x, y + 2, Math.max(1, to - x), ROW - 4);
    }
  }

  drawLane(place, track, lane, y) {
    const { pen, left, right } = place;
    pen.fillStyle = "#4b5563";
    pen.fillText(fitted(pen, lane.name, left - 12), 2, y + ROW / 2);
    within(pen, left, y, right - left, ROW, () => {
      for (const span of lane.spans) {
        const [x, to] = ends(place, span.from, span.to);
        if (to < left || x > right) continue;
        pen.fillStyle = this.isNamed(track, span) ? this.colours.get(span.state) : LEVELS[span.level];
        pen.fillRect(x, y + 2, Math.max(1, to - x), ROW - 4);
      }
      if (track === "partition") this.drawOutages(place, this.outages[lane.name] || [], y);
      this.drawWords(place, track, lane, y);
      const known = track === "server" ? this.registered.get(lane.name) : undefined;
      for (const span of known ? known.spans : []) {
        if (!span.level) continue;
        const [x, to] = ends(place, span.from, span.to);
        pen.fillStyle = LINES[3];
        pen.fillRect(x, y + ROW - 3, Math.max(1, to - x), 3);
      }
    });
  }
}

// What stands in a span: who, or who leads from here on.
function wordsOf(track, span, before) {
  if (track === "partition") return span.value >= 0 && span.value !== before ? `${span.value}` : "";
  if (track === "group") return span.level ? span.state : `generation ${span.value}`;
  return span.level || track === "controller" ? span.state : "";
}

function ends({ left, right, view }, from, to) {
  const scale = (right - left) / (view.to - view.from);
  return [left + (from - view.from) * scale, left + (to - view.from) * scale];
}

function shadeFaults(place, faults, top) {
  const { pen, left, right, bottom } = place;
  within(pen, left, top, right - left, bottom - top, () => {
    for (const fault of faults) {
      const [x, to] = ends(place, fault.from, fault.to);
      pen.fillStyle = "rgba(242, 193, 78, 0.2)";
      pen.fillRect(x, top, Math.max(1, to - x), bottom - top);
    }
  });
}

function drawCursor(place, cursor) {
  const { pen, left, right, bottom } = place;
  const [x] = ends(place, cursor, cursor);
  if (x < left || x > right) return;
  pen.fillStyle = "#b01e1e";
  pen.fillRect(x - 0.75, 0, 1.5, bottom);
}

// The whole run in one strip, with what is in view.
function drawOverview(canvas, data, view, cursor) {
  const { pen, width, height } = sheet(canvas, 34);
  const place = { pen, left: gutterOf(width), right: width - 6, bottom: height };
  place.view = { from: 0, to: data.end };
  pen.fillStyle = GREY;
  pen.fillText("whole run", 2, height / 2);
  pen.fillStyle = "#f3f4f6";
  pen.fillRect(place.left, 0, place.right - place.left, height);
  shadeFaults(place, data.faults, 0);
  const [x, to] = ends(place, view.from, view.to);
  pen.fillStyle = "rgba(31, 111, 180, 0.14)";
  pen.fillRect(x, 0, Math.max(2, to - x), height);
  pen.strokeStyle = LINES[0];
  pen.lineWidth = 2;
  pen.strokeRect(x + 1, 1, Math.max(2, to - x - 2), height - 2);
  drawCursor(place, cursor);
}
