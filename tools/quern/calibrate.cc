#include "calibrate.h"

#include <cstdio>
#include <filesystem>

#include "base/output_file.h"
#include "model_options.h"
#include "prompt.h"

CalibrateCommand::CalibrateCommand(CLI::App& app)
    : command_(app.add_subcommand("calibrate", "the ranges that the values of a graph have in a run, as JSON")),
      text_(*command_, false) {
  command_->add_option("GRAPH", graph_, "a graph in text or binary form or ONNX")->required();
  command_->add_option("-o,--output", out_, "the file of ranges to write")->required();
  command_->add_flag("--widen", widen_, "widen the ranges that the file has, by another run");
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern calibrate model.onnx --in image=1.npy -o ranges.json\n"
      "  quern calibrate model.onnx --in image=2.npy -o ranges.json --widen\n"
      "  quern quantise model.onnx --ranges ranges.json -o bytes.qgf");
}

quern::Result<void> CalibrateCommand::Run() const {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  // Before what takes long.
  if (const quern::Status may = quern::CheckOutput(out_, {&graph_, 1}); !may.ok())
    return failed(Invalid(std::string(may.message())));
  quern::ValueRanges ranges;
  if (std::error_code none; widen_ && std::filesystem::exists(out_, none)) {
    quern::Result<std::string> text = PromptOf({.file = out_});
    if (!text.ok()) return failed(text.details());
    quern::Result<quern::ValueRanges> before = quern::ParseRanges(*text);
    if (!before.ok()) return failed(Invalid(out_ + ": " + before.error()));
    ranges = *before;
  }
  quern::Result<quern::TextGraph> graph = text_.Open(graph_);
  if (!graph.ok()) return failed(graph.details());
  quern::Result<quern::Calibrator> calibrator = quern::Calibrator::Make(graph->graph());
  if (!calibrator.ok()) return failed(calibrator.details());
  if (quern::Result<void> ran = graph->Calibrate(*calibrator); !ran.ok()) return ran;
  quern::Widen(ranges, calibrator->ranges());
  if (const quern::Status written = quern::WriteFile(out_, quern::RangesJson(ranges), {&graph_, 1}); !written.ok())
    return failed(Invalid(std::string(written.message())));
  std::fprintf(stderr, "%s: ranges of %zu values\n", out_.c_str(), ranges.size());
  return {};
}
