#include "perplexity.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"

PerplexityCommand::PerplexityCommand(CLI::App& app)
    : command_(app.add_subcommand("perplexity", "how well a model foretells a text")) {
  AddModelOptions(*command_, model_, options_.run, /*graphs=*/false);
  command_->get_option("--context")
      ->description("tokens of a chunk; 0: 512, or the model's own length where that is less");
  command_->add_option("-f,--file", file_, "a file with the text; -: standard input")->required();
  command_->add_option(
      "--base", options_.base,
      "another model of the same tokens, unquantised say: how far what is foretold is from what it foretells");
  command_->add_option("--chunks", options_.chunks, "at most so many; 0: all that the text fills")
      ->check(WholeNumber<int64_t>);
  command_->add_flag("--parse-special", options_.parse_special, "control tokens in the text are no text");
  command_->add_flag("--json", json_, "as JSON");
  AddCpuOption(*command_, options_.run);
  AddRunOptions(*command_, options_.run);
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern perplexity model-Q4_K_M.gguf --file text.txt\n"
      "  quern perplexity model-Q4_K_M.gguf --file text.txt --chunks 20 --json\n"
      "  quern perplexity model-Q4_K_M.gguf --file text.txt --base model-F16.gguf");
}

quern::Result<void> PerplexityCommand::Run() {
  quern::Result<std::string> text = PromptOf({.file = file_});
  if (!text.ok()) return quern::Result<void>::Failed(text.details());
  options_.run.cancel = CancelOnInterrupt();
  if (isatty(STDERR_FILENO) != 0) {
    options_.progress = [](const quern::PerplexityReport& so_far, int64_t all) {
      std::fprintf(stderr, "\r%lld of %lld chunks, %.4f so far%s", static_cast<long long>(so_far.chunks),
                   static_cast<long long>(all), so_far.perplexity, so_far.chunks == all ? "\r\x1b[K" : "");
    };
  }
  const quern::Result<quern::PerplexityReport> report = quern::MeasurePerplexity(model_, *text, options_);
  if (!report.ok()) return quern::Result<void>::Failed(report.details());
  if (json_) {
    nlohmann::ordered_json json = {{"model", model_},
                                   {"perplexity", report->perplexity},
                                   {"error", report->error},
                                   {"nll", report->nll},
                                   {"tokens", report->tokens},
                                   {"chunks", report->chunks},
                                   {"chunk_size", report->chunk_size}};
    if (report->divergence) {
      json["base"] = {{"model", options_.base},
                      {"perplexity", report->divergence->base_perplexity},
                      {"divergence", report->divergence->mean},
                      {"error", report->divergence->error},
                      {"largest", report->divergence->largest},
                      {"same_top", report->divergence->same_top}};
    }
    std::printf("%s\n", json.dump(2).c_str());
    return {};
  }
  std::printf("perplexity %.4f +/- %.5f, of %lld tokens in %lld chunks of %lld\n", report->perplexity, report->error,
              static_cast<long long>(report->tokens), static_cast<long long>(report->chunks),
              static_cast<long long>(report->chunk_size));
  if (const auto& from = report->divergence) {
    std::printf(
        "from the base, perplexity %.4f: divergence %.4g +/- %.2g, at most %.3g; the same likeliest token %.2f %%\n",
        from->base_perplexity, from->mean, from->error, from->largest, 100 * from->same_top);
  }
  return {};
}
