// The command line: quern run | inspect | dump | ops | compile | profile | bench | dispatch | kernel | convert | diff |
// cache | replay | reduce. Results go to standard output, everything else to standard error; bad input is one sentence
// and exit code 1.

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench.h"
#include "cache.h"
#include "compile.h"
#include "graph_files.h"
#include "interrupt.h"
#include "kernel.h"
#include "model_options.h"
#include "profile.h"
#include "quern/dispatch.h"
#include "quern/quern.h"
#include "reduce.h"
#include "replay.h"
#include "run_text.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// One line, whatever a file's names put into the sentence.
int Fail(const std::string& error) {
  std::string line;
  for (const char c : error) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n')
      line += "; ";
    else if (byte < 32 || byte == 127)
      line += '?';
    else
      line += c;
  }
  std::fprintf(stderr, "quern: %s\n", line.c_str());
  return 1;
}

// The sentence of a finding, and its details below it.
int FailCheck(const std::string& error) {
  size_t end = error.find('\n');
  Fail(error.substr(0, end));
  while (end != std::string::npos) {
    const size_t start = end + 1;
    end = error.find('\n', start);
    std::string line;
    for (const char c : error.substr(start, end - start))
      line += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  return 1;
}

int Fail(const quern::Error& error) {
  if (error.code == quern::ErrorCode::kCancelled) return Fail(error.message), kInterrupted;
  return error.code == quern::ErrorCode::kCheck ? FailCheck(error.message) : Fail(error.message);
}

// What was printed has to have arrived: a full disk is an error too.
int Finish() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return Fail("cannot write to standard output");
  return 0;
}

struct RunOptions {
  std::string model, prompt, tokens_in, logits_file;
  std::vector<std::string> out;
  int tokens = 128;
  bool ids = false;
};

// "1,403,407" as ids; false when it is anything else.
bool ParseIds(const std::string& text, std::vector<int32_t>& ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc()) return false;
    ids.push_back(id);
    if (stop == end) return true;
    if (*stop != ',') return false;
    at = stop + 1;
  }
}

// The file for --logits, written row by row as raw f32.
class LogitsFile {
 public:
  // False when it cannot be opened, or is the model itself.
  bool Open(const std::string& path, const std::string& model) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, model, ignored)) return false;
    file_.open(path, std::ios::binary);
    return file_.good();
  }
  bool Append(const std::vector<float>& logits) {
    if (!file_.is_open()) return true;
    file_.write(reinterpret_cast<const char*>(logits.data()),
                static_cast<std::streamsize>(logits.size() * sizeof(float)));
    return file_.good();
  }
  bool Close() {
    if (!file_.is_open()) return true;
    file_.close();
    return file_.good();
  }

 private:
  std::ofstream file_;
};

