// quern bench: how long whole runs of graphs take, beside the least that this machine needs for them, and how many
// tokens a second language models take and give.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench_model.h"
#include "quern/profile.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // A table goes to standard output. kNone, or what went wrong.
  quern::Error Run();

 private:
  // One graph on one number of threads. Times are nanoseconds of a run.
  struct Row {
    std::string file;
    double compile_ms = 0;
    double start_ms = 0;  // from opening the file to the first answer
    double median_ns = 0, first_quartile_ns = 0, third_quartile_ns = 0, least_ns = 0;
    int samples = 0;
    int64_t runs = 0;  // a sample
    quern::Roofline roof;
  };

  quern::Result<Row> Measure(const std::string& file, const quern::Options& options,
                             const quern::ProfilerOptions& profiling);
  std::string Table(const std::vector<Row>& rows) const;
  std::string Json(const std::vector<Row>& rows, const std::vector<ModelRow>& models) const;

  CLI::App* command_;
  std::vector<std::string> files_;
  std::string json_;
  std::vector<int> threads_ = {0};
  int samples_ = 15;
  CLI::Option* samples_option_ = nullptr;
  ModelBench model_;
  double sample_ms_ = 10;
  quern::Options options_;
  TextArguments text_;
};
