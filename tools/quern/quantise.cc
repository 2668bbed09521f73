#include "quantise.h"

#include <unistd.h>

#include <cstdio>
#include <map>

#include "interrupt.h"
#include "model_options.h"

QuantiseCommand::QuantiseCommand(CLI::App& app)
    : command_(app.add_subcommand("quantise", "a model file with its weights in other formats")) {
  command_->add_option("MODEL", in_, "a GGUF file or a folder of safetensors")->required();
  command_->add_option("-o,--output", out_, "the GGUF file to write")->required();
  std::string names;
  for (const std::string& name : quern::QuantiseTypes()) names += (names.empty() ? "" : " ") + name;
  command_->add_option("--type", options_.type, "a format or one of llama.cpp's mixtures: " + names)
      ->capture_default_str();
  command_->add_flag("--pure", options_.pure, "that format for all, where a mixture has better ones for some tensors");
  command_->add_flag("--requantise", options_.requantise, "also of weights that are in blocks already, at a loss");
  command_->add_option("--threads", options_.threads, "one a processor when not given")->check(Between(1, 256));
  command_->add_flag("--list", list_, "every tensor with its formats, on standard output");
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern quantise model-F16.gguf -o model-Q4_K_M.gguf\n"
      "  quern quantise path/to/Qwen3-0.6B -o qwen3-Q8_0.gguf --type Q8_0\n"
      "  quern quantise model.gguf -o pure.gguf --type Q5_K_S --pure --list");
}

quern::Result<void> QuantiseCommand::Run() {
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
  int fell_back = 0;
  for (const quern::QuantiseReport::Tensor& tensor : report->tensors) {
    ++formats[tensor.after];
    fell_back += tensor.fell_back ? 1 : 0;
    if (list_)
      std::printf("%-40s %-8s %-8s%s\n", tensor.name.c_str(), tensor.before.c_str(), tensor.after.c_str(),
                  tensor.fell_back ? "  rows are no multiple of its blocks" : "");
  }
  std::string counts;
  for (const auto& [format, count] : formats)
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + format;
  std::fprintf(
      stderr, "%s: %.1f MB of weights from %.1f (%s)%s\n", out_.c_str(), static_cast<double>(report->bytes_after) / 1e6,
      static_cast<double>(report->bytes_before) / 1e6, counts.c_str(),
      fell_back == 0 ? "" : (", " + std::to_string(fell_back) + " in other formats than asked for: --list").c_str());
  return {};
}
