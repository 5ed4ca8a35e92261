// What every part of the page's script needs: colours, numbers as text, canvases that stay sharp.
"use strict";

const LEVELS = ["#b7dfc3", "#f0b65b", "#d9534f", "#1f2937"];
const LINES = ["#1f6fb4", "#d9730d", "#2f8f4e", "#7c4bb5", "#0f8b8d", "#b0368c", "#8a6d1d"];
const GREY = "#6b7280";
const INK = "#1f2937";
const SHADE = "#f2c14e";
const FONT = "12px system-ui, sans-serif";

function byId(id) {
  return document.getElementById(id);
}

// An element with text; text that comes from a scenario is never read as HTML.
function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

// Three digits, in the largest unit that leaves a short number.
function duration(us) {
  const units = [[1e6, " s"], [1e3, " ms"]];
  for (const [size, name] of units) {
    if (Math.abs(us) >= size) return Number((us / size).toPrecision(3)) + name;
  }
  return Number(us.toPrecision(3)) + " us";
}

// An instant in seconds, to the microsecond where it matters.
function instant(us) {
  return (us / 1e6).toFixed(6).replace(/\.?0+$/, "") + " s";
}

// A canvas of the width that the page gives it and the height asked for, in CSS pixels.
function sheet(canvas, height) {
  const width = Math.max(200, Math.floor(canvas.parentElement.clientWidth));
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.floor(width * sharp);
  canvas.height = Math.floor(height * sharp);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return { pen, width, height };
}

// How much room names have on the left: less on a phone.
function gutterOf(width) {
  return width < 600 ? 92 : 170;
}

// Text that ends in an ellipsis where there is no room for all of it.
function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let least = 0;
  let most = text.length;
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (pen.measureText(text.slice(0, middle) + "\u2026").width <= room) least = middle;
    else most = middle - 1;
  }
  return least ? text.slice(0, least) + "\u2026" : "";
}

// A step of 1, 2 or 5 times a power of ten, so that ticks are at least `apart` pixels away.
function tickStep(span, pixels, apart) {
  const least = Math.max(1, (span * apart) / Math.max(1, pixels));
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

// The time axis below a drawing, with lines through it.
function drawTimes(pen, view, left, right, top, bottom) {
  const step = tickStep(view.to - view.from, right - left, right - left < 400 ? 60 : 90);
  pen.textAlign = "center";
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = left + ((at - view.from) / (view.to - view.from)) * (right - left);
    pen.fillStyle = "#e5e7eb";
    pen.fillRect(x, top, 1, bottom - top);
    pen.fillStyle = GREY;
    const text = instant(at);
    const half = pen.measureText(text).width / 2;
    if (x - half >= left - 14 && x + half <= right + 6) pen.fillText(text, x, bottom + 10);
  }
  pen.textAlign = "left";
}

function within(pen, left, top, width, height, draw) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  draw();
  pen.restore();
}
