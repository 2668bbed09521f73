// The command line: quern run | inspect | dump.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "quern/quern.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

int Fail(const std::string& error) {
  std::fprintf(stderr, "quern: %s\n", error.c_str());
  return 1;
}

struct RunOptions {
  std::string model, prompt, logits_file;
  std::vector<int32_t> tokens_in;
  int tokens = 128;
  bool ids = false;
};

// Writes rows of logits as raw f32.
bool Append(std::ofstream& file, const std::vector<float>& logits) {
  if (!file.is_open()) return true;
  file.write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size() * sizeof(float)));
  return file.good();
}

int Run(const RunOptions& run, const quern::Options& options, const quern::SamplingOptions& sampling) {
  quern::Result<quern::Session> session = quern::Session::Open(run.model, options);
  if (!session.ok()) return Fail(session.error());
  std::vector<int32_t> ids = run.tokens_in.empty() ? session->Tokenize(run.prompt) : run.tokens_in;
  if (ids.empty()) return Fail("the prompt has no tokens");
  std::ofstream logits_file;
  if (!run.logits_file.empty()) {
    logits_file.open(run.logits_file, std::ios::binary);
    if (!logits_file) return Fail("cannot write " + run.logits_file);
  }
  quern::Sampler sampler(sampling);
  const size_t vocabulary = static_cast<size_t>(session->vocabulary());
  const double compile_before = session->timings().compile;
  const Clock::time_point start = Clock::now();
  quern::Result<std::vector<float>> logits = run.logits_file.empty() ? session->Step(ids) : session->StepAll(ids);
  if (!logits.ok()) return Fail(logits.error());
  const Clock::time_point prefilled = Clock::now();
  const double prefill_compile = session->timings().compile - compile_before;
  if (!Append(logits_file, *logits)) return Fail("cannot write " + run.logits_file);
  const size_t prompt_tokens = ids.size();

  int generated = 0;
  int64_t decoded = 0;
  double decode_seconds = 0;
  while (generated < run.tokens) {
    const int32_t next = sampler.Next(std::span(*logits).last(vocabulary));
    if (session->IsEnd(next) && !run.ids) break;
    ++generated;
    if (run.ids) std::printf("%s%d", generated == 1 ? "" : " ", next);
    else std::fputs(session->Piece(next).c_str(), stdout);
    std::fflush(stdout);
    if (generated == run.tokens || session->position() >= session->context()) break;
    const Clock::time_point before = Clock::now();
    const double compiled = session->timings().compile;
    logits = session->Step(std::span(&next, 1));
    if (!logits.ok()) return Fail(logits.error());
    decode_seconds += Seconds(before, Clock::now()) - (session->timings().compile - compiled);
    ++decoded;
    if (!Append(logits_file, *logits)) return Fail("cannot write " + run.logits_file);
  }
  std::printf("\n");
  const quern::Timings& timings = session->timings();
  const double prefill_seconds = Seconds(start, prefilled) - prefill_compile;
  std::fprintf(stderr, "load %.1f ms, compile %.1f ms, prefill %zu tokens at %.1f/s, decode %lld tokens at %.1f/s\n",
               timings.load * 1e3, timings.compile * 1e3, prompt_tokens, static_cast<double>(prompt_tokens) / prefill_seconds,
               static_cast<long long>(decoded), decoded > 0 ? static_cast<double>(decoded) / decode_seconds : 0.0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Quern grinds model graphs into native kernels.", "quern"};
  app.set_version_flag("--version", "quern 0.1.0");
  app.require_subcommand(1);
  app.footer("Examples:\n"
             "  quern run models/addition.gguf --prompt \"27+58=\"\n"
             "  quern run model.gguf --tokens-in 1,403,407 --tokens 16 --ids\n"
             "  quern inspect model.gguf\n"
             "  quern dump model.gguf --stage kir --kernel ffn");
  quern::Options options;
  RunOptions run;
  quern::SamplingOptions sampling;
  quern::DumpOptions dump;
  std::string model;
  bool verbose = false;

  auto compile_options = [&](CLI::App* command) {
    command->add_option("MODEL", model, "a GGUF file")->required();
    command->add_option("--cpu", options.cpu, "native, x86-64-v2, x86-64-v3 or x86-64-v4")->capture_default_str();
    command->add_option("--threads", options.threads, "0: as many as the process may use")->check(CLI::Range(0, 256));
    command->add_option("--context", options.context, "positions to keep; 0: the model's own length, at most 4096")->check(CLI::NonNegativeNumber);
    command->add_flag("--exact", options.exact, "keep activations f32 beside quantised weights");
    command->add_flag("--specialise", options.specialise, "inline the tiles' own code into kernels");
  };

  CLI::App* run_command = app.add_subcommand("run", "complete a prompt");
  compile_options(run_command);
  run_command->add_option("--prompt", run.prompt, "text to complete")->capture_default_str();
  run_command->add_option("--tokens-in", run.tokens_in, "token ids in place of a prompt")->delimiter(',');
  run_command->add_option("--tokens", run.tokens, "tokens to generate at most")->capture_default_str()->check(CLI::NonNegativeNumber);
  run_command->add_option("--temp", sampling.temperature, "0: the most likely token")->capture_default_str()->check(CLI::NonNegativeNumber);
  run_command->add_option("--top-k", sampling.top_k, "0: all")->capture_default_str()->check(CLI::NonNegativeNumber);
  run_command->add_option("--top-p", sampling.top_p, "1: all")->capture_default_str()->check(CLI::Range(0.0, 1.0));
  run_command->add_option("--seed", sampling.seed, "the same seed draws the same tokens")->capture_default_str();
  run_command->add_flag("--ids", run.ids, "print token ids in place of text");
  run_command->add_option("--logits", run.logits_file, "write raw f32 [positions, vocabulary] of prompt and generated tokens");
  run_command->add_flag("--verbose", verbose, "say when a variant is compiled");

  CLI::App* inspect_command = app.add_subcommand("inspect", "metadata and tensors of a model file");
  inspect_command->add_option("MODEL", model, "a GGUF file")->required();

  CLI::App* dump_command = app.add_subcommand("dump", "what a model becomes on its way to machine code");
  compile_options(dump_command);
  dump_command->add_option("--stage", dump.stage, "hir, mir, lir, kir, llvm or asm")
      ->check(CLI::IsMember({"hir", "mir", "lir", "kir", "llvm", "asm"}))->capture_default_str();
  dump_command->add_option("--kernel", dump.kernel, "kernels whose label contains this");
  dump_command->add_option("--dump-after", dump.after, "MIR after this pass");
  dump_command->add_option("--step", dump.tokens, "tokens of the step to compile for")->check(CLI::Range(1, 256))->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Usage errors exit with 1 and one sentence; --help and --version with 0.
    return error.get_exit_code() == 0 ? app.exit(error) : Fail(error.what());
  }
  if (verbose) options.log = [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); };
  run.model = model;
  if (run_command->parsed()) return Run(run, options, sampling);
  quern::Result<std::string> text = inspect_command->parsed() ? quern::Inspect(model) : quern::Dump(model, options, dump);
  if (!text.ok()) return Fail(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}
