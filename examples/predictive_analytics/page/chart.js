// A chart as SVG, from data that the server has checked. Every name becomes a text node and
// every number an attribute, so nothing in the data is markup.

import { make } from "./dom.js";

const [WIDTH, HEIGHT] = [640, 320];
const AREA = { left: 64, right: WIDTH - 14, top: 12, bottom: HEIGHT - 46 };
const COLOURS = 8;
/** Names below the axis, and ticks beside it. */
const [NAMES, TICKS] = [9, 5];
/** Points of a line that are drawn one by one. */
const DOTS = 400;

const ENGINES = {
  "scikit-learn": "Computed with pandas and scikit-learn.",
  "standard-library": "Computed with the Python standard library: the sandbox has no pandas or scikit-learn.",
};

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

/** Returns a chart with its title, its legend and its numbers. */
export function figure(chart) {
  const colours = coloured(chart.series);
  return make("figure", {},
    make("figcaption", {}, chart.title),
    drawing(chart, colours),
    make("ul", { class: "legend" }, ...chart.series.map((series, at) =>
      make("li", {}, sample(chart.shape, series, colours[at]), make("span", {}, series.name)))),
    make("p", { class: "engine" }, ENGINES[chart.engine] ?? ""),
    make("details", { class: "numbers" }, make("summary", {}, "Numbers"), make("div", {}, table(chart))));
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The class of each series. One that is dashed has the colour of the one before it. */
function coloured(all) {
  let number = -1;
  return all.map((series, at) => {
    if (!series.dashed || at === 0) number += 1;
    return `series-${number % COLOURS}`;
  });
}

function drawing(chart, colours) {
  const points = chart.series.flatMap((series) => series.points);
  const isNamed = typeof points[0][0] === "string";
  const names = isNamed ? [...new Set(points.map(([x]) => x))].sort(order) : [];
  const places = new Map(names.map((name, at) => [name, at]));
  const xs = isNamed ? [0, names.length - 1] : extent(points.map(([x]) => x));
  const ys = points.map(([, y]) => y);
  const y = scale(nice(extent(chart.shape === "bar" ? [0, ...ys] : ys)), AREA.bottom, AREA.top);
  // Bars have room on both sides of their place.
  const inset = chart.shape === "bar" ? (AREA.right - AREA.left) / (2 * names.length) : 6;
  const line = scale({ low: xs[0], high: xs[1] }, AREA.left + inset, AREA.right - inset);
  const x = (value) => line(isNamed ? places.get(value) : value);

  const body = { line: lines, scatter: dots, bar: bars }[chart.shape](chart, colours, x, y, names.length);
  const image = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" },
    svg("title", {}, chart.title),
    ...ticks(y.low, y.high, y.size).flatMap((value) => [
      svg("line", { class: "grid", x1: AREA.left, x2: AREA.right, y1: y(value), y2: y(value) }),
      svg("text", { x: AREA.left - 8, y: y(value) + 4, "text-anchor": "end" }, short.format(value)),
    ]),
    ...(isNamed ? thinned(names) : ticks(...xs)).map((value) =>
      svg("text", { x: x(value), y: AREA.bottom + 16, "text-anchor": "middle" }, isNamed ? cut(value, 12) : short.format(value))),
    svg("text", { x: (AREA.left + AREA.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, chart.x_label),
    svg("text", { x: 12, y: (AREA.top + AREA.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(AREA.top + AREA.bottom) / 2})` }, chart.y_label),
    ...body);
  return image;
}

function lines(chart, colours, x, y) {
  const count = chart.series.reduce((sum, series) => sum + series.points.length, 0);
  return chart.series.flatMap((series, at) => {
    const path = series.points.map(([px, py], n) => `${n ? "L" : "M"}${x(px)} ${y(py)}`).join("");
    const drawn = svg("path", { class: `${colours[at]} line${series.dashed ? " dashed" : ""}`, d: path });
    return count <= DOTS ? [drawn, ...spots(series, colours[at], x, y, 2.2)] : [drawn];
  });
}

function dots(chart, colours, x, y) {
  return chart.series.flatMap((series, at) => spots(series, colours[at], x, y, 3.5));
}

function spots(series, colour, x, y, r) {
  return series.points.map(([px, py]) =>
    svg("circle", { class: colour, cx: x(px), cy: y(py), r }, svg("title", {}, tip(series, px, py))));
}

function bars(chart, colours, x, y, names) {
  const room = ((AREA.right - AREA.left) / names) * 0.8;
  const width = room / chart.series.length;
  return chart.series.flatMap((series, at) => series.points.map(([px, py]) => {
    const [top, bottom] = [Math.min(y(py), y(0)), Math.max(y(py), y(0))];
    const left = x(px) - room / 2 + at * width;
    return svg("rect", { class: colours[at], x: left, y: top, width: width * 0.9, height: bottom - top }, svg("title", {}, tip(series, px, py)));
  }));
}

const tip = (series, x, y) => `${series.name}, ${x}: ${numbers.format(y)}`;

/** A piece of a series, for the legend. */
function sample(shape, series, colour) {
  const mark = shape === "line"
    ? svg("path", { class: `${colour} line${series.dashed ? " dashed" : ""}`, d: "M0 6H22" })
    : svg("rect", { class: colour, x: 5, y: 0, width: 12, height: 12 });
  return svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, mark);
}

function table(chart) {
  const rows = chart.series.flatMap((series) => series.points.map(([x, y]) =>
    make("tr", {}, make("th", {}, series.name), make("th", {}, String(x)), make("td", {}, numbers.format(y)))));
  return make("table", {}, make("tbody", {}, ...rows));
}

/** By number within names, so that 2 is before 10. */
const order = new Intl.Collator("en", { numeric: true }).compare;

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/** The distance of ticks between two numbers: 1, 2 or 5 times a power of ten. */
function step(low, high) {
  const rough = (high - low) / TICKS || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
}

/** Extends a range to whole ticks. */
function nice([low, high]) {
  const size = step(low, high);
  const range = { low: Math.floor(low / size) * size, high: Math.ceil(high / size) * size, size };
  if (range.low === range.high) range.high += size;
  return range;
}

function ticks(low, high, size = step(low, high)) {
  const first = Math.ceil(low / size);
  const count = Math.floor(high / size + 0.001) - first;
  return Array.from({ length: Math.max(0, count) + 1 }, (_, at) => (first + at) * size);
}

/** Maps a range to pixels. A range without extent is in the middle. */
function scale({ low, high, size }, from, to) {
  const map = (value) => low === high ? (from + to) / 2 : Math.round((from + ((value - low) / (high - low)) * (to - from)) * 10) / 10;
  return Object.assign(map, { low, high, size });
}

function thinned(names) {
  const every = Math.ceil(names.length / NAMES);
  return names.filter((_, at) => at % every === 0);
}

const cut = (text, chars) => (text.length > chars ? `${text.slice(0, chars - 1)}…` : text);
