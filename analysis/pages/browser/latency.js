// Latency on the shared time axis: how many records took how long, and percentiles as bands.

const HEAT = ["#eaf2fa", "#c3dbef", "#8dbbe0", "#4d93c9", "#1f6fb4", "#16518a", "#0b2f57"];
const BAND = 6; // column, p50, p90, p99, p999, max
const BANDS = [
  [4, 5, "#e5e7eb", "p99.9 to max"],
  [3, 4, "#f6d3b3", "p99 to p99.9"],
  [2, 3, "#f0b27a", "p90 to p99"],
  [1, 2, "#a9cdea", "p50 to p90"],
];

class Latency {
  constructor(data, name) {
    const found = data.latency[name];
    this.column = data.fine;
    this.perDecade = data.rows_per_decade;
    this.faults = data.faults;
    this.cells = found.cells;
    this.bands = found.bands;
    this.low = Infinity;
    this.high = -Infinity;
    this.most = 1;
    for (let i = 0; i < this.cells.length; i += 3) {
      this.low = Math.min(this.low, this.cells[i + 1]);
      this.high = Math.max(this.high, this.cells[i + 1] + 1);
      this.most = Math.max(this.most, this.cells[i + 2]);
    }
    for (let i = 0; i < this.bands.length; i += BAND) {
      this.high = Math.max(this.high, this.rowOf(this.bands[i + BAND - 1]) + 0.25);
    }
    this.high = Math.max(this.high, this.low + this.perDecade / 2);
  }

  isEmpty() {
    return !this.cells.length;
  }

  rowOf(us) {
    return Math.log10(Math.max(1, us)) * this.perDecade;
  }

  frame(canvas, view) {
    const { pen, width, height } = sheet(canvas, 210);
    const place = { pen, left: gutterOf(width), right: width - 6, view, top: 6, bottom: height - 22 };
    place.y = (row) =>
      place.bottom - ((row - this.low) / (this.high - this.low)) * (place.bottom - place.top);
    drawTimes(pen, view, place.left, place.right, place.top, place.bottom);
    pen.textAlign = "right";
    const decades = (this.high - this.low) / this.perDecade;
    const first = Math.ceil(this.low / this.perDecade);
    const parts = decades < 1.5 ? [1, 2, 5] : [1];
    for (let decade = first - 1; decade * this.perDecade <= this.high; decade += 1) {
      for (const part of parts) {
        const us = part * Math.pow(10, decade);
        const row = this.rowOf(us);
        if (us < 1 || row < this.low || row > this.high) continue;
        pen.fillStyle = "#e5e7eb";
        pen.fillRect(place.left, place.y(row), place.right - place.left, 1);
        pen.fillStyle = GREY;
        pen.fillText(duration(us), place.left - 6, clamp(place.y(row), 8, place.bottom));
      }
    }
    pen.textAlign = "left";
    return place;
  }

  drawHeat(canvas, view, cursor) {
    const place = this.frame(canvas, view);
    const { pen, left, right, top, bottom } = place;
    shadeFaults(place, this.faults, top);
    within(pen, left, top, right - left, bottom - top, () => {
      for (let i = 0; i < this.cells.length; i += 3) {
        const from = this.cells[i] * this.column;
        const [x, to] = ends(place, from, from + this.column);
        if (to < left || x > right) continue;
        const share = Math.log(1 + this.cells[i + 2]) / Math.log(1 + this.most);
        pen.fillStyle = HEAT[Math.min(HEAT.length - 1, Math.floor(share * HEAT.length))];
        const y = place.y(this.cells[i + 1] + 1);
        pen.fillRect(x, y, Math.max(1, to - x), Math.max(1, place.y(this.cells[i + 1]) - y));
      }
    });
    drawCursor(place, cursor);
  }

  drawBands(canvas, view, cursor) {
    const place = this.frame(canvas, view);
    const { pen, left, right, top, bottom } = place;
    shadeFaults(place, this.faults, top);
    within(pen, left, top, right - left, bottom - top, () => {
      for (let i = 0; i < this.bands.length; i += BAND) {
        const from = this.bands[i] * this.column;
        const [x, to] = ends(place, from, from + this.column);
        if (to < left || x > right) continue;
        const wide = Math.max(1, to - x + 0.3);
        for (const [under, over, colour] of BANDS) {
          const y = place.y(this.rowOf(this.bands[i + over]));
          pen.fillStyle = colour;
          pen.fillRect(x, y, wide, Math.max(1, place.y(this.rowOf(this.bands[i + under])) - y));
        }
        pen.fillStyle = LINES[0];
        pen.fillRect(x, place.y(this.rowOf(this.bands[i + 1])) - 1, wide, 2);
        pen.fillStyle = LINES[1];
        pen.fillRect(x, place.y(this.rowOf(this.bands[i + 3])) - 1, wide, 2);
      }
    });
    drawCursor(place, cursor);
  }

  // Percentiles of the column that an instant lies in.
  at(us) {
    const column = Math.floor(us / this.column);
    for (let i = 0; i < this.bands.length; i += BAND) {
      if (this.bands[i] === column) return this.bands.slice(i + 1, i + BAND);
    }
    return null;
  }
}
