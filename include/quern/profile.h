// Profiles: where the time of a session's or a program's runs goes, by kernel and by block of the graph
// (docs/profiling.md).
//
//   quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*session);
//   profiler->Phase("warm-up", true);
//   session->Step(ids);                         // compiles, and pages weights in: left out of the figures
//   profiler->Phase("prefill");
//   session->Reset();
//   std::vector<float> logits = *session->Step(ids);
//   const quern::CallerSpan span = profiler->Span("sampling");   // work of the caller's own, beside the kernels
//   sampler.Draw(logits);
//   std::puts((*profiler->Table()).c_str());    // or Json(), Trace(), Html()
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "quern/graph.h"
#include "quern/quern.h"
#include "quern/result.h"
#include "quern/tick.h"

namespace quern {

class Profiler;

// Work of the caller's own under a name, from where it was made to where it goes. The profiler outlives it and is not
// moved meanwhile.
class [[nodiscard]] CallerSpan {
 public:
  CallerSpan(CallerSpan&& other) noexcept;
  CallerSpan& operator=(CallerSpan&&) = delete;
  ~CallerSpan();

 private:
  friend class Profiler;
  CallerSpan(Profiler* profiler, std::string name);
  Profiler* profiler_;  // null: it has gone elsewhere
  std::string name_;
  Tick begin_;
};

namespace compiler {
struct Profiled;
}

struct ProfilerOptions {
  bool counters = false;  // read hardware counters as well, where the system has them and allows it; times grow
  bool probe = false;     // measure this machine's peaks anew, even where they are known
};

// What one run computes and moves, beside what this machine can do (docs/profiling.md). Of integer dot products too.
struct Roofline {
  int launches = 0;
  double operations = 0;
  double bytes = 0;     // read and written: of each kernel the distinct ones
  double floor_ns = 0;  // of each kernel the longer of its operations and its bytes at their peaks, added up
  std::string bound;    // what the floor is made of: "compute" or "memory"; "overhead" when launches take longer
  std::string memory;   // the level that holds what a run touches: "l3"
  // The peaks, of all threads together.
  int threads = 1;
  double memory_gbps = 0, f32_gflops = 0, bf16_gflops = 0, int8_gops = 0;
};

// Records the runs of one session or program from Attach until it goes. The session or program outlives it, is not
// moved from meanwhile, and has one profiler at a time; parameters are not bound anew. Movable; for one thread at a
// time.
class Profiler {
 public:
  // Measures the machine's peaks the first time, which takes less than half a second; they are kept in the user's cache
  // folder. Errors: kResource.
  static Result<Profiler> Attach(Session& session, const ProfilerOptions& options = {});
  static Result<Profiler> Attach(Program& program, const ProfilerOptions& options = {});
  Profiler(Profiler&&) noexcept;
  Profiler& operator=(Profiler&&) noexcept;
  ~Profiler();

  // What the runs from here on are called; `warm_up`: left out of the figures. At first the phase is "run".
  void Phase(std::string_view name, bool warm_up = false);
  // A span of the caller's own in the table, the JSON and the trace, in the phase that is on when it ends: from here to
  // where the object goes, or between two readings of the clock. Spans may lie inside others.
  CallerSpan Span(std::string_view name);
  void AddSpan(std::string_view name, Tick begin, Tick end);
  // Forgets the runs and the spans so far.
  void Clear();

  // What was recorded: as tables for people, at most `top` kernels in each (0: all), lines of at most `columns`
  // characters (0: any); as JSON with everything; as a
  // trace for Perfetto or chrome://tracing; as a page for a browser, with the text of every kernel at each stage, for
  // which the kernels are compiled again. Errors: kInternal.
  Result<std::string> Table(int top = 0, size_t columns = 0);
  Result<std::string> Json();
  Result<std::string> Trace();
  Result<std::string> Html();
  // The mean run of the phase and variant that was recorded last. Errors: kInternal; kMissing when there is none.
  Result<Roofline> Roof();

 private:
  struct State;
  explicit Profiler(std::unique_ptr<State> state);
  static Result<Profiler> AttachTo(const compiler::Profiled& profiled, const ProfilerOptions& options);
  std::unique_ptr<State> state_;
};

// What became slower or faster from one profile to another, both as Profiler::Json wrote them: phases, and kernels by
// what they compute, most difference first. Lines have at most `columns` characters (0: any). Errors: kInvalid, where
// one is no profile; where they have no phase in common.
Result<std::string> ProfileDiff(std::string_view before, std::string_view after, size_t columns = 0);

}  // namespace quern
