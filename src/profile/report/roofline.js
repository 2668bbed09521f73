// What each kernel reaches, under what this machine can do: operations a second over operations a byte, both logarithmic.

function drawRoofline(section, onSelect) {
  const machine = profile.machine, height = 400, left = 56, top = 12, bottom = height - 40;
  const { svg, width } = newPlot("roofline", height);
  const right = width - 14;
  const rows = section.kernels.map((kernel, index) => ({ kernel, index })).filter(({ kernel }) => kernel.intensity > 0 && kernel.gflops > 0);
  const peaks = [{ name: "int8", gops: machine.int8_gops }, { name: "f32", gops: machine.f32_gflops }].filter((peak) => peak.gops > 0);
  const most = d3.max(peaks, (peak) => peak.gops) || 1;
  const slopes = machine.memory.filter((level) => level.gbps > 0);
  const x = d3.scaleLog([Math.min(0.1, d3.min(rows, (r) => r.kernel.intensity / 2) || 0.1), Math.max(1000, d3.max(rows, (r) => r.kernel.intensity * 3) || 0)], [left, right]);
  const y = d3.scaleLog([Math.min(1, d3.min(rows, (r) => r.kernel.gflops / 3) || 1), Math.max(most, d3.max(rows, (r) => r.kernel.gflops) || 0) * 2], [bottom, top]);
  const powers = (scale) => d3.range(Math.ceil(Math.log10(scale.domain()[0])), Math.floor(Math.log10(scale.domain()[1])) + 1).map((power) => Math.pow(10, power));
  svg.append("g").attr("class", "grid").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).tickValues(powers(x)).tickSize(top - bottom).tickFormat(""));
  svg.append("g").attr("class", "grid").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).tickValues(powers(y)).tickSize(left - right).tickFormat(""));
  svg.append("g").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).tickValues(powers(x)).tickFormat(d3.format("~r")));
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).tickValues(powers(y)).tickFormat(d3.format("~r")));
  svg.append("text").attr("class", "quiet").attr("x", (left + right) / 2).attr("y", height - 6).attr("text-anchor", "middle").text("operations a byte");
  svg.append("text").attr("class", "quiet").attr("transform", `translate(12,${(top + bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text("GFLOP/s, GOP/s");

  svg.append("clipPath").attr("id", "roofline-clip").append("rect").attr("x", left).attr("y", top).attr("width", right - left).attr("height", bottom - top);
  const roofs = svg.append("g").attr("clip-path", "url(#roofline-clip)"), from = x.domain()[0], to = x.domain()[1];
  for (const level of slopes) {
    roofs.append("line").attr("class", "roof").attr("x1", x(from)).attr("y1", y(from * level.gbps)).attr("x2", x(most / level.gbps)).attr("y2", y(most));
  }
  // Their names stand on them, each at another place: some memories are nearly as fast as the next.
  const angle = Math.atan2(y(10) - y(1), x(10) - x(1)) * 180 / Math.PI;
  slopes.forEach((level, l) => {
    const at = Math.max(x(from), x(y.domain()[0] / level.gbps)) + 44, room = x(most / level.gbps) - at - 60;
    const middle = x.invert(at + room * (l + 0.5) / slopes.length);
    roofs.append("text").attr("class", "quiet halo").attr("text-anchor", "middle").attr("dy", -3)
      .attr("transform", `translate(${x(middle)},${y(middle * level.gbps)}) rotate(${angle})`).text(`${level.name} ${number(level.gbps)} GB/s`);
  });
  const fastest = d3.max(slopes, (level) => level.gbps) || most;
  for (const peak of peaks) {
    roofs.append("line").attr("class", "roof").attr("x1", x(Math.max(from, peak.gops / fastest))).attr("x2", x(to)).attr("y1", y(peak.gops)).attr("y2", y(peak.gops));
    svg.append("text").attr("class", "quiet halo").attr("x", right - 4).attr("y", y(peak.gops) - 5).attr("text-anchor", "end").text(`${peak.name} ${number(peak.gops)} ${peak.name === "int8" ? "GOP/s" : "GFLOP/s"}`);
  }

  drawLegend("roofline-legend", blockLegend(section).filter((entry) => rows.some((r) => r.kernel.block === entry.name)));
  addTip(svg.append("g").selectAll("circle").data(rows.slice().sort((a, b) => b.kernel.share - a.kernel.share)).join("circle").attr("class", "point")
    .attr("data-kernel", (r) => r.index).attr("cx", (r) => x(r.kernel.intensity)).attr("cy", (r) => y(r.kernel.gflops))
    .attr("r", (r) => 3 + 2.2 * Math.sqrt(r.kernel.share)).attr("fill", (r) => colourOf(r.kernel.block)),
    ({ kernel }) => `${kernel.symbol}\n${number(kernel.gflops)} GFLOP/s, ${number(kernel.gbps)} GB/s, ${number(kernel.intensity)} operations a byte\n`
      + `${number(kernel.share)} % of the time, ${number(kernel.percent_of_peak)} % of the peak, bound by ${kernel.bound}`)
    .on("click", (r) => onSelect(r.index));
}
