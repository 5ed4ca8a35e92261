// The space-time diagram: a line for each node, a stroke for each message from its sending to its
// arrival. Strokes that lean show what was known when.

const MESSAGE = 6; // sent, took, sender, receiver, kind, rule that delayed it
const LANE = 26;

function family(kind) {
  return kind.replace(/(Request|Response)$/, "");
}

class Space {
  constructor(space) {
    this.nodes = space.nodes;
    this.kinds = space.kinds;
    this.rules = space.rules;
    this.seconds = new Map(space.seconds.map((s) => [s.second, s]));
    const counts = new Map();
    for (const second of space.seconds) {
      for (let i = 0; i < second.messages.length; i += MESSAGE) {
        const name = family(this.kinds[second.messages[i + 4]]);
        counts.set(name, (counts.get(name) || 0) + 1);
      }
    }
    this.families = Array.from(counts.keys()).sort((a, b) => counts.get(b) - counts.get(a));
    this.colours = new Map(this.families.map((n, i) => [n, i < LINES.length ? LINES[i] : GREY]));
    this.hidden = new Set();
  }

  window(cursor, wide, end) {
    if (wide >= 1e6) {
      const second = Math.floor(clamp(cursor, 0, Math.max(0, end - 1)) / 1e6);
      return { from: second * 1e6, to: (second + 1) * 1e6 };
    }
    return { from: cursor - wide / 2, to: cursor + wide / 2 };
  }

  // Messages on their way within the window, sent up to a second before it, and how many there were.
  within(view) {
    const found = [];
    const told = { kept: 0, total: 0 };
    const first = Math.floor(view.from / 1e6);
    const last = Math.floor((view.to - 1) / 1e6);
    for (let number = first - 1; number <= last; number += 1) {
      const second = this.seconds.get(number);
      if (!second) continue;
      if (number >= first) {
        told.kept += second.messages.length / MESSAGE;
        told.total += second.total;
      }
      for (let i = 0; i < second.messages.length; i += MESSAGE) {
        const [sent, took, sender, receiver, kind, rule] = second.messages.slice(i, i + MESSAGE);
        const from = number * 1e6 + sent;
        if (from >= view.to || from + took < view.from) continue;
        const name = this.kinds[kind];
        if (this.hidden.has(family(name))) continue;
        found.push({ from, to: from + took, sender, receiver, name, rule });
      }
    }
    return { found, told };
  }

  draw(canvas, view, cursor, faults) {
    const { pen, width, height } = sheet(canvas, this.nodes.length * LANE + 34);
    const place = { pen, left: gutterOf(width), right: width - 6, view, bottom: height - 22 };
    drawTimes(pen, view, place.left, place.right, 0, place.bottom);
    shadeFaults(place, faults, 0);
    const y = (node) => 14 + node * LANE;
    this.nodes.forEach((name, node) => {
      pen.fillStyle = "#4b5563";
      pen.fillText(fitted(pen, name, place.left - 12), 2, y(node));
      pen.fillStyle = "#9ca3af";
      pen.fillRect(place.left, y(node) - 0.5, place.right - place.left, 1);
    });
    const { found, told } = this.within(view);
    const { left, right } = place;
    within(pen, left, 0, right - left, place.bottom, () => {
      const boxes = [];
      for (const message of found) {
        const [x, to] = ends(place, message.from, message.to);
        pen.strokeStyle = message.rule >= 0 ? "#b01e1e" : this.colours.get(family(message.name));
        pen.lineWidth = message.rule >= 0 ? 2 : 1.2;
        pen.setLineDash(message.rule >= 0 ? [5, 3] : []);
        pen.beginPath();
        pen.moveTo(x, y(message.sender));
        pen.lineTo(to, y(message.receiver));
        pen.stroke();
        pen.setLineDash([]);
        pen.fillStyle = pen.strokeStyle;
        pen.beginPath();
        pen.arc(to, y(message.receiver), 2.4, 0, 7);
        pen.fill();
        if (found.length <= 60) {
          const middle = (y(message.sender) + y(message.receiver)) / 2;
          this.label(pen, boxes, right, message, (x + to) / 2, middle);
        }
      }
    });
    drawCursor(place, cursor);
    return { drawn: found.length, ...told };
  }

  // The kind of a message beside its stroke, unless another one stands there already.
  label(pen, boxes, right, message, x, y) {
    const text = message.name;
    const wide = pen.measureText(text).width;
    const box = { x: x + 5 + wide > right ? x - 5 - wide : x + 5, y: y - 7, w: wide, h: 14 };
    const meets = boxes.some(
      (b) => b.x < box.x + box.w && box.x < b.x + b.w && b.y < box.y + box.h && box.y < b.y + b.h
    );
    if (meets) return;
    boxes.push(box);
    pen.fillStyle = "rgba(255, 255, 255, 0.8)";
    pen.fillRect(box.x - 1, box.y, box.w + 2, box.h);
    pen.fillStyle = INK;
    pen.fillText(text, box.x, y);
  }
}
