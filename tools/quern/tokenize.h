// quern tokenize: what a model's tokenizer makes of a text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/tokenizer.h"

// Adds itself to `app`; Run after parsing.
class TokenizeCommand {
 public:
  explicit TokenizeCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Prints ids, pieces, or both. Errors: those of the tokenizer, of reading the text.
  quern::Result<void> Run();

 private:
  CLI::App* command_;
  CLI::Option* text_option_;
  std::string model_, text_, file_;
  bool ids_ = false, pieces_ = false, no_special_ = false, no_begin_ = false;
};
