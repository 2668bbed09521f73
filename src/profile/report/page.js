// Joins the parts. What is selected lives in the address, so that it can be linked to: report.html#section=1&kernel=3&stage=kir&line=12

const drawn = { section: -1, kernel: -1 };

function wanted() {
  const given = new URLSearchParams(location.hash.slice(1));
  const index = (name, count, otherwise) => (/^\d+$/.test(given.get(name) || "") && Number(given.get(name)) < count ? Number(given.get(name)) : otherwise);
  const decode = profile.sections.findIndex((section) => section.phase === "decode");
  const section = index("section", profile.sections.length, Math.max(decode, 0));
  const kernels = profile.sections[section].kernels;
  const slowest = kernels.reduce((most, kernel, k) => (kernel.typical_ns > kernels[most].typical_ns ? k : most), 0);
  return { section, kernel: index("kernel", kernels.length, slowest), stage: given.get("stage") || "kir", line: index("line", Infinity, 0) };
}

function go(changes) { location.hash = new URLSearchParams(changes).toString(); }

function drawSummary() {
  const { machine, compile } = profile;
  d3.select("#title").text(profile.model.split("/").pop());
  document.title = `${profile.model.split("/").pop()} - Quern profile`;
  d3.select("#subtitle").text(`${machine.cpu}, level ${machine.level}, ${profile.threads} thread${profile.threads === 1 ? "" : "s"}, context ${profile.context}`
    + `${profile.exact ? ", exact activations" : ""}; hardware counters: ${profile.counters.read ? profile.counters.events.join(", ") : profile.counters.reason}`);
  const cards = [];
  for (const phase of new Set(profile.sections.map((section) => section.phase))) {
    const sections = profile.sections.filter((section) => section.phase === phase), ns = sum(sections, (s) => s.step_ns), tokens = sum(sections, (s) => s.tokens);
    if (tokens > 0 && ns > 0) cards.push([`${number(tokens * 1e9 / ns)} tokens/s`, `${phase}, ${tokens} tokens in ${time(ns)}`]);
    else cards.push([time(ns / Math.max(1, sum(sections, (s) => s.steps))), `${phase}, a step`]);
  }
  const steps = (test) => sum(compile.steps.filter(test), (step) => step.ns);
  const made = compile.kernels.filter((kernel) => !kernel.loaded), loaded = compile.kernels.filter((kernel) => kernel.loaded);
  cards.push([time(steps((s) => s.name === "load")), "load: the file, and its graph"]);
  cards.push([time(steps((s) => s.name !== "load" && s.variant < 0)), "passes over the graph"]);
  cards.push([time(sum(compile.variants, (v) => v.plan_ns)), `plans of ${compile.variants.length} variant${compile.variants.length === 1 ? "" : "s"}`]);
  cards.push([time(sum(made, (kernel) => kernel.total_ns)), `LLVM, ${made.length} kernel${made.length === 1 ? "" : "s"}, over all threads`]);
  cards.push([time(sum(loaded, (kernel) => kernel.jitlink_ns)), `cache, ${loaded.length} kernel${loaded.length === 1 ? "" : "s"} linked`]);
  const place = d3.select("#summary");
  place.text("");
  for (const [value, label] of cards) {
    const card = place.append("div");
    card.append("b").text(value);
    card.append("span").text(label);
  }
}

function drawSection(index) {
  const section = profile.sections[index], onSelect = (kernel) => go({ section: index, kernel });
  drawRoofline(section, onSelect);
  drawKernels(section, onSelect);
  drawArena(section, onSelect);
  const runs = profile.timeline.filter((run) => run.section === index), choice = d3.select("#run");
  choice.selectAll("option").data(runs).join("option").attr("value", (_, r) => r)
    .text((run) => `step ${run.step} (${Object.entries(run.symbols).map(([name, value]) => `${name} ${value}`).join(", ")})`);
  choice.property("value", runs.length - 1).on("change", () => {
    drawRun(section, runs[Number(choice.property("value"))], onSelect);
    markKernel(drawn.kernel);
  });
  if (runs.length > 0) drawRun(section, runs[runs.length - 1], onSelect);
}

function markKernel(kernel) {
  d3.selectAll("#roofline .point, #timeline .slice").classed("selected", function() { return Number(this.dataset.kernel) === kernel; });
  d3.selectAll("#kernels tbody tr").classed("selected", function() { return Number(this.dataset.row) === kernel; });
}

function render() {
  if (profile.sections.length === 0) return;
  const { section, kernel, stage, line } = wanted();
  if (section !== drawn.section) {
    d3.select("#sections").selectAll("button").data(profile.sections).join("button").attr("aria-pressed", (_, s) => s === section)
      .text((s) => `${s.phase}: ${s.guard}, ${time(s.step_ns / Math.max(1, s.steps))} a step`).on("click", (_, s) => go({ section: s }));
    drawSection(section);
    drawn.kernel = -1;
  }
  if (kernel !== drawn.kernel) drawStages(profile.sections[section], kernel, (pinnedStage, pinned) => go({ section, kernel, stage: pinnedStage, line: pinned }));
  Object.assign(drawn, { section, kernel });
  markKernel(kernel);
  pinLine(stage, line);
}

function drawAll() {
  drawn.section = -1;
  drawSummary();
  render();
  drawCompile();
  drawCompiled();
  document.documentElement.dataset.ready = "true";
}

const licence = d3.select("#licence");
d3.select("#licence-link").on("click", () => {
  d3.event.preventDefault();
  licence.text(document.getElementById("d3-licence").textContent).property("hidden", !licence.property("hidden"));
});
addEventListener("hashchange", render);
let resized = 0, lastWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === lastWidth) return;
  lastWidth = innerWidth;
  clearTimeout(resized);
  resized = setTimeout(drawAll, 150);
});
drawAll();
