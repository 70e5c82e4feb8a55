// Building elements, and texts with marks that nest or cross. Whatever `make` writes as text is shown text.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = shownText(String(value));
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : name === "aria-label" ? shownText(value) : value);
  }
  element.append(...children);
  return element;
}

const NAMED = { "\u202d": "LRO", "\u202e": "RLO" };

// Text as it is shown: controls as their pictures, direction overrides by name, so that nothing is unseen or reordered.
function shownText(text) {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, (c) => (c === "\x7f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0))))
    .replace(/[\x80-\x9f]/g, (c) => `<U+00${c.charCodeAt(0).toString(16).toUpperCase()}>`)
    .replace(/[\u202d\u202e]/g, (c) => `<${NAMED[c]}>`);
}

// Cut [from, to) at every edge of `ranges` ({start, end}); each piece has the ranges that cover all of it, longest first.
function pieces(from, to, ranges) {
  const inside = ranges.filter((range) => range.start < to && range.end > from && range.end > range.start);
  const edges = new Set([from, to]);
  const opening = new Map();
  for (const range of inside) {
    const start = Math.max(from, range.start);
    edges.add(start);
    edges.add(Math.min(to, range.end));
    if (!opening.has(start)) opening.set(start, []);
    opening.get(start).push(range);
  }
  const places = [...edges].sort((a, b) => a - b);
  const found = [];
  let active = [];
  for (let i = 0; i + 1 < places.length; i += 1) {
    active = active.filter((range) => range.end > places[i]).concat(opening.get(places[i]) || []);
    active.sort((a, b) => b.end - b.start - (a.end - a.start));
    found.push({ start: places[i], end: places[i + 1], covering: active.slice() });
  }
  return found;
}

// `91%`, as `likelihood` in Python: whole hundredths, cut, so that what is shown is what a threshold goes by.
function share(value) {
  return value > 0 && value < 0.01 ? "<1%" : `${hundredths(value)}%`;
}

function hundredths(value) {
  return Math.floor(100 * value + 1e-9);
}

function counted(number, singular) {
  return `${number.toLocaleString("en")} ${singular}${number === 1 ? "" : "s"}`;
}

function chip(name, slot) {
  return make("span", { class: `chip slot-${slot}` }, make("bdi", { text: name }));
}

function textAttributes(tag, dir) {
  return { dir: dir || "auto", lang: /^[a-z0-9-]+$/i.test(tag || "") ? tag : null };
}
