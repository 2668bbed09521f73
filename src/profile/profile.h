// A profile: where the time of an executable's runs went, by kernel and by block, beside what the kernels compute and
// move. Plain data, made by Collect; json.h, trace.h and table.h write it. docs/profiling.md explains every field.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time_span.h"
#include "jit/engine.h"
#include "profile/machine.h"
#include "profile/stages.h"
#include "runtime/executable.h"
#include "runtime/run_log.h"

namespace quern::profile {

// What was measured of something that ran several times, summed. Times are nanoseconds. One call that the system took
// the processor from says nothing of a kernel, so rates follow from `typical`, not from `wall`.
struct Sums {
  int64_t calls = 0;
  int64_t chunks = 0;
  int64_t wall = 0;                              // from its first chunk to its last
  int64_t busy = 0;                              // of all workers together
  int64_t least = 0, most = 0;                   // wall of one call
  int64_t typical = 0;                           // as `wall`, with the median of its calls for each call of a launch
  std::vector<int64_t> walls = {};               // of each call
  double flops = 0, bf16_ops = 0, int8_ops = 0;  // computed
  int64_t read = 0, written = 0;                 // distinct bytes of each call
  CounterValues counts = {};

  void Add(const Sums& other);
  double operations() const { return flops + bf16_ops + int8_ops; }
  // Wall of the call in the middle; 0 without calls.
  int64_t Median() const;
  // Whether the mean is one call's doing: 1.3 times the median or more.
  bool Disturbed() const;
};

enum class Bound : uint8_t { kMemory, kCompute, kOverhead };
std::string_view Name(Bound bound);

// What the sums say beside the machine's peaks.
struct Rates {
  double gflops = 0;     // float and integer operations together
  double gbps = 0;       // read and written
  double intensity = 0;  // operations a byte
  double roof_ns = 0;    // the least time of one call: of its bytes or its operations, whichever is longer
  double percent = 0;    // of the peak: roof by measured time
  Bound bound = Bound::kMemory;
};

struct Argument {
  std::string param;
  std::string mode;               // "in", "out", "inout"
  int buffer = 0;                 // of the section
  int64_t offset = 0;             // bytes into it, in the last run
  int64_t read = 0, written = 0;  // in the last run
};

struct Launch {
  int kernel = 0;     // of the section
  std::string label;  // "layers.3/ffn: Add"
  std::string block;  // "layers.3/ffn": the block of the op that does most of the work
  std::vector<Argument> arguments;
  Sums sums;
};

// An op of the graph that a kernel was made from, and its part of the kernel's operations.
struct Origin {
  std::string op;    // "layers.0/ffn/down: MatMul"
  double share = 0;  // 0 to 1
};

struct Kernel {
  std::string symbol;  // "layers.0.ffn.matmul.q4_K"
  std::string family;  // "matmul"
  std::string label;   // of its launches, numbers of layers as *: "layers.*/ffn: Add"
  std::string block;   // likewise
  std::vector<Origin> origins;
  bool sequential = false;
  bool estimate = false;  // operations and bytes are an upper bound
  int launches = 0;       // a step
  int64_t scratch_bytes = 0;
  std::string text;                      // KIR
  std::shared_ptr<const Stages> stages;  // null unless asked for: Collect leaves it so
  Sums sums;
};

// Kernels of one block, numbers of layers as *: "layers.*/ffn".
struct Block {
  std::string name;
  int launches = 0;
  Sums sums;
};

// Where a value lives in the last run.
struct Buffer {
  std::string name, home, type;
  int64_t bytes = 0, offset = -1;  // offset: in the arena, or -1
  int first_launch = -1, last_launch = -1;
};

// The measured runs of one phase that took one variant.
struct Section {
  std::string phase;  // "prefill", "decode"
  int variant = 0;
  std::string guard;  // "SEQ == 1"
  int64_t steps = 0, warm_up_steps = 0;
  int64_t tokens = 0;
  std::map<std::string, int64_t> symbols;  // of the last run
  int64_t wall = 0, bind = 0;              // of the kernels' part, and before it
  int64_t kernels_wall = 0;                // sum over launches; the rest of wall is dispatch
  int64_t busy = 0;                        // of all workers
  int64_t working_set = 0;                 // distinct bytes of one step
  int64_t weights = 0;                     // distinct bytes of parameters that a step reads
  int64_t arena_bytes = 0;
  int memory = 0;  // the level of Profile::machine that holds it
  Sums sums;
  Sums step;  // `walls` of whole steps, bind and kernels together; no work
  std::vector<Launch> launches;
  std::vector<Kernel> kernels;  // in the order of their first launch
  std::vector<Block> blocks;    // most time first
  std::vector<Buffer> buffers;

