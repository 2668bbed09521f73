#include "bench.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/output_file.h"
#include "base/stopwatch.h"
#include "interrupt.h"
#include "model_options.h"
#include "profile/text_table.h"
#include "terminal.h"

namespace {

constexpr quern::ErrorCode kNone = quern::ErrorCode::kNone;
// Runs before the clock counts, but for graphs that take longer than kSlow: the first pages memory in, the second finds
// caches filled.
constexpr int kWarmUpRuns = 3;
constexpr double kSlowNs = 0.5e9;
// Runs that the profiler looks at for the roofline, which are not timed.
constexpr int kProfiledRuns = 2;

quern::Error Said(std::string message) {
  quern::Error error;
  if (!message.empty()) error.code = quern::ErrorCode::kInvalid;
  error.message = std::move(message);
  return error;
}

quern::Error Named(const std::string& file, quern::Error error) {
  if (error.message.find(file) == std::string::npos) error.message = file + ": " + error.message;
  return error;
}

// Of sorted values, the nearest one.
double Quantile(const std::vector<double>& values, double q) {
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string Us(double ns) { return absl::StrFormat("%.*f", ns < 1e5 ? 2 : 1, ns * 1e-3); }

}  // namespace

BenchCommand::BenchCommand(CLI::App& app)
    : command_(app.add_subcommand("bench", "how long graphs take, beside this machine's peaks, and models")),
      text_(*command_, true) {
  command_->add_option("GRAPH", files_, "graphs in text or binary form or ONNX, or language models")->required();
  command_->add_option("--threads", threads_, "a number, or several: 1,2; 0: as many as the process may use")
      ->delimiter(',')
      ->check(WholeNumber<int>);
  samples_option_ = command_
                        ->add_option("--samples", samples_,
                                     "times that are taken of each graph, after runs to warm up; 5 of a language model")
                        ->capture_default_str()
                        ->check(Between(1, 100000));
  command_->add_option("-p,--prompt-tokens", model_.prompt, "of a language model: ids of the prompt, drawn at random")
      ->capture_default_str()
      ->check(Between(1, 1 << 20));
  command_->add_option("-n,--tokens", model_.tokens, "of a language model: tokens that are decoded behind it")
      ->capture_default_str()
      ->check(Between(1, 1 << 20));
  command_->add_option("--ms", sample_ms_, "what a sample lasts at least, in runs that are averaged")
      ->capture_default_str()
      ->check(Between(0.0, 60000.0));
  command_->add_flag("--exact", options_.exact, "keep activations f32 beside quantised weights");
  command_->add_flag("--invariant", options_.invariant, "the same bits however a text is cut into steps");
  command_->add_option("--cache", options_.cache,
                       "folder of compiled kernels, or off; QUERN_CACHE or the user's cache folder when not given");
  command_->add_option("--json", json_, "write the figures to this file as well");
  AddCpuOption(*command_, options_);
  AddSpecialiseOption(*command_, options_);
  command_->footer(
      "Examples:\n"
      "  quern bench graph.qir\n"
      "  quern bench bench/graphs/*.qir --threads 1,2 --json bench.json\n"
      "  quern bench model.gguf --threads 1,2 --prompt-tokens 256 --tokens 64\n"
      "  quern bench graph.qir --size SEQ=128 --samples 50");
}

quern::Error BenchCommand::Run() {
  std::vector<std::string> keep = files_;
  if (const quern::Status ok = quern::CheckOutput(json_, keep); !ok.ok()) return Said(std::string(ok.message()));
  options_.cancel = CancelOnInterrupt();
  if (samples_option_->count() > 0) model_.samples = samples_;
  std::vector<Row> rows;
  std::vector<ModelRow> models;
  for (const std::string& file : files_) {
    for (const int threads : threads_) {
      quern::Options options = options_;
      options.threads = threads;
      if (!quern::TextGraph::Is(file)) {
        quern::Result<ModelRow> row = MeasureModel(file, options, model_);
        if (!row.ok()) return Named(file, row.details());
        models.push_back(*std::move(row));
        continue;
      }
      // Peaks of this hour: those that are kept may be of a busier one.
      const bool probe = rows.size() < threads_.size();
      quern::Result<Row> row = Measure(file, options, {.probe = probe});
      if (!row.ok()) return Named(file, row.details());
      rows.push_back(*std::move(row));
    }
  }
  if (!rows.empty()) std::fputs(Table(rows).c_str(), stdout);
  if (!models.empty()) std::fputs(ModelTable(models, OutputColumns()).c_str(), stdout);
  if (json_.empty()) return {};
  return Said(std::string(quern::WriteFile(json_, Json(rows, models), keep).message()));
}

quern::Result<BenchCommand::Row> BenchCommand::Measure(const std::string& file, const quern::Options& options,
                                                       const quern::ProfilerOptions& profiling) {
  using Failure = quern::Result<Row>;
  const quern::Stopwatch whole;
  quern::Result<quern::TextGraph> text = text_.Open(file);
  if (!text.ok()) return Failure::Failed(text.details());
  quern::Result<quern::Program> program = text->Compile(options);
  if (!program.ok()) return Failure::Failed(program.details());
  // Nanoseconds of each of so many runs, or below 0 after an error.
  quern::Error error;
  const auto time = [&](int64_t runs) {
    const quern::Stopwatch watch;
    for (int64_t r = 0; r < runs; ++r) {
      if (const quern::Result<void> ran = text->Run(*program); !ran.ok()) return error = ran.details(), -1.0;
    }
    return watch.Nanoseconds() / static_cast<double>(runs);
  };
  Row row;
  row.file = file;
  double once = time(1);
  row.start_ms = whole.Seconds() * 1e3;
  for (int r = 1; error.code == kNone && r < kWarmUpRuns && once < kSlowNs; ++r) once = time(1);
  if (error.code != kNone) return Failure::Failed(error);
  row.compile_ms = program->counters().compile * 1e3;
  row.runs = std::max<int64_t>(1, static_cast<int64_t>(sample_ms_ * 1e6 / std::max(once, 1.0)));
  row.samples = samples_;
  std::vector<double> times;
  for (int s = 0; error.code == kNone && s < samples_; ++s) times.push_back(time(row.runs));
  if (error.code != kNone) return Failure::Failed(error);
  std::sort(times.begin(), times.end());
  row.median_ns = Quantile(times, 0.5);
  row.first_quartile_ns = Quantile(times, 0.25);
  row.third_quartile_ns = Quantile(times, 0.75);
  row.least_ns = times.front();

  quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*program, profiling);
  if (!profiler.ok()) return Failure::Failed(profiler.details());
  time(kProfiledRuns);
  if (error.code != kNone) return Failure::Failed(error);
  quern::Result<quern::Roofline> roof = profiler->Roof();
  if (!roof.ok()) return Failure::Failed(roof.details());
  row.roof = *std::move(roof);
  return row;
}

