#include "run_text.h"

#include <cstdio>

#include "base/output_file.h"
#include "prompt.h"

quern::Result<void> RunText(const std::string& path, const quern::Options& options, const TextArguments& arguments,
                            const RunTextOptions& run) {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  for (const std::string& file : run.out) {
    if (const quern::Status may = quern::CheckOutput(file.substr(file.find('=') + 1), {&path, 1}); !may.ok())
      return failed(Invalid(std::string(may.message())));
  }
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
  for (const std::string& file : run.out) {
    if (const quern::Result<void> saved = text->SaveOutputs(file); !saved.ok()) return saved;
  }
  std::fputs(text->Outputs().c_str(), stdout);
  std::fflush(stdout);  // before the summary, where both go to one file
  const quern::Program::Counters counters = program->counters();
  if (!run.quiet) {
    std::fprintf(stderr, "compile %.1f ms (%d kernels), run %.3f ms of %d launches\n", counters.compile * 1e3,
                 counters.kernels, counters.run * 1e3, counters.launches);
  }
  if (!options.check.empty()) std::fprintf(stderr, "%s\n", program->CheckSummary().c_str());
  return {};
}