  int64_t dispatch() const { return wall - kernels_wall; }
};

// One run for a timeline. Times are nanoseconds since Profile::origin.
struct TimelineSlice {
  int launch, worker;
  int64_t start, duration, chunks;
};
struct TimelineRun {
  int section = -1;  // -1: the phase had warm-up runs of this variant alone
  std::string phase;
  int variant = 0;
  bool warm_up = false;
  int64_t step = 0;  // among the runs of the log
  int64_t start = 0, bind = 0, kernels_start = 0, kernels = 0;
  std::map<std::string, int64_t> symbols;
  std::vector<TimelineSlice> slices;
};

// What the caller did, by the name that it gave. Times as above.
struct CallerSpan {
  std::string name, phase;
  bool warm_up = false;
  int64_t start = 0, duration = 0;
};
// Those of one name and phase, but for warm-ups.
struct SpanSums {
  std::string name, phase;
  int64_t count = 0, wall = 0, least = 0, most = 0;
};

struct CompiledKernel {
  jit::ObjectReport report;
  int variant = -1;  // the first that uses it
};

struct Profile {
  std::string model;  // path, or name of the graph
  Machine machine;
  int threads = 1;
  bool exact = false;
  int64_t context = 0;
  std::string counters;  // "" when read; else why not
  bool counted = false;
  int64_t origin = 0;  // steady clock, of time 0
  TimeSpans steps;     // load, passes, plan, ...
  std::vector<Executable::CompiledVariant> variants;
  std::vector<CompiledKernel> compiled;
  std::vector<Section> sections;
  std::vector<TimelineRun> timeline;                    // every run of the log
  std::vector<CallerSpan> spans;                        // by start
  std::vector<std::vector<std::string>> launch_labels;  // by variant and launch, for the trace

  Rates RatesOf(const Sums& sums, const Section& section) const;
  // Whether a kernel is faster than the machine, by more than a tenth, with memory that nothing nearer holds or with
  // operations: the peaks were measured while something else ran.
  bool AbovePeaks() const;
  // Of whole steps, as they typically are. The roof is that of the kernels, which run one after the other: the sum of
  // theirs.
  Rates StepRatesOf(const Section& section) const;
  // In the order of their first span.
  std::vector<SpanSums> SumsOfSpans() const;
};

// What the runs of the log were: by mark.
struct Phase {
  std::string name;
  bool warm_up = false;  // left out of the figures
};

// What Collect cannot see in the executable.
struct Subject {
  std::string model;
  std::string token_symbol;  // whose values add up to tokens; empty: none
  bool exact = false;
  int64_t context = 0;
  TimeSpans steps;
  std::string counters;  // why there are none; empty when the log has them
};

// Precondition: no run is under way. Errors: a kernel whose cost cannot be counted.
StatusOr<Profile> Collect(const Executable& executable, RunLog& log, const std::vector<Phase>& phases, Machine machine,
                          Subject subject);

// "layers.12/ffn" -> "layers.*/ffn": numbers of repeated blocks as *.
std::string MergedPath(std::string_view path);
// "layers.12/attention/k_cache: Cast" -> "layers.12/attention": the block at the second level.
std::string BlockOf(std::string_view label);

}  // namespace quern::profile
