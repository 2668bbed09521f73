#include "run.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "chat.h"
#include "errors.h"
#include "generation.h"
#include "import/npy.h"
#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"
#include "run_text.h"
#include "session_file.h"

namespace {

// Escapes as in C, as far as prompts need them; others stay as they are.
std::string Unescaped(const std::string& text) {
  constexpr std::string_view kNames = "nrt\\\"'", kBytes = "\n\r\t\\\"'";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t found = text[i] == '\\' && i + 1 < text.size() ? kNames.find(text[i + 1]) : std::string_view::npos;
    result += found == std::string_view::npos ? text[i] : kBytes[found];
    i += found != std::string_view::npos;
  }
  return result;
}

// The file for --logits, written row by row: raw f32, behind a header where the name ends in .npy.
class LogitsFile {
 public:
  // False when it cannot be opened, or is the model itself.
  bool Open(const std::string& path, const std::string& model, int64_t vocabulary) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, model, ignored)) return false;
    npy_ = path.ends_with(".npy");
    vocabulary_ = vocabulary;
    file_.open(path, std::ios::binary);
    return file_.good() && WriteHeader(0);
  }
  bool Append(const std::vector<float>& logits) {
    if (!file_.is_open()) return true;
    file_.write(reinterpret_cast<const char*>(logits.data()),
                static_cast<std::streamsize>(logits.size() * sizeof(float)));
    rows_ += static_cast<int64_t>(logits.size()) / vocabulary_;
    return file_.good();
  }
  bool Close() {
    if (!file_.is_open()) return true;
    file_.seekp(0);
    const bool whole = WriteHeader(rows_);
    file_.close();
    return whole && file_.good();
  }

 private:
  bool WriteHeader(int64_t rows) {
    if (!npy_) return true;
    const auto header = quern::NpyHeader(quern::DType::kF32, std::initializer_list<int64_t>{rows, vocabulary_});
    if (header.ok()) file_ << *header;
    return header.ok() && file_.good();
  }

  std::ofstream file_;
  bool npy_ = false;
  int64_t vocabulary_ = 1, rows_ = 0;
};

// What a prompt lacks of fitting, in words for the command line; empty when it fits.
std::string DoesNotFit(const quern::Session& session, size_t tokens) {
  const auto need = static_cast<int64_t>(tokens), have = session.context(), trained = session.trained_context();
  if (need <= have) return "";
  std::string sentence = "the prompt's " + std::to_string(need) + " tokens do not fit the context of " +
                         std::to_string(have) + "; --context " + std::to_string(need) + " or more makes room";
  if (trained > 0 && need > trained)
    sentence += ", though the model was trained for " + std::to_string(trained) + " alone";
  return sentence;
}

const char* EndingName(Ending ending) {
  switch (ending) {
    case Ending::kEndToken: return "end";
    case Ending::kTokens: return "tokens";
    case Ending::kContext: return "context";
    case Ending::kStopped: return "stop";
  }
  return "";
}

// What --report prints.
struct Report {
  std::vector<int32_t> ids;
  std::string text, ending;
  int64_t reused = 0;  // tokens of the prompt that a session file had
  uint64_t seed = 0;
};

