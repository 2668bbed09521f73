// Slices of time on tracks: a step by worker, and compiling by thread.

// `tracks`: names; `slices`: {track, start, ns, name, tip, colour, kernel} with times in nanoseconds from 0 to `span`; `kernel`,
// where there is one, is selected by a click.
function drawTimeline(id, tracks, slices, span, onSelect) {
  const row = 24, left = 118, top = 4, bottom = top + tracks.length * row;
  const { svg, width } = newPlot(id, bottom + 24);
  const right = width - 12, x = d3.scaleLinear([0, span], [left, right]);
  const clip = `${id}-clip`;
  svg.append("clipPath").attr("id", clip).append("rect").attr("x", left).attr("width", right - left).attr("height", bottom);
  svg.append("g").selectAll("text").data(tracks).join("text").attr("class", "quiet").attr("x", left - 8).attr("y", (_, t) => top + t * row + 15)
    .attr("text-anchor", "end").text((name) => name);
  const axis = svg.append("g").attr("transform", `translate(0,${bottom})`);
  const inside = svg.append("g").attr("clip-path", `url(#${clip})`);
  const rects = inside.append("g"), labels = inside.append("g");
  addTip(rects.selectAll("rect").data(slices).join("rect").attr("class", "slice").attr("x", (s) => x(s.start))
    .attr("width", (s) => Math.max(x(s.start + s.ns) - x(s.start), 0.01)).attr("y", (s) => top + s.track * row + 1).attr("height", row - 2).attr("fill", (s) => s.colour)
    .attr("data-kernel", (s) => s.kernel), (s) => s.tip)
    .on("click", (s) => { if (s.kernel !== undefined) onSelect(s.kernel); });
  addZoom(id, svg, left, right, bottom, (view) => {
    const shown = view.rescaleX(x);
    rects.attr("transform", `translate(${view.x},0) scale(${view.k},1)`);
    axis.call(d3.axisBottom(shown).ticks(10).tickFormat(time));
    const visible = slices.filter((s) => shown(s.start + s.ns) > left && shown(s.start) < right && shown(s.start + s.ns) - shown(s.start) > 34);
    labels.selectAll("text").data(visible).join("text").attr("class", "inside").attr("y", (s) => top + s.track * row + 16)
      .attr("x", (s) => Math.max(shown(s.start), left) + 4)
      .text((s) => clipped(s.name, Math.min(shown(s.start + s.ns), right) - Math.max(shown(s.start), left) - 6));
  });
}

// The end of a text that fits so many pixels of the small font: labels begin alike.
function clipped(text, pixels) {
  const letters = Math.floor(pixels / 6);
  return text.length <= letters ? text : letters < 4 ? "" : `…${text.slice(text.length - letters + 1)}`;
}

function drawRun(section, run, onSelect) {
  const workers = Math.max(profile.threads, 1 + d3.max(run.slices, (s) => s[1]) || 1);
  const slices = run.slices.map(([launch, worker, start, ns, chunks]) => {
    const of = section.launches[launch], kernel = section.kernels[of.kernel];
    return { track: worker, start: start - run.start_ns, ns, name: of.label, colour: colourOf(mergedPath(of.block)), kernel: of.kernel,
             tip: `${of.label}\n${kernel.symbol}\nlaunch ${launch}, ${chunks} chunk${chunks === 1 ? "" : "s"}, ${time(ns)}` };
  });
  const span = Math.max(run.kernels_start_ns + run.kernels_ns - run.start_ns, 1, ...slices.map((s) => s.start + s.ns));
  drawLegend("timeline-legend", blockLegend(section));
  drawTimeline("timeline", d3.range(workers).map((w) => `worker ${w}`), slices, span, onSelect);
}

const compileParts = ["emit", "link", "optimise", "codegen"];

function drawCompile() {
  const compile = profile.compile, slices = [];
  const colour = d3.scaleOrdinal(d3.schemeTableau10).domain(["pass", "machine code", ...compileParts, "jitlink"]);
  const add = (track, start, ns, kind, name) => slices.push({ track, start, ns, name, colour: colour(kind), tip: `${name}\n${time(ns)}` });
  for (const step of compile.steps) add(0, step.start_ns, step.ns, "pass", step.variant < 0 ? step.name : `${step.name}, variant ${step.variant}`);
  for (const v of compile.variants) add(0, v.start_ns + v.plan_ns, v.machine_code_ns, "machine code", `machine code of variant ${v.variant}`);
  const threads = 1 + d3.max(compile.kernels, (k) => (k.loaded ? -1 : k.thread)) || 0;
  for (const kernel of compile.kernels) {
    add(threads + 1, kernel.jitlink_start_ns, kernel.jitlink_ns, "jitlink", `${kernel.loaded ? "from the cache" : "jitlink"} ${kernel.symbol}`);
    if (kernel.loaded) continue;
    let at = kernel.start_ns;
    for (const part of compileParts) {
      add(1 + kernel.thread, at, kernel[`${part}_ns`], part, `${part} ${kernel.symbol}`);
      at += kernel[`${part}_ns`];
    }
  }
  drawLegend("compile-legend", colour.domain().map((name) => ({ name, colour: colour(name) })));
  const tracks = ["steps", ...d3.range(threads).map((t) => `compile thread ${t}`), "jitlink"];
  drawTimeline("compile", tracks, slices, Math.max(1, ...slices.map((s) => s.start + s.ns)), () => {});
}
