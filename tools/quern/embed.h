// quern embed: the vectors of texts, by an encoder.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "model_options.h"
#include "quern/embed.h"

// Adds itself to `app`; Run after parsing.
class EmbedCommand {
 public:
  explicit EmbedCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Prints a vector a line. Errors: those of Embedder, of reading the texts.
  quern::Result<void> Run();

 private:
  CLI::App* command_;
  CLI::Option* text_option_;
  quern::Options options_;
  std::string model_, text_, file_, pooling_ = "model";
  bool lines_ = false;
};
