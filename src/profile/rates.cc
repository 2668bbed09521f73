// From sums to rates: the roofline of one machine over what ran on it.
#include <algorithm>

#include "profile/profile.h"

namespace quern::profile {

void Sums::Add(const Sums& other) {
  if (other.calls == 0) return;
  least = calls == 0 ? other.least : std::min(least, other.least);
  most = std::max(most, other.most);
  calls += other.calls;
  chunks += other.chunks;
  wall += other.wall;
  typical += other.typical;
  walls.insert(walls.end(), other.walls.begin(), other.walls.end());
  busy += other.busy;
  flops += other.flops;
  bf16_ops += other.bf16_ops;
  int8_ops += other.int8_ops;
  read += other.read;
  written += other.written;
  for (int i = 0; i < kMaxCounters; ++i) counts[i] += other.counts[i];
}

int64_t Sums::Median() const {
  if (walls.empty()) return 0;
  std::vector<int64_t> sorted = walls;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

bool Sums::Disturbed() const {
  return calls > 0 && static_cast<double>(wall) > 1.3 * static_cast<double>(Median() * calls);
}

std::string_view Name(Bound bound) {
  constexpr std::string_view kNames[] = {"memory", "compute", "overhead"};
  return kNames[static_cast<int>(bound)];
}

Rates Profile::RatesOf(const Sums& sums, const Section& section) const {
  Rates rates;
  if (sums.calls == 0) return rates;
  const auto wall = static_cast<double>(std::max<int64_t>(sums.typical, 1));
  const auto bytes = static_cast<double>(sums.read + sums.written);
  const double operations = sums.operations();
  rates.gflops = operations / wall;  // operations a nanosecond
  rates.gbps = bytes / wall;
  rates.intensity = bytes > 0 ? operations / bytes : 0;
  const auto calls = static_cast<double>(sums.calls);
  const auto time = [](double work, double rate) { return rate > 0 ? work / rate : 0; };
  const double memory_ns = time(bytes, machine.memory.empty() ? 0 : machine.memory[section.memory].gbps) / calls;
  const double compute_ns = (time(sums.flops, machine.f32_gflops) + time(sums.bf16_ops, machine.bf16_gflops) +
                             time(sums.int8_ops, machine.int8_gops)) /
                            calls;
  rates.roof_ns = std::max(memory_ns, compute_ns);
  rates.percent = 100 * rates.roof_ns * calls / wall;
  rates.bound = memory_ns >= compute_ns ? Bound::kMemory : Bound::kCompute;
  if (machine.dispatch_ns > rates.roof_ns) rates.bound = Bound::kOverhead;
  return rates;
}

bool Profile::AbovePeaks() const {
  for (const Section& section : sections) {
    const int64_t nearer = section.memory > 0 ? machine.memory[section.memory - 1].bytes : 0;
    for (const Kernel& kernel : section.kernels) {
      const Rates rates = RatesOf(kernel.sums, section);
      const int64_t bytes = (kernel.sums.read + kernel.sums.written) / std::max<int64_t>(kernel.sums.calls, 1);
      if (rates.percent > 110 && (rates.bound == Bound::kCompute || (rates.bound == Bound::kMemory && bytes > nearer)))
        return true;
    }
  }
  return false;
}

Rates Profile::StepRatesOf(const Section& section) const {
  Sums sums = section.sums;
  sums.calls = section.steps;
  sums.typical = section.step.Median() * section.steps;
  Rates rates = RatesOf(sums, section);
  if (section.steps == 0) return rates;
  const auto steps = static_cast<double>(section.steps);
  double roof = 0, compute = 0, overhead = 0;  // over all steps; of kernels that their operations bind
  for (const Kernel& kernel : section.kernels) {
    const Rates own = RatesOf(kernel.sums, section);
    const double all = own.roof_ns * static_cast<double>(kernel.sums.calls);
    roof += all;
    overhead += machine.dispatch_ns * static_cast<double>(kernel.sums.calls);
    if (own.bound == Bound::kCompute) compute += all;
  }
  rates.roof_ns = roof / steps;
  rates.percent = 100 * roof / static_cast<double>(std::max<int64_t>(sums.typical, 1));
  rates.bound = overhead > roof ? Bound::kOverhead : 2 * compute > roof ? Bound::kCompute : Bound::kMemory;
  return rates;
}

std::vector<SpanSums> Profile::SumsOfSpans() const {
  std::vector<SpanSums> rows;
  for (const CallerSpan& span : spans) {
    if (span.warm_up) continue;
    auto row = std::find_if(rows.begin(), rows.end(), [&](const SpanSums& known) {
      return known.name == span.name && known.phase == span.phase;
    });
    if (row == rows.end()) row = rows.insert(row, {span.name, span.phase, 0, 0, span.duration, span.duration});
    ++row->count;
    row->wall += span.duration;
    row->least = std::min(row->least, span.duration);
    row->most = std::max(row->most, span.duration);
  }
  return rows;
}

}  // namespace quern::profile
