// quern chat: a conversation with a model, turn by turn.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/chat.h"
#include "quern/quern.h"
#include "sampling_options.h"

// Adds itself to `app`; Run after parsing.
class ChatCommand {
 public:
  explicit ChatCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // The exit code.
  int Run();

 private:
  CLI::App* command_;
  quern::Options options_;
  SamplingArguments sampling_;
  std::string model_, system_, template_, variables_, session_file_;
};

// The template of a model, or that of a file where `path` names one.
quern::Result<quern::ChatTemplate> OpenTemplate(const std::string& model, const std::string& path);
