#include "chat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "errors.h"
#include "generation.h"
#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"
#include "session_file.h"

namespace {

constexpr const char* kHelp =
    "/help          this\n"
    "/clear         forget the conversation, but for the system prompt\n"
    "/system TEXT   another system prompt, from the next message on; without TEXT, none\n"
    "/save FILE     write the conversation, as JSON\n"
    "/load FILE     go on with one that was written\n"
    "/quit          end; so does the end of the input\n"
    "Ctrl-C stops an answer.\n";

// What was said, and which tokens of it the session has: the next prompt begins with most of them, and only what comes
// after is run.
class Conversation {
 public:
  Conversation(quern::Session& session, quern::Tokenizer tokenizer, const quern::ChatTemplate& chat,
               quern::Sampler sampler, bool constrained, const SamplingArguments& arguments, quern::ChatOptions options)
      : session_(session),
        tokenizer_(std::move(tokenizer)),
        chat_(chat),
        sampler_(std::move(sampler)),
        constrained_(constrained),
        generation_(session, sampler_),
        arguments_(arguments),
        options_(std::move(options)) {}

  void SetSystem(const std::string& text) {
    if (!messages_.empty() && messages_[0].role == "system") messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", text});
  }
  void Clear() {
    std::erase_if(messages_, [](const quern::ChatMessage& message) { return message.role != "system"; });
    sampler_.Forget();
  }

  // The answer to `text`, as it comes. Errors: what the template, the tokenizer or a step says; then nothing was said.
  quern::Result<void> Say(const std::string& text) {
    messages_.push_back({"user", text});
    quern::Result<Ending> ending = Answer();
    const bool cancelled = ending.code() == quern::ErrorCode::kCancelled;
    if (stream_) {
      const std::string last = stream_->Flush();
      answer_ += last;
      std::printf("%s\n", last.c_str());
      std::fflush(stdout);
    }
    if (!ending.ok() && !cancelled) {
      messages_.pop_back();
      return quern::Result<void>::Failed(ending.details());
    }
    messages_.push_back({"assistant", answer_});
    if (cancelled) std::fprintf(stderr, "[stopped]\n");
    if (!cancelled && *ending == Ending::kContext)
      std::fprintf(stderr, "[the context of %lld positions is full; /clear begins anew, --context-shift goes on]\n",
                   static_cast<long long>(session_.context()));
    if (constrained_ && (cancelled || *ending == Ending::kStopped || !sampler_.complete()))
      std::fprintf(stderr, "[%s]\n", kNotWhole);
    else if (!cancelled && *ending == Ending::kTokens)
      std::fprintf(stderr, "[ended after %d tokens; --tokens N allows more]\n", arguments_.tokens());
    return {};
  }

  quern::Result<void> Save(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    file << Text();
    file.close();
    return file.good() ? quern::Result<void>() : quern::Result<void>::Failed(Invalid("cannot write " + path));
  }

  quern::Result<void> Load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file.good()) return quern::Result<void>::Failed(Invalid("cannot open " + path));
    return LoadText(path, std::string(std::istreambuf_iterator<char>(file), {}));
  }

  // What it had seen and said when it was saved; what it has now.
  quern::Result<void> Resume(const std::string& path, SessionFile file) {
    generation_.Resume(std::move(file.tokens));
    return file.conversation.empty() ? quern::Result<void>() : LoadText(path, file.conversation);
  }
  SessionFile Kept() const { return {generation_.tokens(), Text()}; }

  std::string Summary() const { return generation_.Summary(); }

 private:
  std::string Text() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const quern::ChatMessage& message : messages_)
      list.push_back({{"role", message.role}, {"content", message.content}});
    return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  quern::Result<void> LoadText(const std::string& path, const std::string& text) {
    const auto list = nlohmann::json::parse(text, nullptr, false);
    std::vector<quern::ChatMessage> messages;
    bool right = list.is_array();
    for (size_t i = 0; right && i < list.size(); ++i) {
      right = list[i].is_object() && list[i].contains("role") && list[i]["role"].is_string() &&
              list[i].contains("content") && list[i]["content"].is_string();
      if (right) messages.push_back({list[i]["role"].get<std::string>(), list[i]["content"].get<std::string>()});
    }
    if (!right) return quern::Result<void>::Failed(Invalid(path + " is no conversation that was saved here"));
    messages_ = std::move(messages);
    return {};
  }

  quern::Result<Ending> Answer() {
    using Failed = quern::Result<Ending>;
    answer_.clear();
    stream_.reset();
    quern::Result<quern::ChatPrompt> prompt = chat_.Render(messages_, options_);
    if (!prompt.ok()) return Failed::Failed(prompt.details());
    const std::vector<int32_t> ids = tokenizer_.Encode(prompt->text, {.begin = prompt->begin});
    if (ids.empty()) return Failed::Failed(Invalid("the template gives a prompt without tokens"));
    if (static_cast<int64_t>(ids.size()) > session_.context())
      return Failed::Failed(Invalid("the conversation's " + std::to_string(ids.size()) +
                                    " tokens do not fit the context of " + std::to_string(session_.context()) +
                                    "; /clear begins anew, --context N keeps more"));
    const int64_t common = generation_.Reuse(ids);
    stream_.emplace(tokenizer_, arguments_.stops());
    return generation_.Run(
        std::span(ids).subspan(static_cast<size_t>(common)),
        {.tokens = arguments_.tokens(), .speculate = arguments_.speculate(), .shift = arguments_.shift()},
        [&](int32_t id) {
          const std::string part = stream_->Add(id);
          answer_ += part;
          std::fputs(part.c_str(), stdout);
          std::fflush(stdout);
          return !stream_->stopped();
        });
  }

  quern::Session& session_;
  quern::Tokenizer tokenizer_;
  const quern::ChatTemplate& chat_;
  quern::Sampler sampler_;
  bool constrained_;  // by a grammar
  Generation generation_;
  const SamplingArguments& arguments_;
  quern::ChatOptions options_;
  std::vector<quern::ChatMessage> messages_;
  std::string answer_;
  std::optional<quern::TextStream> stream_;
};

