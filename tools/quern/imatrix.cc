#include "imatrix.h"

#include <unistd.h>

#include <cstdio>

#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"

ImatrixCommand::ImatrixCommand(CLI::App& app)
    : command_(app.add_subcommand("imatrix", "an importance matrix of a model by a text, for quern quantise")) {
  command_->add_option("MODEL,-m,--model", model_, "a GGUF file or a folder of safetensors")->required();
  command_->add_option("-f,--file", file_, "a file with the text; -: standard input")->required();
  command_->add_option("-o,--output", out_, "the GGUF file to write")->capture_default_str();
  command_
      ->add_option("-c,--context,--ctx-size", options_.run.context,
                   "tokens of a chunk; 0: 512, or the model's own length where that is less")
      ->check(WholeNumber<int64_t>);
  command_->add_option("--chunks", options_.chunks, "at most so many; 0: all that the text fills")
      ->check(WholeNumber<int64_t>);
  command_->add_flag("--process-output", options_.output, "output.weight as well");
  command_->add_flag("--parse-special", options_.parse_special, "control tokens in the text are no text");
  AddCpuOption(*command_, options_.run);
  AddRunOptions(*command_, options_.run);
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern imatrix model-F16.gguf --file text.txt -o imatrix.gguf\n"
      "  quern quantise model-F16.gguf -o model-IQ4_XS.gguf --type IQ4_XS --imatrix imatrix.gguf");
}

quern::Result<void> ImatrixCommand::Run() {
  quern::Result<std::string> text = PromptOf({.file = file_});
  if (!text.ok()) return quern::Result<void>::Failed(text.details());
  options_.run.cancel = CancelOnInterrupt();
  options_.dataset = file_;
  if (isatty(STDERR_FILENO) != 0) {
    options_.progress = [](int64_t done, int64_t all) {
      std::fprintf(stderr, "\r%lld of %lld chunks%s", static_cast<long long>(done), static_cast<long long>(all),
                   done == all ? "\r\x1b[K" : "");
    };
  }
  quern::Result<quern::ImportanceReport> report = quern::CollectImportance(model_, *text, out_, options_);
  if (!report.ok()) return quern::Result<void>::Failed(report.details());
  for (const std::string& name : report->untouched)
    std::fprintf(stderr, "%s: some experts of %s had no token\n", out_.c_str(), name.c_str());
  std::fprintf(stderr, "%s: importance of %lld weights by %lld chunks of %lld tokens\n", out_.c_str(),
               static_cast<long long>(report->entries), static_cast<long long>(report->chunks),
               static_cast<long long>(report->chunk_size));
  return {};
}
