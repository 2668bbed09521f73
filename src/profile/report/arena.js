// Which value lives where in the arena, and for how long: launches from left to right, bytes from the bottom up.

function drawArena(section, onSelect) {
  const values = section.buffers.map((buffer, index) => ({ ...buffer, index })).filter((b) => b.home === "arena" && b.offset >= 0 && b.first_launch >= 0);
  const launches = section.launches.length, height = 300, left = 64, top = 20, bottom = height - 38;
  // The launch that writes a value first gives it its name.
  const writers = new Map();
  section.launches.forEach((launch, l) => launch.arguments.forEach((a) => { if (a.mode !== "in" && !writers.has(a.buffer)) writers.set(a.buffer, l); }));
  const live = d3.range(launches).map((l) => sum(values.filter((v) => v.first_launch <= l && l <= v.last_launch), (v) => v.bytes));
  const peak = Math.max(0, live.indexOf(d3.max(live)));
  d3.select("#arena-note").text(values.length === 0 ? "No value of this step needs the arena."
    : `${values.length} values share ${bytes(section.arena_bytes)}; most is live, ${bytes(live[peak])}, at launch ${peak}: ${section.launches[peak].label}.`);
  // Memory beside the arena: of each home the buffers that the step uses, each once.
  const homes = [["param", "weights", "#4e79a7"], ["state", "state (KV cache)", "#f28e2b"], ["once", "made of weights once", "#76b7b2"], ["constant", "constants", "#59a14f"],
                 ["input", "inputs", "#edc948"], ["output", "outputs", "#b07aa1"]];
  const used = section.buffers.filter((b) => b.first_launch >= 0);
  drawBar("memory", homes.map(([home, name, colour]) => {
    const held = sum(used.filter((b) => b.home === home), (b) => b.bytes);
    return { name, value: held, text: bytes(held), colour };
  }).concat([{ name: "arena", value: section.arena_bytes, text: bytes(section.arena_bytes), colour: "#e15759" }]));
  const { svg, width } = newPlot("arena", height);
  const right = width - 12, x = d3.scaleLinear([0, Math.max(launches, 1)], [left, right]), y = d3.scaleLinear([0, Math.max(section.arena_bytes, 1)], [bottom, top]);
  svg.append("clipPath").attr("id", "arena-clip").append("rect").attr("x", left).attr("width", right - left).attr("height", bottom);
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(bytes));
  const axis = svg.append("g").attr("transform", `translate(0,${bottom})`);
  svg.append("text").attr("class", "quiet").attr("x", (left + right) / 2).attr("y", height - 4).attr("text-anchor", "middle").text("launch");
  const inside = svg.append("g").attr("clip-path", "url(#arena-clip)");
  const moving = inside.append("g"), labels = inside.append("g");
  const nameOf = (v) => (writers.has(v.index) ? section.launches[writers.get(v.index)].label : v.name);
  addTip(moving.selectAll("rect").data(values).join("rect").attr("class", "value").attr("x", (v) => x(v.first_launch)).attr("width", (v) => x(v.last_launch + 1) - x(v.first_launch))
    .attr("y", (v) => y(v.offset + v.bytes)).attr("height", (v) => Math.max(y(v.offset) - y(v.offset + v.bytes), 1))
    .attr("fill", (v) => (writers.has(v.index) ? colourOf(mergedPath(section.launches[writers.get(v.index)].block)) : "#999999")).attr("data-buffer", (v) => v.index),
    (v) => `${nameOf(v)}\n${v.type}, ${bytes(v.bytes)} at ${v.offset}\nfrom launch ${v.first_launch} to ${v.last_launch}: ${section.launches[v.last_launch].label}`)
    .on("click", (v) => { if (writers.has(v.index)) onSelect(section.launches[writers.get(v.index)].kernel); });
  moving.append("line").attr("class", "peak").attr("vector-effect", "non-scaling-stroke").attr("x1", x(peak + 0.5)).attr("x2", x(peak + 0.5)).attr("y1", top - 14).attr("y2", bottom);
  inside.append("line").attr("class", "peak").attr("x1", left).attr("x2", right).attr("y1", y(section.arena_bytes)).attr("y2", y(section.arena_bytes));
  const mark = inside.append("text").attr("class", "halo").attr("id", "arena-peak").attr("y", top - 8).text(`peak ${bytes(live[peak] || 0)}`);
  addZoom("arena", svg, left, right, bottom, (view) => {
    const shown = view.rescaleX(x);
    moving.attr("transform", `translate(${view.x},0) scale(${view.k},1)`);
    axis.call(d3.axisBottom(shown).ticks(Math.min(launches, 20)).tickFormat(d3.format("~r")));
    mark.attr("x", Math.max(left + 4, Math.min(shown(peak + 0.5) + 5, right - 90)));
    const wide = values.filter((v) => shown(v.last_launch + 1) - shown(v.first_launch) > 34 && y(v.offset) - y(v.offset + v.bytes) > 11
                               && shown(v.last_launch + 1) > left && shown(v.first_launch) < right);
    labels.selectAll("text").data(wide).join("text").attr("class", "inside").attr("x", (v) => Math.max(shown(v.first_launch), left) + 4)
      .attr("y", (v) => (y(v.offset) + y(v.offset + v.bytes)) / 2 + 4)
      .text((v) => clipped(nameOf(v), Math.min(shown(v.last_launch + 1), right) - Math.max(shown(v.first_launch), left) - 6));
  });
}
