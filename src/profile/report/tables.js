// Sortable tables of kernels, of blocks and of what compiling took.

// `columns`: {name, title, value(row), text(row), left, cell(td, row)}; sorted by the column `by` at first, most first.
function drawTable(id, columns, rows, by, onSelect) {
  const place = d3.select(`#${id}`);
  place.text("");
  const table = place.append("table"), body = table.append("tbody");
  const heads = table.insert("thead", "tbody").append("tr").selectAll("th").data(columns).join("th").attr("class", (c) => (c.left ? "text" : null))
    .attr("title", (c) => c.title || null).text((c) => c.name);
  const rank = new Map(rows.map((row, index) => [row, index]));
  const fill = (tr, row) => columns.forEach((column) => {
    const td = tr.append("td").attr("class", column.left ? `text ${column.kind || ""}` : null);
    if (column.cell) column.cell(td, row);
    else td.text(column.text ? column.text(row) : number(column.value(row)));
  });
  body.selectAll("tr").data(rows).join("tr").attr("data-row", (_, index) => index).each(function(row) { fill(d3.select(this), row); })
    .on("click", (row) => { if (onSelect) onSelect(rank.get(row)); });
  const sort = (column, descending) => {
    const compare = column.left ? d3.ascending : d3.descending;
    body.selectAll("tr").sort((a, b) => (descending ? 1 : -1) * compare(column.value(a), column.value(b)) || rank.get(a) - rank.get(b));
    heads.attr("aria-sort", (c) => (c !== column ? null : (descending !== Boolean(column.left) ? "descending" : "ascending")));
  };
  let last = columns.find((column) => column.name === by), first = true;
  heads.on("click", (column) => {
    first = column === last ? !first : true;
    last = column;
    sort(column, first);
  });
  if (last) sort(last, true);
}

const figureColumns = [
  { name: "calls", value: (row) => row.calls, title: "launches in all measured steps" },
  { name: "total", value: (row) => row.wall_ns, text: (row) => time(row.wall_ns), title: "from the first chunk to the last, over all calls" },
  { name: "median", value: (row) => row.median_ns, text: (row) => time(row.median_ns), title: "of one call" },
  { name: "least", value: (row) => row.least_ns, text: (row) => time(row.least_ns), title: "the quickest call" },
  { name: "mean", value: perCall, text: (row) => time(perCall(row)) + (row.disturbed ? " !" : ""), title: "of one call; !: 1.3 times the median or more, something else ran meanwhile" },
  { name: "share %", value: (row) => row.share, title: "of the time of the steps", cell: (td, row) => {
    td.append("span").attr("class", "bar").style("width", `${Math.min(row.share, 100) * 0.5}px`);
    td.append("span").text(row.share.toFixed(1));
  } },
  { name: "GFLOP/s", value: (row) => row.gflops },
  { name: "GB/s", value: (row) => row.gbps },
  { name: "% peak", value: (row) => row.percent_of_peak, text: (row) => row.percent_of_peak.toFixed(1), title: "least time the bytes or operations need, by the median time" },
  { name: "bound", value: (row) => row.bound, text: (row) => row.bound, left: true },
];

function nameColumn(name, text, block, mark) {
  return { name, value: text, left: true, cell: (td, row) => {
    td.append("span").attr("class", "swatch").style("background", colourOf(block(row)));
    td.append("span").text(text(row) + (mark ? mark(row) : ""));
  } };
}

function drawKernels(section, onSelect) {
  const ops = (row) => row.origins.slice().sort((a, b) => b.share - a.share).map((origin) => origin.op.split("/").pop()).join(", ");
  drawTable("kernels", [
    nameColumn("kernel", (row) => row.symbol, (row) => row.block, (row) => (row.sequential ? " (seq)" : "") + (row.estimate ? " ~" : "")),
    ...figureColumns,
    { name: "block", value: (row) => row.block, text: (row) => row.block, left: true },
    { name: "ops", value: ops, left: true, kind: "ops", cell: (td, row) => td.text(ops(row)).attr("title", ops(row)) },
  ], section.kernels, "total", onSelect);
  drawTable("blocks", [
    nameColumn("block", (row) => row.name, (row) => row.name),
    { name: "launches", value: (row) => row.launches, title: "a step" },
    ...figureColumns,
  ], section.blocks, "total");
  const parts = section.blocks.map((block) => ({ name: block.name || "(no block)", value: block.wall_ns, text: time(block.wall_ns / section.steps), colour: colourOf(block.name) }));
  const rest = [["dispatch", section.dispatch, "#888888"], ["bind", section.bind, "#bbbbbb"]];
  drawBar("step", parts.concat(rest.map(([name, part, colour]) => ({ name, value: part.wall_ns, text: time(part.wall_ns / section.steps), colour }))));
  d3.select("#outside").text(`A step takes ${time(section.step.median_ns)} (median; ${time(section.step.least_ns)} to ${time(section.step.most_ns)}`
    + `${section.step.disturbed ? "; the mean is 1.3 times that or more: something else ran meanwhile" : ""}). Beside kernels: ${number(section.dispatch.share)} % of the time between launches, ${number(section.bind.share)} % before the first. `
    + `Threads are idle ${number(section.workers.idle_percent)} % of the step. A step touches ${bytes(section.working_set_bytes)}, held against ${section.memory}.`);
}

function drawCompiled() {
  const part = (name) => ({ name, value: (row) => row[`${name}_ns`], text: (row) => time(row[`${name}_ns`]) });
  drawTable("compiled", [
    { name: "kernel", value: (row) => row.symbol, text: (row) => row.symbol, left: true },
    { name: "variant", value: (row) => row.variant, text: (row) => row.variant },
    { name: "from", value: (row) => (row.loaded ? "cache" : "LLVM"), text: (row) => (row.loaded ? "cache" : "LLVM"), left: true },
    ...compileParts.map(part), part("jitlink"), part("total"),
    { name: "object", value: (row) => row.object_bytes, text: (row) => bytes(row.object_bytes) },
    { name: "instructions", value: (row) => row.instructions, text: (row) => row.instructions, title: "of LLVM IR, before linking" },
  ], profile.compile.kernels, "total");
}
