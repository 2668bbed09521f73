#include "kernel.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "model_options.h"
#include "text_options.h"

namespace {

std::string Text(const quern::KernelRun& run) {
  std::string sizes;
  for (const auto& [symbol, size] : run.sizes) sizes += absl::StrFormat("  %s=%d", symbol, size);
  std::string text = absl::StrFormat("%s%s: %d chunks, %g operations, %g bytes%s\n", run.kernel, sizes, run.chunks,
                                     run.operations + run.int8_operations, run.bytes, run.estimate ? " at most" : "");
  text += run.difference.empty()
              ? absl::StrFormat("  as the interpreter in double, %d of the chunks compared\n", run.checked)
              : absl::StrFormat("  wrong: %s\n", run.difference);
  if (run.median_ns == 0) return text;
  return text + absl::StrFormat(
                    "  %.3f us (quartiles %.3f..%.3f, least %.3f), %.2f G operations/s, %.2f GB/s, %d thread%s, %s\n",
                    run.median_ns * 1e-3, run.first_quartile_ns * 1e-3, run.third_quartile_ns * 1e-3,
                    run.least_ns * 1e-3, (run.operations + run.int8_operations) / run.median_ns,
                    run.bytes / run.median_ns, run.threads, run.threads == 1 ? "" : "s", run.level);
}

}  // namespace

KernelCommand::KernelCommand(CLI::App& app)
    : command_(app.add_subcommand("kernel", "kernels in KIR text: verified, held to the interpreter, timed")) {
  command_->add_option("FILE", path_, "kernels in KIR text")->required();
  command_->add_option("--kernel", run_.kernel, "the one of that name alone");
  command_->add_option("--size", sizes_, "SYMBOL=NUMBER; may be given again")->allow_extra_args(false);
  command_->add_option("--values", run_.seed, "the seed of the operands")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>);
  command_->add_option("--tolerance", run_.tolerance, "how far floats may be off, relative")->capture_default_str();
  command_->add_option("--samples", run_.samples, "times that are taken")
      ->capture_default_str()
      ->check(Between(1, 100000));
  command_->add_option("--ms", run_.sample_ms, "what a sample lasts at least")
      ->capture_default_str()
      ->check(Between(0.0, 60000.0));
  command_->add_flag("--untimed", untimed_, "only compare with the interpreter");
  command_->add_option("--threads", options_.threads, "threads that run it; one when not given")
      ->check(Between(1, 256));
  AddCpuOption(*command_, options_);
  command_->add_flag("--specialise", options_.specialise, "inline the tiles' own code into kernels");
  command_->footer(
      "Exits with 1 where a kernel computes something else than the interpreter, and with 2 where it cannot be run.\n"
      "Examples:\n"
      "  quern kernel scale.kir\n"
      "  quern kernel tests/kir/rms_norm_q8.kir --size M=64 --threads 2\n"
      "  quern dump graph.qir --stage kir > kernels.kir && quern kernel kernels.kir --untimed");
}

quern::Result<void> KernelCommand::Run(bool& right) {
  quern::Result<std::map<std::string, int64_t>> sizes = ParseSizes(sizes_);
  if (!sizes.ok()) return quern::Result<void>::Failed(sizes.details());
  run_.sizes = *std::move(sizes);
  if (untimed_) run_.samples = 0;
  quern::Result<std::vector<quern::KernelRun>> runs = quern::RunKernels(path_, options_, run_);
  if (!runs.ok()) return quern::Result<void>::Failed(runs.details());
  right = true;
  for (const quern::KernelRun& run : *runs) {
    right = right && run.difference.empty();
    std::fputs(Text(run).c_str(), stdout);
  }
  return {};
}
