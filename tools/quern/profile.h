// quern profile: where the time of a model goes, by kernel and by block.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "quern/profile.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class ProfileCommand {
 public:
  explicit ProfileCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Tables go to standard output. kNone, or what went wrong.
  quern::Error Run();

 private:
  // Prompt and tokens once, as the phases "prefill" and "decode". kNone, or what went wrong.
  quern::Error Steps(quern::Session& session, quern::Profiler& profiler, const std::vector<int32_t>& ids,
                     int64_t tokens, bool warm_up);

  // The runs of a model, and those of a graph in text form, and then what they took.
  quern::Error RunModel();
  quern::Error RunGraph();
  quern::Error RunDiff();
  quern::Error Report(quern::Profiler& profiler);

  CLI::App* command_;
  CLI::Option* model_option_;
  std::string model_, prompt_, json_, trace_, html_;
  std::vector<std::string> diff_;
  std::vector<int32_t> ids_;
  int tokens_ = 32, repeat_ = 3, top_ = 20;
  quern::Options options_;
  quern::ProfilerOptions profiler_;
  TextArguments text_;
};
