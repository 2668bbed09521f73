// quern run: a prompt completed by a model, or a graph in text form on given values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/quern.h"
#include "sampling_options.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class RunCommand {
 public:
  explicit RunCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // The exit code.
  int Run();

 private:
  int Complete();
  // What is run first: ids as given, or those of the prompt.
  quern::Result<std::vector<int32_t>> Prompt(quern::Session& session) const;

  CLI::App* command_;
  CLI::Option *prompt_option_ = nullptr, *ids_option_ = nullptr;
  quern::Options options_;
  SamplingArguments sampling_;
  TextArguments text_;
  std::string system_, template_;
  std::string model_, prompt_, file_, logits_file_, session_file_;
  std::vector<int32_t> tokens_in_;
  std::vector<std::string> out_;
  bool ids_ = false, report_ = false, quiet_ = false, verbose_ = false, no_special_ = false, special_ = false,
       chat_ = false, escape_ = false;
};