// A line of standard input without its end; false at the end of it.
bool ReadLine(std::string& line) {
  line.clear();
  for (int c; (c = std::getchar()) != EOF;) {
    if (c == '\n') return true;
    line += static_cast<char>(c);
  }
  return !line.empty();
}

}  // namespace

quern::Result<quern::ChatTemplate> OpenTemplate(const std::string& model, const std::string& path) {
  if (path.empty()) return quern::ChatTemplate::Open(model);
  quern::Result<std::string> source = PromptOf({.file = path});
  if (!source.ok()) return quern::Result<quern::ChatTemplate>::Failed(source.details());
  return quern::ChatTemplate::Open(model, *source);
}

ChatCommand::ChatCommand(CLI::App& app)
    : command_(app.add_subcommand("chat", "talk with a model, by the chat template of its file")),
      sampling_(*command_, 1024) {
  AddModelOptions(*command_, model_, options_, /*graphs=*/false);
  AddCpuOption(*command_, options_);
  AddRunOptions(*command_, options_);
  command_->add_option("--system", system_, "the system prompt");
  command_->add_option("--template", template_, "a file with a chat template, in place of the model's");
  command_->add_option("--template-variables", variables_, "more variables of the template, a JSON object");
  command_->add_option("--session", session_file_,
                       "a file that the conversation goes on from where it is there, and that keeps it at the end");
  RequireValues(*command_, {"--system", "--stop"});
  command_->footer(
      "Examples:\n"
      "  quern chat model.gguf\n"
      "  quern chat model.gguf --system \"Answer in French.\" --temp 0.7 --top-p 0.9 --seed random\n"
      "  quern chat model.gguf --template-variables '{\"enable_thinking\": false}'\n"
      "/help, in the conversation, lists what else it takes.");
}

int ChatCommand::Run() {
  quern::Result<quern::SamplingOptions> sampling = sampling_.Get(model_);
  if (!sampling.ok()) return Fail(sampling.details());
  quern::Result<quern::ChatTemplate> chat = OpenTemplate(model_, template_);
  if (!chat.ok()) return Fail(chat.details());
  options_.cancel = CancelOnInterrupt();
  options_.progress = PromptProgress();
  quern::Result<quern::Session> session = quern::Session::Open(model_, options_);
  if (!session.ok()) return Fail(session.details());
  quern::Result<quern::Tokenizer> tokenizer = session->tokenizer();
  if (!tokenizer.ok()) return Fail(tokenizer.details());
  quern::Result<quern::Sampler> sampler = SamplerOf(*sampling, *session);
  if (!sampler.ok()) return Fail(sampler.details());
  Conversation conversation(*session, *tokenizer, *chat, std::move(*sampler), !sampling->grammar.empty(), sampling_,
                            {.variables = variables_});
  if (!session_file_.empty()) {
    quern::Result<SessionFile> kept = LoadSession(session_file_, model_, *session);
    if (!kept.ok()) return Fail(kept.details());
    if (const quern::Result<void> resumed = conversation.Resume(session_file_, *std::move(kept)); !resumed.ok())
      return Fail(resumed.details());
  }
  if (session_file_.empty() || !system_.empty()) conversation.SetSystem(system_);

  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) std::fprintf(stderr, "/help lists what there is beside talking; Ctrl-D ends\n");
  std::string line;
  int code = 0;
  while (true) {
    InterruptsEndTheProcess();
    if (terminal) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    if (!ReadLine(line)) break;
    if (line.empty()) continue;
    quern::Result<void> done;
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, blank), rest = line.substr(std::min(blank + 1, line.size()));
    if (command == "/quit") break;
    if (command == "/help")
      std::fputs(kHelp, stdout);
    else if (command == "/clear")
      conversation.Clear();
    else if (command == "/system")
      conversation.SetSystem(rest);
    else if (command == "/save")
      done = conversation.Save(rest);
    else if (command == "/load")
      done = conversation.Load(rest);
    else if (command[0] == '/')
      done = quern::Result<void>::Failed(Invalid("there is no " + command + "; /help lists what there is"));
    else {
      CancelOnInterrupt();
      done = conversation.Say(line);
    }
    if (done.ok()) continue;
    code = Fail(done.details());
    if (!terminal) break;  // in a script an error is the end
    code = 0;
  }
  if (!session_file_.empty()) {
    if (const quern::Result<void> saved = SaveSession(session_file_, model_, *session, conversation.Kept());
        !saved.ok())
      return Fail(saved.details());
  }
  if (code != 0) return code;
  if (terminal) std::fputs("\n", stdout);
  std::fprintf(stderr, "%s\n", conversation.Summary().c_str());
  return Finish();
}
