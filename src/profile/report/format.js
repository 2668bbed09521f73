// The data, how its numbers are written, and what all plots share. Text from the data only ever becomes text, never markup.
const profile = JSON.parse(document.getElementById("profile").textContent);

const number = (value) => (Number.isInteger(value) && Math.abs(value) < 1000 ? String(value) : value >= 1000 ? d3.format(",.0f")(value) : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 0.01 ? value.toFixed(2) : value.toExponential(1));
const scaled = (value, units, step) => {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= step) value /= step, ++unit;
  return `${unit === 0 ? value : number(value)} ${units[unit]}`;
};
const time = (ns) => scaled(Math.round(ns), ["ns", "µs", "ms", "s"], 1000);
const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB"], 1000);
const sum = (rows, of) => rows.reduce((all, row) => all + of(row), 0);
const perCall = (row) => (row.calls > 0 ? row.wall_ns / row.calls : 0);
// What a call usually takes: one that the system took the processor from is not it.
const usually = (row) => `${time(row.median_ns)} a call (${time(row.least_ns)} to ${time(row.most_ns)}, mean ${time(perCall(row))}${row.disturbed ? ": disturbed" : ""})`;

// A colour for each block of the graph, the same in every plot: "layers.3/ffn" and "layers.7/ffn" share one.
const mergedPath = (path) => path.replace(/\.\d+(?=[./]|$)/g, ".*");
const blockNames = Array.from(new Set(profile.sections.flatMap((section) => section.blocks.map((block) => block.name))));
const colourOf = d3.scaleOrdinal(d3.schemeTableau10.concat(d3.schemeSet3)).domain(blockNames);

// A row of swatches with names: {name, colour}.
function drawLegend(id, entries) {
  d3.select(`#${id}`).text("").selectAll("span").data(entries).join("span").each(function(entry) {
    d3.select(this).append("i").attr("class", "swatch").style("background", entry.colour);
    d3.select(this).append("span").text(entry.name);
  });
}
const blockLegend = (section) => section.blocks.map((block) => ({ name: block.name || "(no block)", colour: colourOf(block.name) }));

// One bar of parts {name, value, text, colour}, as long as they add up to, with their names below.
function drawBar(id, parts) {
  const place = d3.select(`#${id}`), all = sum(parts, (part) => part.value);
  place.text("");
  const shown = parts.filter((part) => part.value > 0), bar = place.append("div").attr("class", "stack");
  addTip(bar.selectAll("div").data(shown).join("div").style("width", (part) => `${100 * part.value / all}%`).style("background", (part) => part.colour),
    (part) => `${part.name}: ${part.text}, ${number(100 * part.value / all)} %`);
  place.append("p").attr("class", "legend").attr("id", `${id}-legend`);
  drawLegend(`${id}-legend`, shown.map((part) => ({ name: `${part.name} ${part.text}`, colour: part.colour })));
}

const tip = document.getElementById("tip");
// Shows what `text` says of an element's datum while the pointer is over it.
function addTip(selection, text) {
  selection.on("mousemove.tip", (datum) => {
    tip.textContent = text(datum);
    tip.hidden = false;
    const { clientX, clientY } = d3.event;
    tip.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${clientY + 18 + tip.offsetHeight > innerHeight ? clientY - 10 - tip.offsetHeight : clientY + 18}px`;
  }).on("mouseleave.tip", () => { tip.hidden = true; });
  return selection;
}

// An empty plot of the section with this id, as wide as its place: its svg, and that width.
function newPlot(id, height) {
  const place = document.querySelector(`#${id} .plot`);
  place.textContent = "";
  const width = Math.max(place.clientWidth, 300);
  return { svg: d3.select(place).append("svg").attr("height", height).attr("viewBox", `0 0 ${width} ${height}`), width };
}

// Panning by dragging, zooming by buttons, double click and Ctrl + wheel (the wheel alone scrolls the page), along x only.
// `draw` gets the transform.
function addZoom(id, svg, left, right, height, draw) {
  const zoom = d3.zoom().scaleExtent([1, 5000]).extent([[left, 0], [right, height]]).translateExtent([[left, 0], [right, height]])
    .filter(() => !d3.event.button && (d3.event.type !== "wheel" || d3.event.ctrlKey || d3.event.metaKey || d3.event.shiftKey))
    .on("zoom", () => draw(d3.event.transform));
  svg.call(zoom);
  const place = d3.select(`#${id} .zoom`);
  place.text("");
  for (const [label, title, act] of [["+", "zoom in", () => zoom.scaleBy(svg, 2)], ["−", "zoom out", () => zoom.scaleBy(svg, 0.5)],
                                     ["all", "the whole", () => zoom.transform(svg, d3.zoomIdentity)]]) {
    place.append("button").text(label).attr("title", title).on("click", act);
    place.append("span").text(" ");
  }
  place.append("span").text("drag to pan, Ctrl + wheel to zoom");
  draw(d3.zoomIdentity);
}
