#include "quantise.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <utility>

#include "base/output_file.h"
#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"

QuantiseCommand::QuantiseCommand(CLI::App& app)
    : command_(app.add_subcommand(
          "quantise", "a model file with its weights in other formats, or a graph whose products are over bytes")),
      text_(*command_, false) {
  command_->add_option("MODEL", in_, "a GGUF file, a folder of safetensors, or a graph in text or binary form or ONNX")
      ->required();
  command_->add_option("-o,--output", out_, "the GGUF file to write; of a graph text (.qir) or binary form")
      ->required();
  std::string names;
  for (const std::string& name : quern::QuantiseTypes()) names += (names.empty() ? "" : " ") + name;
  command_->add_option("--type", options_.type, "a format or one of llama.cpp's mixtures: " + names)
      ->capture_default_str();
  command_->add_flag("--pure", options_.pure, "that format for all, where a mixture has better ones for some tensors");
  command_->add_flag("--requantise", options_.requantise, "also of weights that are in blocks already, at a loss");
  command_->add_option("--imatrix", options_.importance,
                       "an importance matrix, of quern imatrix or llama.cpp: weights err less where it is large");
  command_->add_option("--threads", options_.threads, "one a processor when not given")->check(Between(1, 256));
  command_->add_flag("--list", list_, "every tensor with its formats, on standard output");
  CLI::Option* ranges = command_->add_option("--ranges", ranges_, "of a graph: what quern calibrate wrote");
  CLI::Option* map = command_->add_option("--map", map_, "of a graph: a quantisation map, in the place of ranges");
  ranges->excludes(map);
  command_->add_option("--map-out", map_out_, "of a graph: write the quantisation map that the ranges give");
  command_->add_flag("--as-map", as_map_, "of a graph: write it in floats, with the map as a part of it");
  command_->add_option("--activations", graph_options_.activations, "of a graph: u8 or i8")
      ->capture_default_str()
      ->check(CLI::IsMember({"u8", "i8"}));
  command_->add_flag("--symmetric", graph_options_.symmetric, "of a graph: activations about 0, too");
  command_->add_flag("!--per-tensor", graph_options_.per_channel, "of a graph: one scale for all of a weight");
  command_
      ->add_option("--keep", graph_options_.keep,
                   "of a graph: what has a label that begins so stays in floats; may be given again")
      ->allow_extra_args(false);
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern quantise model-F16.gguf -o model-Q4_K_M.gguf\n"
      "  quern quantise path/to/Qwen3-0.6B -o qwen3-Q8_0.gguf --type Q8_0\n"
      "  quern quantise model.gguf -o pure.gguf --type Q5_K_S --pure --list\n"
      "  quern quantise model.gguf -o small.gguf --type IQ4_XS --imatrix imatrix.gguf\n"
      "  quern quantise model.onnx --ranges ranges.json -o bytes.qgf\n"
      "  quern quantise model.onnx --ranges ranges.json --as-map -o mapped.qgf");
}

quern::Result<void> QuantiseCommand::Run() {
  for (const std::string& path : {out_, map_out_}) {
    if (const quern::Status may = quern::CheckOutput(path, {&in_, 1}); !may.ok())
      return quern::Result<void>::Failed(Invalid(std::string(may.message())));
  }
  return quern::TextGraph::Is(in_) ? RunGraph() : RunModel();
}

quern::Result<void> QuantiseCommand::RunGraph() const {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  quern::Result<quern::TextGraph> graph = text_.Open(in_);
  if (!graph.ok()) return failed(graph.details());
  quern::Result<quern::QuantisationMap> map = MapOf(graph->graph());
  if (!map.ok()) return failed(map.details());
  if (!map_out_.empty()) {
    const quern::Status written = quern::WriteFile(map_out_, quern::QuantisationMapJson(*map), {&in_, 1});
    if (!written.ok()) return failed(Invalid(std::string(written.message())));
  }
  quern::Result<void> saved = as_map_ ? graph->SaveWithQuantisation(out_, *map) : graph->SaveQuantised(out_, *map);
  if (!saved.ok()) return saved;
  std::fprintf(stderr, "%s: %zu values in bytes\n", out_.c_str(), map->size());
  return {};
}

quern::Result<quern::QuantisationMap> QuantiseCommand::MapOf(const quern::Graph& graph) const {
  const auto failed = [](const quern::Error& error) { return quern::Result<quern::QuantisationMap>::Failed(error); };
  if (ranges_.empty() && map_.empty()) {
    quern::Result<quern::QuantisationMap> own = quern::QuantisationOf(graph);
    if (own.ok() && own->empty())
      return failed(Invalid(in_ + " is a graph without a quantisation map: --ranges or --map say what is bytes"));
    return own;
  }
  const std::string& file = map_.empty() ? ranges_ : map_;
  quern::Result<std::string> text = PromptOf({.file = file});
  if (!text.ok()) return failed(text.details());
  if (map_.empty()) {
    quern::Result<quern::ValueRanges> ranges = quern::ParseRanges(*text);
    if (!ranges.ok()) return failed(Invalid(file + ": " + ranges.error()));
    return quern::MakeQuantisationMap(graph, *ranges, graph_options_);
  }
  quern::Result<quern::QuantisationMap> map = quern::ParseQuantisationMap(*text);
  return map.ok() ? std::move(map) : failed(Invalid(file + ": " + map.error()));
}

quern::Result<void> QuantiseCommand::RunModel() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  options_.cancel = CancelOnInterrupt();
  if (terminal) {
    options_.progress = [](int64_t done, int64_t all) {
      std::fprintf(stderr, "\rquantised %lld of %lld tensors%s", static_cast<long long>(done),
                   static_cast<long long>(all), done == all ? "\r\x1b[K" : "");
    };
  }
  quern::Result<quern::QuantiseReport> report = quern::Quantise(in_, out_, options_);
  if (!report.ok()) return quern::Result<void>::Failed(report.details());
  std::map<std::string, int> formats;
  int fell_back = 0, guided = 0;
  for (const quern::QuantiseReport::Tensor& tensor : report->tensors) {
    ++formats[tensor.after];
    fell_back += tensor.fell_back ? 1 : 0;
    guided += tensor.guided ? 1 : 0;
    if (list_)
      std::printf("%-40s %-8s %-8s%s%s\n", tensor.name.c_str(), tensor.before.c_str(), tensor.after.c_str(),
                  tensor.guided ? "  by importance" : "",
                  tensor.fell_back ? "  rows are no multiple of its blocks" : "");
  }
  std::string counts;
  if (!options_.importance.empty()) counts = std::to_string(guided) + " by importance: ";
  bool first = true;
  for (const auto& [format, count] : formats)
    counts += (std::exchange(first, false) ? "" : ", ") + std::to_string(count) + " " + format;
  std::fprintf(
      stderr, "%s: %.1f MB of weights from %.1f (%s)%s\n", out_.c_str(), static_cast<double>(report->bytes_after) / 1e6,
      static_cast<double>(report->bytes_before) / 1e6, counts.c_str(),
      fell_back == 0 ? "" : (", " + std::to_string(fell_back) + " in other formats than asked for: --list").c_str());
  return {};
}