int Run(const RunOptions& run, const quern::Options& options, const quern::SamplingOptions& sampling) {
  std::vector<int32_t> ids;
  if (!run.tokens_in.empty() && !ParseIds(run.tokens_in, ids))
    return Fail("--tokens-in: \"" + run.tokens_in + "\" is not a list of ids such as 1,403,407");
  if (const quern::Result<void> ok = quern::CheckSampling(sampling); !ok.ok()) return Fail(ok.error());
  quern::Result<quern::Session> session = quern::Session::Open(run.model, options);
  if (!session.ok()) return Fail(session.details());
  if (run.tokens_in.empty()) ids = session->Tokenize(run.prompt);
  if (ids.empty()) return Fail("the prompt has no tokens");
  LogitsFile logits_file;
  if (!run.logits_file.empty() && !logits_file.Open(run.logits_file, run.model))
    return Fail("cannot write " + run.logits_file);
  quern::Sampler sampler(sampling);
  const size_t vocabulary = static_cast<size_t>(session->vocabulary());
  const double compile_before = session->timings().compile;
  const Clock::time_point start = Clock::now();
  quern::Result<std::vector<float>> logits = run.logits_file.empty() ? session->Step(ids) : session->StepAll(ids);
  if (!logits.ok()) return Fail(logits.details());
  const Clock::time_point prefilled = Clock::now();
  const double prefill_compile = session->timings().compile - compile_before;
  if (!logits_file.Append(*logits)) return Fail("cannot write " + run.logits_file);
  const size_t prompt_tokens = ids.size();

  int generated = 0;
  int64_t decoded = 0;
  double decode_seconds = 0;
  while (generated < run.tokens) {
    const int32_t next = sampler.Next(std::span(*logits).last(vocabulary));
    if (session->IsEnd(next) && !run.ids) break;
    ++generated;
    if (run.ids)
      std::printf("%s%d", generated == 1 ? "" : " ", next);
    else
      std::fputs(session->Piece(next).c_str(), stdout);
    std::fflush(stdout);
    if (generated == run.tokens || session->position() >= session->context()) break;
    const Clock::time_point before = Clock::now();
    const double compiled = session->timings().compile;
    logits = session->Step(std::span(&next, 1));
    if (!logits.ok()) return Fail(logits.details());
    decode_seconds += Seconds(before, Clock::now()) - (session->timings().compile - compiled);
    ++decoded;
    if (!logits_file.Append(*logits)) return Fail("cannot write " + run.logits_file);
  }
  std::printf("\n");
  std::fflush(stdout);  // before the summary, where both go to one file
  if (!logits_file.Close()) return Fail("cannot write " + run.logits_file);
  const quern::Timings& timings = session->timings();
  const double prefill_seconds = Seconds(start, prefilled) - prefill_compile;
  const std::string kernels = timings.kernels_cached == 0 ? std::to_string(timings.kernels_compiled) + " kernels"
                              : timings.kernels_compiled == 0
                                  ? std::to_string(timings.kernels_cached) + " kernels from the cache"
                                  : std::to_string(timings.kernels_compiled) + " kernels and " +
                                        std::to_string(timings.kernels_cached) + " from the cache";
  std::fprintf(
      stderr,
      "load %.1f ms, compile %.1f ms (%s), prefill %zu tokens at %.1f/s, decode %lld tokens at %.1f/s, %d thread%s\n",
      timings.load * 1e3, timings.compile * 1e3, kernels.c_str(), prompt_tokens,
      static_cast<double>(prompt_tokens) / prefill_seconds, static_cast<long long>(decoded),
      decoded > 0 ? static_cast<double>(decoded) / decode_seconds : 0.0, session->threads(),
      session->threads() == 1 ? "" : "s");
  if (!options.check.empty()) std::fprintf(stderr, "%s\n", session->CheckSummary().c_str());
  return Finish();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Quern grinds model graphs into native kernels.", "quern"};
  app.set_version_flag("--version", "quern 0.1.0");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  quern run models/addition.gguf --prompt \"27+58=\"\n"
      "  quern inspect models/addition.gguf\n"
      "  quern dump models/addition.gguf --stage kir --kernel ffn\n"
      "  quern ops\n"
      "`quern COMMAND --help` has more of each.");
  quern::Options options;
  RunOptions run;
  quern::SamplingOptions sampling;
  quern::DumpOptions dump;
  std::string model;
  bool verbose = false;

  auto compile_options = [&](CLI::App* command) {
    AddModelOptions(*command, model, options);
    AddCpuOption(*command, options);
    AddSpecialiseOption(*command, options);
  };

  // An empty value, as of an unset variable in a script, is no number and no name.
  auto required_value = [](CLI::App* command) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_name() == "--prompt" || option->get_items_expected_max() == 0) continue;
      option->check(
          [](const std::string& value) { return value.empty() ? std::string("the value is empty") : std::string(); });
    }
  };

  CLI::App* run_command = app.add_subcommand("run", "complete a prompt");
  compile_options(run_command);
  AddRunOptions(*run_command, options);
  run_command->add_option("--device", options.device, "where kernels run: cpu, cuda, emulated or metal")
      ->capture_default_str();
  CLI::Option* prompt = run_command->add_option("--prompt", run.prompt, "text to complete")->capture_default_str();
  run_command->add_option("--tokens-in", run.tokens_in, "token ids in place of a prompt: 1,403,407")->excludes(prompt);
  run_command->add_option("--tokens", run.tokens, "tokens to generate at most")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  run_command->add_option("--temp", sampling.temperature, "0: the most likely token")->capture_default_str();
  run_command->add_option("--top-k", sampling.top_k, "draw from this many tokens; 0: all")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  run_command
      ->add_option("--top-p", sampling.top_p, "draw from the likeliest tokens that reach this probability; 1: all")
      ->capture_default_str();
  run_command->add_option("--seed", sampling.seed, "the same seed draws the same tokens")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>);
  run_command->add_flag("--cache-verify", options.cache_verify,
                        "compile what the cache has as well, and fail where the bytes differ");
  run_command->add_option("--check", options.check,
                          "ref: every kernel against the interpreter in double; nan: where a NaN or inf appears. Slow");
  run_command->add_option("--check-out", options.check_folder, "with --check: folder of the reproduction of what fails")
      ->capture_default_str();
  run_command->add_flag("--perf-map", options.perf_map, "name the kernels for perf, in /tmp/perf-PID.map");
  run_command->add_option("--debug-kernels", options.debug_kernels,
                          "folder for printed kernels and a jitdump: lines for gdb and perf annotate");
  run_command->add_flag("--ids", run.ids, "print token ids in place of text, and do not stop at the end token");
  run_command->add_option("--logits", run.logits_file,
                          "write raw f32 [positions, vocabulary] of prompt and generated tokens");
  run_command->add_flag("--verbose", verbose, "say when a variant is compiled");
  const TextArguments run_text(*run_command);
  run_command
      ->add_option("--out", run.out,
                   "of a graph in text form, its outputs: NAME=FILE.npy, or FILE.safetensors; may be given again")
      ->allow_extra_args(false);
  required_value(run_command);
  run_command->footer(
      "Examples:\n"
      "  quern run models/addition.gguf --prompt \"27+58=\"\n"
      "  quern run model.gguf --prompt \"Once upon a time\" --tokens 200 --temp 0.8 --top-k 40 --top-p 0.95 --seed 7\n"
      "  quern run model.gguf --tokens-in 1,403,407 --tokens 16 --ids --logits logits.f32\n"
      "  quern run model.gguf --prompt Hello --threads 1 --cpu x86-64-v3 --exact\n"
      "  quern run models/addition.gguf --prompt \"27+58=\" --check ref\n"
      "  quern run models/addition.gguf --prompt \"27+58=\" --device emulated\n"
      "  quern run graph.qir --size SEQ=5 --check ref\n"
      "  quern run graph.qir --in x=x.npy --in weights.safetensors --out 0=y.npy");

  CLI::App* inspect_command = app.add_subcommand("inspect", "metadata and tensors of a model file, what is in a graph");
  inspect_command->add_option("MODEL", model, "a GGUF file, or a graph in text or binary form")->required();
  inspect_command->footer("Examples:\n  quern inspect models/addition.gguf\n  quern inspect graph.qir");

  CLI::App* dump_command = app.add_subcommand("dump", "what a model becomes on its way to machine code");
  compile_options(dump_command);
  dump_command->add_option("--stage", dump.stage, "hir, mir, lir, kir, llvm or asm; ptx or metal, of devices")
      ->capture_default_str();
  dump_command->add_option("--kernel", dump.kernel, "with kir and what follows it: kernels whose label contains this");
  CLI::Option* after = dump_command->add_option("--dump-after", dump.after, "the graph after this pass");
  dump_command->add_option("--stop-after", dump.stop_after, "the same, and no pass after it is run")->excludes(after);
  dump_command->add_option("--skip", dump.skip, "leave this pass out; may be given again")->allow_extra_args(false);
  dump_command->add_option("--step", dump.tokens, "tokens of the step to compile for")
      ->capture_default_str()
      ->check(WholeNumber<int64_t>);
  required_value(dump_command);
  dump_command->footer(
      "Examples:\n"
      "  quern dump models/addition.gguf --stage hir\n"
      "  quern dump models/addition.gguf --dump-after simplify\n"
      "  quern dump models/addition.gguf --skip cse --stop-after dce --step 50\n"
      "  quern dump models/addition.gguf --stage asm --kernel layers.0/ffn --cpu x86-64-v3\n"
      "  quern dump models/addition.gguf --stage ptx --kernel layers.0/ffn --cpu sm_80\n"
      "  quern dump graph.qir --stage kir");

  CLI::App* ops_command = app.add_subcommand("ops", "every block and op with its operands and attributes: docs/ops.md");
  std::string ops_target;
  ops_command->add_option("--target", ops_target, "which of them a target takes: cpu, aot, c, ptx or metal");
  ops_command->footer("Examples:\n  quern ops > docs/ops.md\n  quern ops --target metal");
  CLI::App* dispatch_command =
      app.add_subcommand("dispatch", "what becomes of each op of a graph on a target: a kernel, other ops, or nothing");
  std::string dispatch_target = "cpu";
  bool dispatch_json = false;
  dispatch_command->add_option("GRAPH", model, "a graph in text or binary form")->required();
  dispatch_command->add_option("--target", dispatch_target, "cpu, aot, c, ptx or metal")->capture_default_str();
  dispatch_command->add_flag("--json", dispatch_json, "as JSON");
  dispatch_command->add_flag("--exact", options.exact, "keep activations f32 beside quantised weights");
  AddCpuOption(*dispatch_command, options);
  AddSpecialiseOption(*dispatch_command, options);
  dispatch_command->footer(
      "Examples:\n"
      "  quern dispatch graph.qir\n"
      "  quern dispatch graph.qir --target ptx --json\n"
      "  quern dispatch graph.qir --kernels common");

  CompileCommand compile_command(app);
  ProfileCommand profile_command(app);
  BenchCommand bench_command(app);
  KernelCommand kernel_command(app);
  GraphFilesCommands graph_files(app);
  CacheCommand cache_command(app);
  ReplayCommand replay_command(app);
  ReduceCommand reduce_command(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Usage errors exit with 1 and one sentence; --help and --version with 0.
    // The 1 of these means that what the file has fails, or that files differ.
    const std::string verb = argc > 1 ? argv[1] : "";
    if (error.get_exit_code() != 0 && (verb == "replay" || verb == "diff" || verb == "kernel"))
      return Fail(std::string(error.what()) + " (quern " + verb + " --help has examples)"), 2;
    return error.get_exit_code() == 0 ? app.exit(error)
                                      : Fail(std::string(error.what()) + " (quern --help has examples)");
  }
  if (verbose)
    options.log = [](std::string_view line) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
  run.model = model;
  const auto done = [](const std::string& error) { return error.empty() ? Finish() : Fail(error); };
  const auto ended = [](const quern::Error& error) {
    return error.code == quern::ErrorCode::kNone ? Finish() : Fail(error);
  };
  if (profile_command.parsed()) return ended(profile_command.Run());
  if (bench_command.parsed()) return ended(bench_command.Run());
  if (compile_command.parsed()) return done(compile_command.Run());
  if (cache_command.parsed()) return done(cache_command.Run());
  if (reduce_command.parsed()) return done(reduce_command.Run());
  if (graph_files.parsed()) {
    bool same = true;
    const quern::Result<void> ran = graph_files.Run(same);
    const bool diff = app.got_subcommand("diff");
    if (!ran.ok() || Finish() != 0) return (ran.ok() ? 0 : Fail(ran.details())), diff ? 2 : 1;
    return same ? 0 : 1;
  }
  if (kernel_command.parsed()) {
    bool right = false;
    const quern::Result<void> ran = kernel_command.Run(right);
    if (!ran.ok() || Finish() != 0) return (ran.ok() ? 0 : Fail(ran.details())), 2;
    return right ? 0 : 1;
  }
  if (replay_command.parsed()) {
    bool passed = false;
    const std::string error = replay_command.Run(passed);
    if (!error.empty() || Finish() != 0) return error.empty() ? 2 : (Fail(error), 2);
    return passed ? 0 : 1;
  }
  if (run_command->parsed()) {
    options.cancel = CancelOnInterrupt();
    if (!quern::TextGraph::Is(model)) return Run(run, options, sampling);
    const quern::Result<void> ran = RunText(model, options, run_text, run.out);
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (dispatch_command->parsed()) {
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model);
    if (!graph.ok()) return Fail(graph.details());
    quern::Result<quern::DispatchReport> report = quern::Dispatch(graph->graph(), dispatch_target, options);
    if (!report.ok()) return Fail(report.details());
    std::fputs((dispatch_json ? report->Json() : report->Text()).c_str(), stdout);
    return Finish();
  }
  if (ops_command->parsed() && !ops_target.empty()) {
    quern::Result<std::vector<quern::OpOnTarget>> ops = quern::OpsOnTarget(ops_target);
    if (!ops.ok()) return Fail(ops.details());
    for (const quern::OpOnTarget& op : *ops)
      std::printf("%-40s %s%s\n", op.op.c_str(), op.taken ? "taken" : "refused: ", op.reason.c_str());
    return Finish();
  }
  if (ops_command->parsed()) {
    std::fputs(quern::OpReference().c_str(), stdout);
    return Finish();
  }
  const auto dump_text = [&]() -> quern::Result<std::string> {
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model);
    return graph.ok() ? graph->graph().Dump(dump, options) : quern::Result<std::string>::Failed(graph.details());
  };
  const auto describe_text = [&]() -> quern::Result<std::string> {
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model);
    return graph.ok() ? graph->Describe() : quern::Result<std::string>::Failed(graph.details());
  };
  const bool inspect = inspect_command->parsed();
  quern::Result<std::string> text = quern::TextGraph::Is(model) ? (inspect ? describe_text() : dump_text())
                                    : inspect                   ? quern::Inspect(model)
                                                                : quern::Dump(model, options, dump);
  if (!text.ok()) return Fail(text.error());
  std::fputs(text->c_str(), stdout);
  return Finish();
}
