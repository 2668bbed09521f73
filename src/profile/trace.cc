#include "profile/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace quern::profile {
namespace {

using Json = nlohmann::ordered_json;

// Slices of workers at most: viewers grow slow beyond. Later runs are left out.
constexpr size_t kMostSlices = 300'000;
constexpr int kRunProcess = 1, kCompileProcess = 2, kCallerProcess = 3;

struct Event {
  int process, track;
  int64_t start, duration;
  std::string name, category;
  Json args;
};

class Trace {
 public:
  void Name(int process, const std::string& name) { Meta("process_name", process, 0, name); }
  void Name(int process, int track, const std::string& name) { Meta("thread_name", process, track, name); }
  void Add(Event event) { events_.push_back(std::move(event)); }

  std::string Text() {
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.process, a.track, a.start, a.duration, a.name) <
             std::tie(b.process, b.track, b.start, b.duration, b.name);
    });
    for (size_t e = 0; e < events_.size(); ++e) {
      Event& event = events_[e];
      // Two clocks are at work: a nanosecond of rounding is no overlap.
      const bool next =
          e + 1 < events_.size() && events_[e + 1].process == event.process && events_[e + 1].track == event.track;
      if (next) event.duration = std::min(event.duration, events_[e + 1].start - event.start);
      rows_.push_back({{"ph", "X"},
                       {"pid", event.process},
                       {"tid", event.track},
                       {"ts", Micros(event.start)},
                       {"dur", Micros(std::max<int64_t>(event.duration, 0))},
                       {"name", event.name},
                       {"cat", event.category},
                       {"args", std::move(event.args)}});
    }
    std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (size_t r = 0; r < rows_.size(); ++r) {
      absl::StrAppend(&text, rows_[r].dump(-1, ' ', false, Json::error_handler_t::replace),
                      r + 1 < rows_.size() ? ",\n" : "\n");
    }
    return text + "]}\n";
  }

 private:
  static double Micros(int64_t ns) { return static_cast<double>(ns) / 1000; }
  void Meta(const char* what, int process, int track, const std::string& name) {
    rows_.push_back({{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}});
  }
  std::vector<Json> rows_;
  std::vector<Event> events_;
};

void AddRuns(const Profile& profile, Trace& trace) {
  trace.Name(kRunProcess, "run");
  trace.Name(kRunProcess, 0, "steps");
  for (int w = 0; w < profile.threads; ++w) trace.Name(kRunProcess, w + 1, absl::StrCat("worker ", w));
  size_t slices = 0;
  for (const TimelineRun& run : profile.timeline) {
    slices += run.slices.size();
    if (slices > kMostSlices) break;
    const Section* section = run.section >= 0 ? &profile.sections[run.section] : nullptr;
    Json args = {{"variant", run.variant}, {"bind_ns", run.bind}, {"warm_up", run.warm_up}, {"symbols", run.symbols}};
    if (section != nullptr) args["guard"] = section->guard;
    trace.Add({kRunProcess, 0, run.start, run.kernels_start + run.kernels - run.start,
               absl::StrCat(run.phase, run.warm_up ? " (warm-up)" : "", " step ", run.step), "step", std::move(args)});
    for (const TimelineSlice& slice : run.slices) {
      const std::string& label = profile.launch_labels[run.variant][slice.launch];
      Json slice_args = {{"label", label}, {"launch", slice.launch}, {"step", run.step}, {"chunks", slice.chunks}};
      std::string name = label;
      if (section != nullptr) {
        const Launch& launch = section->launches[slice.launch];
        const auto calls = static_cast<double>(std::max<int64_t>(launch.sums.calls, 1));
        name = section->kernels[launch.kernel].symbol;
        slice_args["block"] = launch.block;
        slice_args["bytes"] =
            static_cast<double>(launch.sums.read + launch.sums.written) / calls;  // of the whole launch, on average
        slice_args["flops"] = launch.sums.operations() / calls;
      }
      trace.Add({kRunProcess, slice.worker + 1, slice.start, slice.duration, std::move(name), "kernel",
                 std::move(slice_args)});
    }
  }
}

// Spans inside others are on tracks below theirs.
void AddSpans(const Profile& profile, Trace& trace) {
  std::vector<int64_t> ends;  // by track: of its last span
  for (const CallerSpan& span : profile.spans) {
    size_t track = 0;
    while (track < ends.size() && ends[track] > span.start) ++track;
    if (track == ends.size()) {
      if (ends.empty()) trace.Name(kCallerProcess, "caller");
      trace.Name(kCallerProcess, static_cast<int>(track), absl::StrCat("spans ", track));
      ends.emplace_back();
    }
    ends[track] = span.start + span.duration;
    trace.Add({kCallerProcess,
               static_cast<int>(track),
               span.start,
               span.duration,
               span.name,
               "span",
               {{"phase", span.phase}, {"warm_up", span.warm_up}}});
  }
}

void AddCompiling(const Profile& profile, Trace& trace) {
  trace.Name(kCompileProcess, "compile");
  trace.Name(kCompileProcess, 0, "steps");
  for (const TimeSpan& step : profile.steps)
    trace.Add({kCompileProcess, 0, step.start - profile.origin, step.duration, step.name, "pass", Json::object()});
  for (const Executable::CompiledVariant& v : profile.variants) {
    trace.Add({kCompileProcess,
               0,
               v.planned - profile.origin,
               v.compiled - v.planned,
               absl::StrCat("machine code of variant ", v.variant),
               "compile",
               {{"variant", v.variant}}});
  }
  int threads = 0;
  for (const CompiledKernel& kernel : profile.compiled)
    threads = std::max(threads, kernel.report.loaded ? 0 : kernel.report.thread + 1);
  for (int t = 0; t < threads; ++t) trace.Name(kCompileProcess, t + 1, absl::StrCat("compile thread ", t));
  const int linker = threads + 1;
  trace.Name(kCompileProcess, linker, "jitlink");
  for (const CompiledKernel& kernel : profile.compiled) {
    const jit::ObjectReport& r = kernel.report;
    const Json args = {{"kernel", r.symbol},
                       {"variant", kernel.variant},
                       {"object_bytes", r.bytes},
                       {"instructions", r.stats.instructions}};
    trace.Add({kCompileProcess, linker, r.jitlink_start - profile.origin, r.jitlink, absl::StrCat("jitlink ", r.symbol),
               "jitlink", args});
    if (r.loaded) continue;
    int64_t at = r.start - profile.origin;
    const std::pair<const char*, int64_t> steps[] = {
        {"emit", r.times.emit}, {"link", r.times.link}, {"optimise", r.times.optimise}, {"codegen", r.times.codegen}};
    for (const auto& [name, ns] : steps) {
      trace.Add({kCompileProcess, r.thread + 1, at, ns, absl::StrCat(name, " ", r.symbol), name, args});
      at += ns;
    }
  }
}

}  // namespace

std::string TraceText(const Profile& profile) {
  Trace trace;
  AddRuns(profile, trace);
  AddSpans(profile, trace);
  AddCompiling(profile, trace);
  return trace.Text();
}

}  // namespace quern::profile