std::string BenchCommand::Table(const std::vector<Row>& rows) const {
  quern::profile::TextTable table({"graph", ">threads", ">median us", ">quartiles", ">least", ">GFLOP", ">MB",
                                   ">GFLOP/s", ">GB/s", ">floor us", ">% of floor", "bound", "in", ">launches"});
  for (const Row& row : rows) {
    const quern::Roofline& roof = row.roof;
    table.Add({MeasuredName(row.file), absl::StrFormat("%d", roof.threads), Us(row.median_ns),
               Us(row.first_quartile_ns) + ".." + Us(row.third_quartile_ns), Us(row.least_ns),
               absl::StrFormat("%.3g", roof.operations * 1e-9), absl::StrFormat("%.3g", roof.bytes * 1e-6),
               absl::StrFormat("%.1f", roof.operations / row.median_ns),
               absl::StrFormat("%.1f", roof.bytes / row.median_ns), Us(roof.floor_ns),
               absl::StrFormat("%.1f", 100 * roof.floor_ns / row.median_ns), roof.bound, roof.memory,
               absl::StrFormat("%d", roof.launches)});
  }
  return table.Text(OutputColumns());
}

std::string BenchCommand::Json(const std::vector<Row>& rows, const std::vector<ModelRow>& models) const {
  using Object = nlohmann::ordered_json;
  Object graphs = Object::array();
  for (const Row& row : rows) {
    const quern::Roofline& roof = row.roof;
    graphs.push_back({{"graph", MeasuredName(row.file)},
                      {"file", row.file},
                      {"threads", roof.threads},
                      {"median_ns", row.median_ns},
                      {"first_quartile_ns", row.first_quartile_ns},
                      {"third_quartile_ns", row.third_quartile_ns},
                      {"least_ns", row.least_ns},
                      {"samples", row.samples},
                      {"runs", row.runs},
                      {"compile_ms", row.compile_ms},
                      {"start_ms", row.start_ms},
                      {"launches", roof.launches},
                      {"operations", roof.operations},
                      {"bytes", roof.bytes},
                      {"floor_ns", roof.floor_ns},
                      {"percent_of_floor", 100 * roof.floor_ns / row.median_ns},
                      {"bound", roof.bound},
                      {"memory", roof.memory},
                      {"memory_gbps", roof.memory_gbps},
                      {"f32_gflops", roof.f32_gflops},
                      {"bf16_gflops", roof.bf16_gflops},
                      {"int8_gops", roof.int8_gops}});
  }
  Object all = {{"schema", "quern.bench"}, {"version", 1}, {"graphs", std::move(graphs)}};
  if (!models.empty()) all["models"] = ModelJson(models);
  return all.dump(1, ' ', false, Object::error_handler_t::replace) + "\n";
}
