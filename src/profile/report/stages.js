// The selected kernel at every stage, with the lines that belong together. docs/profiling.md says how lines are linked: HIR and MIR
// lines lead to ops, KIR lines to the op they came from, LLVM IR and assembly lines to the KIR line.

const stageNames = [["hir", "HIR", "blocks, and what they read"], ["mir", "MIR", "the region"], ["kir", "KIR", "loops"], ["llvm", "LLVM IR", "optimised"], ["assembly", "assembly", ""],
                    ["tiles", "assembly, tiles inside", "as --specialise compiles it: what the calls of tiles do"]];

// Lines of the kernel's stages as {stage, line (from 1), text, ops (a set), kir (lines of it; null: any of its ops)}.
function linesOf(kernel) {
  const stages = kernel.stages, split = (text) => text.replace(/\n$/, "").split("\n");
  const kirOps = stages.kir.ops;
  const opsOfKir = (line) => new Set(line > 0 && kirOps[line - 1] >= 0 ? [kirOps[line - 1]] : []);
  const lists = {
    hir: split(stages.hir.text).map((text, i) => ({ text, ops: new Set(stages.hir.ops[i]), kir: null })),
    mir: split(stages.mir.text).map((text, i) => ({ text, ops: new Set(stages.mir.ops[i]), kir: null })),
    kir: split(kernel.kir).map((text, i) => ({ text, ops: opsOfKir(i + 1), kir: i + 1 })),
    llvm: split(stages.llvm.text).map((text, i) => ({ text, ops: opsOfKir(stages.llvm.kir_lines[i]), kir: stages.llvm.kir_lines[i] || 0 })),
    assembly: split(stages.assembly.text).map((text, i) => ({ text, ops: opsOfKir(stages.assembly.kir_lines[i]), kir: stages.assembly.kir_lines[i] || 0 })),
  };
  if (stages.tiles) lists.tiles = split(stages.tiles.text).map((text, i) => ({ text, ops: opsOfKir(stages.tiles.kir_lines[i]), kir: stages.tiles.kir_lines[i] || 0 }));
  for (const [stage, lines] of Object.entries(lists)) lines.forEach((line, i) => Object.assign(line, { stage, line: i + 1 }));
  return lists;
}

const opLine = (line) => line.kir === null;
// Lines of KIR and below belong together when they are of one KIR line; with HIR or MIR, when they share an op.
function linked(a, b) {
  if (a === b) return true;
  if (!opLine(a) && !opLine(b)) return a.kir > 0 && a.kir === b.kir;
  for (const op of a.ops) if (b.ops.has(op)) return true;
  return false;
}

let shownLines = null;  // what drawStages drew last, with the element of each line

function drawStages(section, index, onPin) {
  const kernel = section.kernels[index], columns = d3.select("#stages .columns");
  columns.text("");
  shownLines = null;
  d3.select("#stages-kernel").text(kernel ? kernel.symbol : "no kernel");
  if (!kernel) return;
  const compiled = profile.compile.kernels.find((row) => row.symbol === kernel.symbol);
  d3.select("#stages-figures").text(`${usually(kernel)}, ${number(kernel.share)} % of the time, `
    + `${number(kernel.gflops)} GFLOP/s, ${number(kernel.gbps)} GB/s, ${number(kernel.percent_of_peak)} % of the peak, bound by ${kernel.bound}; scratch ${bytes(kernel.scratch_bytes)} a thread`
    + (compiled ? `; ${compiled.loaded ? "taken from the cache" : "compiled"} in ${time(compiled.total_ns)}, ${bytes(compiled.object_bytes)} of object` : ""));
  const launches = section.launches.map((launch, l) => ({ launch, l })).filter(({ launch }) => launch.kernel === index);
  d3.select("#stages-launches").attr("class", "note launches")
    .text(`${launches.length === 1 ? "One launch" : `${launches.length} launches`} a step: ${launches.map(({ launch, l }) => `${l} ${launch.label} ${time(launch.median_ns)}`).join(" · ")}`);
  if (!kernel.stages) return;
  const lists = linesOf(kernel), all = [];
  for (const [stage, title, about] of stageNames) {
    if (!lists[stage]) continue;
    const column = columns.append("div").attr("class", "stage").attr("data-stage", stage);
    column.append("h3").text(`${title} `).append("span").text(about);
    const inner = document.createElement("div");
    for (const line of lists[stage]) {
      const element = document.createElement("div");
      element.className = !opLine(line) && line.kir === 0 || opLine(line) && line.ops.size === 0 ? "line" : "line leads";
      element.dataset.line = line.line;
      element.textContent = line.text;
      line.element = element;
      inner.append(element);
      all.push(line);
    }
    const box = column.append("div").attr("class", "lines").node();
    box.append(inner);
    const at = (event) => { const element = event.target.closest(".line"); return element ? lists[stage][element.dataset.line - 1] : null; };
    box.addEventListener("mouseover", (event) => markLines(at(event), false));
    box.addEventListener("mouseleave", () => markLines(null, false));
    box.addEventListener("click", (event) => { const line = at(event); if (line) onPin(stage, line.line); });
  }
  shownLines = { all, lists, pinned: null };
}

// Marks the lines that belong to `line`, or to the pinned one without it; `scroll`: brings the first of each column into view.
function markLines(line, scroll) {
  const source = line || shownLines.pinned;
  for (const other of shownLines.all) {
    other.element.classList.toggle("linked", source !== null && linked(source, other));
    other.element.classList.toggle("pinned", source !== null && source === shownLines.pinned && linked(source, other));
  }
  if (!scroll) return;
  for (const [stage, lines] of Object.entries(shownLines.lists)) {
    // With nothing to follow: in the assembly, past the constants.
    const target = source === null ? lines.find((other) => stage === "assembly" && other.kir > 0)
      : stage === source.stage ? source : lines.find((other) => linked(source, other));
    if (!target) continue;
    const box = target.element.closest(".lines"), at = target.element.offsetTop;
    if (at < box.scrollTop || at + 40 > box.scrollTop + box.clientHeight) box.scrollTop = at - box.clientHeight / 3;
  }
}

// Pins a line: it and what belongs to it stay marked. No line: nothing is pinned.
function pinLine(stage, number) {
  if (shownLines === null) return;
  shownLines.pinned = (shownLines.lists[stage] || [])[number - 1] || null;
  markLines(null, true);
}