void Print(const Report& report, const quern::Session& session, const Generation& generation) {
  const quern::Timings& timings = session.timings();
  const Generation::Counts& counts = generation.counts();
  const nlohmann::ordered_json object = {{"text", report.text},
                                         {"ids", report.ids},
                                         {"ending", report.ending},
                                         {"prompt_tokens", counts.prompt + report.reused},
                                         {"reused_tokens", report.reused},
                                         {"load_seconds", timings.load},
                                         {"compile_seconds", timings.compile},
                                         {"prompt_seconds", counts.prompt_seconds},
                                         {"decoded_tokens", counts.decoded},
                                         {"decode_seconds", counts.decode_seconds},
                                         {"kernels_compiled", timings.kernels_compiled},
                                         {"kernels_cached", timings.kernels_cached},
                                         {"threads", session.threads()},
                                         {"seed", report.seed}};
  std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void SayPastTraining(const quern::Session& session, int64_t before) {
  const int64_t trained = session.trained_context();
  if (trained > 0 && before <= trained && session.position() > trained)
    std::fprintf(stderr, "the text is longer than the %lld positions that the model was trained for\n",
                 static_cast<long long>(trained));
}

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : command_(app.add_subcommand("run", "complete a prompt")), sampling_(*command_, 128), text_(*command_, true) {
  AddModelOptions(*command_, model_, options_);
  AddCpuOption(*command_, options_);
  AddSpecialiseOption(*command_, options_);
  AddRunOptions(*command_, options_);
  CLI::App& run = *command_;
  run.add_option("--device", options_.device, "where kernels run: cpu, cuda, emulated or metal")->capture_default_str();
  prompt_option_ = run.add_option("-p,--prompt", prompt_, "text to complete; standard input when not given");
  CLI::Option* file = run.add_option("-f,--file", file_, "a file with the text to complete; -: standard input")
                          ->excludes(prompt_option_);
  ids_option_ = AddIdsOption(run, tokens_in_)->excludes(prompt_option_)->excludes(file);
  CLI::Option* chat = run.add_flag("--chat", chat_, "the prompt is what a user says, by the chat template of the file")
                          ->excludes(ids_option_);
  run.add_option("--system", system_, "with --chat: the system prompt")->needs(chat);
  run.add_option("--template", template_, "with --chat: a file with a chat template, in place of the model's")
      ->needs(chat);
  run.add_flag("--no-special", no_special_, "control tokens in the prompt, such as </s>, are text like any other");
  run.add_flag("-e,--escape", escape_, "in --prompt, \\n is a line end, \\t a tab, \\\\ a backslash");
  run.add_flag("--special", special_, "print control tokens");
  run.add_flag("--cache-verify", options_.cache_verify,
               "compile what the cache has as well, and fail where the bytes differ");
  run.add_option("--check", options_.check,
                 "ref: every kernel against the interpreter in double; nan: where a NaN or inf appears. Slow");
  run.add_option("--check-out", options_.check_folder, "with --check: folder of the reproduction of what fails")
      ->capture_default_str();
  run.add_flag("--perf-map", options_.perf_map, "name the kernels for perf, in /tmp/perf-PID.map");
  run.add_option("--debug-kernels", options_.debug_kernels,
                 "folder for printed kernels and a jitdump: lines for gdb and perf annotate");
  run.add_flag("--ids", ids_, "print token ids in place of text, and do not stop at the end token");
  run.add_flag("--report", report_,
               "print one JSON object in place of text and summary: what was drawn, and what it took");
  CLI::Option* logits = run.add_option(
      "--logits", logits_file_,
      "write f32 [positions, vocabulary] of prompt and generated tokens: as .npy where the name ends so, "
      "else raw");
  run.add_option("--session", session_file_,
                 "a file of keys and values: where it is there, what the prompt begins with is taken from it; it is "
                 "written at the end")
      ->excludes(logits);
  run.add_flag("-q,--quiet", quiet_, "no summary on standard error");
  run.add_flag("--verbose", verbose_, "say when a variant is compiled");
  run.add_option("--out", out_,
                 "of a graph, its outputs: NAME=FILE.npy, FILE.npz or FILE.safetensors; may be given again")
      ->allow_extra_args(false);
  RequireValues(run, {"--prompt", "--stop", "--system"});
  run.footer(
      "Examples:\n"
      "  quern run models/addition.gguf --prompt \"27+58=\"\n"
      "  quern run model.gguf --prompt \"Once upon a time\" --tokens 200 --temp 0.8 --top-k 40 --top-p 0.95 --seed 7\n"
      "  quern run model.gguf --file story.txt --stop \"The end\" --seed random --temp 1\n"
      "  quern run model.gguf --prompt \"A person as JSON: \" --json-schema person.json\n"
      "  quern run model.gguf --chat --prompt \"What is the capital of France?\" --system \"Be brief.\"\n"
      "  echo \"Once upon a time\" | quern run model.gguf\n"
      "  quern run model.gguf --tokens-in 1,403,407 --tokens 16 --ids --logits logits.f32\n"
      "  quern run model.gguf --prompt Hello --threads 1 --cpu x86-64-v3 --exact\n"
      "  quern run models/addition.gguf --prompt \"27+58=\" --check ref\n"
      "  quern run models/addition.gguf --prompt \"27+58=\" --device emulated\n"
      "  quern run graph.qir --size SEQ=5 --check ref\n"
      "  quern run graph.qir --in x=x.npy --in weights.safetensors --out 0=y.npy");
}

int RunCommand::Run() {
  options_.cancel = CancelOnInterrupt();
  if (verbose_)
    options_.log = [](std::string_view line) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
  const bool graph = quern::TextGraph::Is(model_);
  if (const quern::Result<void> ok = RefuseOthers(*command_, model_, graph); !ok.ok()) return Fail(ok.details());
  if (!graph) return Complete();
  const quern::Result<void> ran = RunText(model_, options_, text_, {.out = out_, .quiet = quiet_});
  return ran.ok() ? Finish() : Fail(ran.details());
}

quern::Result<std::vector<int32_t>> RunCommand::Prompt(quern::Session& session) const {
  using Ids = quern::Result<std::vector<int32_t>>;
  if (ids_option_->count() > 0) return tokens_in_;
  quern::Result<std::string> text = PromptOf({.given = prompt_option_->count() > 0, .text = prompt_, .file = file_});
  if (!text.ok()) return Ids::Failed(text.details());
  if (escape_ && prompt_option_->count() > 0) *text = Unescaped(*text);
  if (chat_) {
    quern::Result<quern::ChatTemplate> chat = OpenTemplate(model_, template_);
    if (!chat.ok()) return Ids::Failed(chat.details());
    std::vector<quern::ChatMessage> messages = {{"user", *text}};
    if (!system_.empty()) messages.insert(messages.begin(), {"system", system_});
    quern::Result<quern::ChatPrompt> prompt = chat->Render(messages);
    if (!prompt.ok()) return Ids::Failed(prompt.details());
    return session.Tokenize(prompt->text, {.begin = prompt->begin});
  }
  return session.Tokenize(*text, {.parse_special = !no_special_});
}

int RunCommand::Complete() {
  quern::Result<quern::SamplingOptions> sampling = sampling_.Get(model_);
  if (!sampling.ok()) return Fail(sampling.details());
  options_.progress = PromptProgress();
  quern::Result<quern::Session> session = quern::Session::Open(model_, options_);
  if (!session.ok()) return Fail(session.details());
  quern::Result<std::vector<int32_t>> ids = Prompt(*session);
  if (!ids.ok()) return Fail(ids.details());
  if (ids->empty()) return Fail("the prompt has no tokens");
  if (const std::string why = DoesNotFit(*session, ids->size()); !why.empty()) return Fail(why);
  // Ids in and ids out need no tokenizer.
  std::optional<quern::TextStream> stream;
  if (!ids_) {
    quern::Result<quern::Tokenizer> tokenizer = session->tokenizer();
    if (!tokenizer.ok()) return Fail(tokenizer.details());
    stream.emplace(*tokenizer, sampling_.stops(), special_);
  }
  LogitsFile logits_file;
  if (!logits_file_.empty() && !logits_file.Open(logits_file_, model_, session->vocabulary()))
    return Fail("cannot write " + logits_file_);

  quern::Result<quern::Sampler> sampler = SamplerOf(*sampling, *session);
  if (!sampler.ok()) return Fail(sampler.details());
  Generation generation(*session, *sampler);
  std::span<const int32_t> prompt = *ids;
  if (!session_file_.empty()) {
    quern::Result<SessionFile> kept = LoadSession(session_file_, model_, *session);
    if (!kept.ok()) return Fail(kept.details());
    generation.Resume(std::move(kept->tokens));
    prompt = prompt.subspan(static_cast<size_t>(generation.Reuse(prompt)));
  }
  bool first = true;
  Report report;
  const auto show = [&](int32_t id) {
    if (report_) {
      report.ids.push_back(id);
      if (!ids_) report.text += stream->Add(id);
      return ids_ || !stream->stopped();
    }
    if (ids_)
      std::printf("%s%d", first ? "" : " ", id);
    else
      std::fputs(stream->Add(id).c_str(), stdout);
    first = false;
    std::fflush(stdout);
    return ids_ || !stream->stopped();
  };
  const auto append = [&](const std::vector<float>& logits) {
    return logits_file.Append(logits) ? quern::Result<void>()
                                      : quern::Result<void>::Failed(Invalid("cannot write " + logits_file_));
  };
  quern::Result<Ending> ending = generation.Run(prompt,
                                                {.tokens = sampling_.tokens(),
                                                 .ignore_end = ids_ && sampling->grammar.empty(),
                                                 .every_row = !logits_file_.empty(),
                                                 .speculate = sampling_.speculate(),
                                                 .shift = sampling_.shift()},
                                                show, append);
  const bool cancelled = ending.code() == quern::ErrorCode::kCancelled;
  if (!ending.ok() && !cancelled) return Fail(ending.details());
  if (report_) {
    if (stream) report.text += stream->Flush();
    report.reused = static_cast<int64_t>(ids->size() - prompt.size());
    report.ending = cancelled ? "cancelled" : EndingName(*ending);
    report.seed = sampling->seed;
    Print(report, *session, generation);
  } else {
    if (stream) std::fputs(stream->Flush().c_str(), stdout);
    std::printf("\n");
  }
  std::fflush(stdout);  // before the summary, where both go to one file
  if (!session_file_.empty()) {
    const quern::Result<void> saved =
        SaveSession(session_file_, model_, *session, {.tokens = generation.tokens(), .conversation = {}});
    if (!saved.ok()) return Fail(saved.details());
  }
  if (!logits_file.Close()) return Fail("cannot write " + logits_file_);
  if (!cancelled && *ending == Ending::kContext)
    std::fprintf(stderr, "the context of %lld positions is full; --context N keeps more, --context-shift goes on\n",
                 static_cast<long long>(session->context()));
  SayPastTraining(*session, 0);
  if (!report_ && !quiet_) std::fprintf(stderr, "%s\n", generation.Summary().c_str());
  if (!report_ && sampling->temperature > 0 && sampling_.seed_is_random())
    std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(sampling->seed));
  if (!options_.check.empty()) std::fprintf(stderr, "%s\n", session->CheckSummary().c_str());
  if (cancelled) return Fail(ending.details());
  if (!sampling->grammar.empty() && (*ending == Ending::kStopped || !sampler->complete())) return Fail(kNotWhole);
  return Finish();
}
