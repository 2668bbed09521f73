#include "run_text.h"

#include <cstdio>

quern::Result<void> RunText(const std::string& path, const quern::Options& options, const TextArguments& arguments,
                            const std::vector<std::string>& out) {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  quern::Result<quern::TextGraph> text = arguments.Open(path);
  if (!text.ok()) return failed(text.details());
  quern::Result<quern::Program> program = text->Compile(options);
  if (!program.ok()) return failed(program.details());
  quern::Result<void> ran = text->Run(*program);
  if (ran.code() == quern::ErrorCode::kUnsupported || ran.code() == quern::ErrorCode::kInternal) {
    // Of sizes that are compiled when a run first has them.
    if (quern::Result<bool> fixed = text->FixSizes(); fixed.ok() && *fixed) {
      program = text->Compile(options);
      if (!program.ok()) return failed(program.details());
      ran = text->Run(*program);
    }
  }
  if (!ran.ok()) return ran;
  for (const std::string& file : out) {
    if (const quern::Result<void> saved = text->SaveOutputs(file); !saved.ok()) return saved;
  }
  std::fputs(text->Outputs().c_str(), stdout);
  std::fflush(stdout);  // before the summary, where both go to one file
  const quern::Program::Counters counters = program->counters();
  std::fprintf(stderr, "compile %.1f ms (%d kernels), run %.3f ms of %d launches\n", counters.compile * 1e3,
               counters.kernels, counters.run * 1e3, counters.launches);
  if (!options.check.empty()) std::fprintf(stderr, "%s\n", program->CheckSummary().c_str());
  return {};
}
