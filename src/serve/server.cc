#include "serve/server.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#define CPPHTTPLIB_NO_EXCEPTIONS
#include <httplib.h>

#include "compiler/public_error.h"
#include "quern/chat.h"
#include "quern/embed.h"
#include "serve/metrics_text.h"
#include "serve/openai.h"
#include "serve/page.h"
#include "serve/scheduler.h"

namespace quern::serve {
namespace {

using Clock = std::chrono::steady_clock;
using HttpRequest = httplib::Request;
using httplib::Response;

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr int kMostParallel = 256, kMostQueue = 4096;

// In a time that does not depend on where they differ.
bool SameKey(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return different == 0;
}

void SetJson(Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(body.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json");
}

void SetError(Response& response, int status, const std::string& message) {
  const char* type = status == 401 || status == 403 ? "authentication_error"
                     : status >= 500                ? "server_error"
                                                    : "invalid_request_error";
  SetJson(response, status, ErrorBody(message, type, std::to_string(status)));
}

int StatusOfError(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBusy: return 503;
    case ErrorCode::kInvalid:
    case ErrorCode::kUnsupported:
    case ErrorCode::kOutOfRange: return 400;
    default: return 500;
  }
}

std::string Event(const Json& body) {
  return "data: " + body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
}

// Of what the library refuses by itself.
const char* ReasonOf(int status) {
  switch (status) {
    case 400: return "the request is damaged";
    case 404: return "there is nothing at this path, or not by this method";
    case 413: return "the body is too large";
    default: return "the request cannot be answered";
  }
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The library lets 5 connections wait to be accepted; a crowd's are more, and the rest would be reset.
class Http : public httplib::Server {
 public:
  void LetMoreWait() { ::listen(svr_sock_, 1024); }
};

}  // namespace

struct Server::State {
  ServeOptions serving;
  std::string path, name;
  Http http;
  int port = 0;
  std::unique_ptr<Scheduler> scheduler;  // of a language model
  std::optional<Result<ChatTemplate>> chat;
  std::mutex embedding;
  std::optional<Embedder> embedder;  // of an encoder
  std::atomic<bool> stopping{false};
  std::atomic<uint64_t> answers{0};
  const uint64_t salt = std::random_device()();
  const int64_t since = Now();

  // Null where the request may go on; else what is wrong with it, in `response`.
  bool Refused(const HttpRequest& request, Response& response) const;
  bool IsOwnHost(std::string_view host) const;
  void Route();
  void Complete(const HttpRequest& request, Response& response, Form form);
  void Embed(const HttpRequest& request, Response& response);
  Result<std::vector<int32_t>> PromptOf(const Call& call, Form form) const;
  // `calls`: whose template says how functions are called, or null where none may be.
  void SendWhole(const std::shared_ptr<Answer>& answer, const AnswerName& answer_name, const ChatTemplate* calls,
                 Response& response) const;
  void SendStream(const std::shared_ptr<Answer>& answer, const AnswerName& answer_name, const ChatTemplate* calls,
                  bool usage, Response& response) const;
};

bool Server::State::IsOwnHost(std::string_view host) const {
  const std::string at = ":" + std::to_string(port);
  if (host.ends_with(at)) host.remove_suffix(at.size());
  if (host == serving.host) return true;
  const bool everywhere = serving.host == "0.0.0.0" || serving.host == "::";
  // Who listens everywhere is asked by numbers, or by names that only that machine knows.
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]" ||
         (everywhere && host.find_first_not_of("0123456789.[]:abcdefABCDEF") == std::string_view::npos);
}

bool Server::State::Refused(const HttpRequest& request, Response& response) const {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  if (!IsOwnHost(request.get_header_value("Host")))
    return SetError(response, 403, "the request names a host that this server is not"), true;
  if (request.has_header("Origin")) {
    const std::string origin = request.get_header_value("Origin");
    if (!origin.starts_with("http://") || !IsOwnHost(std::string_view(origin).substr(7)))
      return SetError(response, 403, "pages of other origins get nothing here"), true;
  }
  const bool open = request.path == "/" || request.path == "/health" || request.path.starts_with("/page.");
  if (!open && !serving.key.empty() && !SameKey(request.get_header_value("Authorization"), "Bearer " + serving.key))
    return SetError(response, 401, "the key is missing or wrong"), true;
  // A form of another page can send bodies of other types, and no JSON.
  if (request.method == "POST" && !request.get_header_value("Content-Type").starts_with("application/json"))
    return SetError(response, 415, "Content-Type: application/json expected"), true;
  return false;
}

Result<std::vector<int32_t>> Server::State::PromptOf(const Call& call, Form form) const {
  using Ids = Result<std::vector<int32_t>>;
  const Tokenizer& tokenizer = scheduler->tokenizer();
  if (form == Form::kCompletion) {
    if (call.prompt_ids.empty()) return tokenizer.Encode(call.prompt);
    for (const int32_t id : call.prompt_ids) {
      if (id >= tokenizer.size()) {
        return Ids::Failed(
            compiler::ErrorOf(ErrorCode::kInvalid, "prompt: token id " + std::to_string(id) + " is out of range"));
      }
    }
    return call.prompt_ids;
  }
  if (!chat->ok()) return Ids::Failed(chat->details());
  Result<ChatPrompt> prompt = (*chat)->Render(call.messages, {.tools = call.tools});
  if (!prompt.ok()) return Ids::Failed(prompt.details());
  return tokenizer.Encode(prompt->text, {.begin = prompt->begin});
}

void Server::State::SendWhole(const std::shared_ptr<Answer>& answer, const AnswerName& answer_name,
                              const ChatTemplate* calls, Response& response) const {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(serving.seconds);
  std::string text;
  std::vector<Drawn> drawn;
  while (true) {
    Answer::Piece piece = answer->Next(kPoll);
    text += piece.text;
    drawn.insert(drawn.end(), piece.drawn.begin(), piece.drawn.end());
    if (piece.end == Answer::End::kError) return SetError(response, stopping ? 503 : 500, piece.error);
    if (piece.end != Answer::End::kNone) {
      const ChatAnswer said = calls == nullptr ? ChatAnswer{text, {}} : calls->TakeApart(text);
      int64_t characters = 0;
      const Json logprobs = answer_name.logprobs ? LogprobsOf(answer_name, drawn, characters) : Json(nullptr);
      return SetJson(response, 200, WholeAnswer(answer_name, said, piece.end, answer->counts(), logprobs));
    }
    if (Clock::now() > end) {
      answer->Cancel();
      return SetError(response, 504, "the answer took too long");
    }
  }
}

void Server::State::SendStream(const std::shared_ptr<Answer>& answer, const AnswerName& answer_name,
                               const ChatTemplate* calls, bool usage, Response& response) const {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(serving.seconds);
  response.set_header("Cache-Control", "no-store");
  // `all` is kept where a part of it may become a call; `sent` bytes of it are.
  auto send = [answer, answer_name, calls, usage, end, first = true, all = std::string(), sent = size_t{0},
               characters = int64_t{0}](size_t, httplib::DataSink& sink) mutable {
    const auto put = [&](const Json& event) {
      const std::string text = Event(event);
      return sink.write(text.data(), text.size());
    };
    Answer::Piece piece = answer->Next(kPoll);
    if (!sink.is_writable() || Clock::now() > end) return false;
    ChatAnswer said;
    if (calls != nullptr) {
      all += piece.text;
      if (piece.end == Answer::End::kStop || piece.end == Answer::End::kTokens) said = calls->TakeApart(all);
      const std::string_view certain =
          piece.end == Answer::End::kNone ? std::string_view(all).substr(0, calls->CertainContent(all)) : said.content;
      piece.text = certain.substr(std::min(sent, certain.size()));
      sent = std::max(sent, certain.size());
    }
    if (!piece.text.empty() || !piece.drawn.empty() || first) {
      const Json logprobs = answer_name.logprobs ? LogprobsOf(answer_name, piece.drawn, characters) : Json(nullptr);
      if (!put(PartOfAnswer(answer_name, piece.text, first, Answer::End::kNone, logprobs))) return false;
      first = false;
    }
    if (piece.end == Answer::End::kNone) return true;
    bool well = true;
    if (piece.end == Answer::End::kError) {
      well = put(ErrorBody(piece.error, "server_error", "500"));
    } else {
      if (!said.calls.empty())
        well = put(PartOfAnswer(answer_name, "", false, Answer::End::kNone, nullptr, said.calls));
      if (well) well = put(PartOfAnswer(answer_name, "", false, piece.end, nullptr, said.calls));
      if (well && usage) well = put(UsageOfAnswer(answer_name, answer->counts()));
    }
    constexpr std::string_view kDone = "data: [DONE]\n\n";
    if (well) well = sink.write(kDone.data(), kDone.size());
    sink.done();
    return well;
  };
  // However it ends, nobody reads the answer any more.
  response.set_chunked_content_provider("text/event-stream", std::move(send), [answer](bool) { answer->Cancel(); });
}

void Server::State::Complete(const HttpRequest& request, Response& response, Form form) {
  if (scheduler == nullptr) return SetError(response, 400, "this model is an encoder: use /v1/embeddings");
  StatusOr<Call> call = ParseCall(request.body, form, {serving.tokens, serving.sampling});
  if (!call.ok()) return SetError(response, 400, std::string(call.status().message()));
  const quern::Result<void> sampling = CheckSampling(call->request.sampling);
  if (!sampling.ok()) return SetError(response, 400, sampling.error());
  Result<std::vector<int32_t>> ids = PromptOf(*call, form);
  if (!ids.ok()) return SetError(response, StatusOfError(ids.code()), ids.error());
  call->request.prompt = *std::move(ids);
  const bool logprobs = call->request.likeliest >= 0;
  Result<std::shared_ptr<Answer>> answer = scheduler->Submit(std::move(call->request));
  if (!answer.ok()) {
    if (answer.code() == ErrorCode::kBusy) response.set_header("Retry-After", "1");
    return SetError(response, StatusOfError(answer.code()), answer.error());
  }
  char number[40];
  std::snprintf(number, sizeof(number), "%s-%016llx", form == Form::kChat ? "chatcmpl" : "cmpl",
                static_cast<unsigned long long>((salt << 20) + ++answers));
  const AnswerName answer_name = {number, name, Now(), form, logprobs};
  const ChatTemplate* const calls = call->tools.empty() ? nullptr : &**chat;
  if (call->stream) return SendStream(*answer, answer_name, calls, call->include_usage, response);
  SendWhole(*answer, answer_name, calls, response);
}

void Server::State::Embed(const HttpRequest& request, Response& response) {
  if (!embedder) return SetError(response, 400, "this model is no encoder");
  const StatusOr<Call> call = ParseCall(request.body, Form::kEmbedding);
  if (!call.ok()) return SetError(response, 400, std::string(call.status().message()));
  Json data = Json::array();
  int64_t tokens = 0;
  const std::lock_guard lock(embedding);
  Result<Tokenizer> tokenizer = embedder->tokenizer();
  for (const std::string& input : call->inputs) {
    const std::vector<int32_t> ids = tokenizer->Encode(input, {.begin = true, .parse_special = false});
    tokens += static_cast<int64_t>(ids.size());
    Result<std::vector<float>> vector = embedder->Embed(ids);
    if (!vector.ok()) return SetError(response, StatusOfError(vector.code()), vector.error());
    data.push_back({{"object", "embedding"}, {"index", data.size()}, {"embedding", *vector}});
  }
  SetJson(response, 200,
          {{"object", "list"},
           {"data", std::move(data)},
           {"model", name},
           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

void Server::State::Route() {
  http.set_payload_max_length(static_cast<size_t>(serving.body_bytes));
  http.set_read_timeout(std::chrono::seconds(10));
  http.set_write_timeout(std::chrono::seconds(30));
  http.set_keep_alive_max_count(1000);
  http.set_keep_alive_timeout(30);
  http.set_tcp_nodelay(true);
  // A thread waits with each answer, those in the queue too; the rest are for what is quick.
  const size_t threads = static_cast<size_t>(serving.parallel + serving.queue) + 8;
  http.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  http.set_pre_routing_handler([this](const HttpRequest& request, Response& response) {
    return Refused(request, response) ? httplib::Server::HandlerResponse::Handled
                                      : httplib::Server::HandlerResponse::Unhandled;
  });
  http.set_error_handler([](const HttpRequest&, Response& response) {
    if (response.body.empty()) SetError(response, response.status, ReasonOf(response.status));
  });
  if (serving.log) {
    http.set_logger([this](const HttpRequest& request, const Response& response) {
      serving.log(request.method + " " + request.path.substr(0, 64) + " " + std::to_string(response.status));
    });
  }
  http.Post("/v1/chat/completions",
            [this](const HttpRequest& request, Response& response) { Complete(request, response, Form::kChat); });
  http.Post("/v1/completions",
            [this](const HttpRequest& request, Response& response) { Complete(request, response, Form::kCompletion); });
  http.Post("/v1/embeddings", [this](const HttpRequest& request, Response& response) { Embed(request, response); });
  http.Get("/v1/models", [this](const HttpRequest&, Response& response) {
    const Json model = {{"id", name}, {"object", "model"}, {"created", since}, {"owned_by", "quern"}};
    SetJson(response, 200, {{"object", "list"}, {"data", Json::array({model})}});
  });
  http.Get("/health", [this](const HttpRequest&, Response& response) {
    SetJson(response, stopping ? 503 : 200, {{"status", stopping ? "stopping" : "ok"}});
  });
  http.Get("/metrics", [this](const HttpRequest&, Response& response) {
    response.set_content(MetricsText(scheduler == nullptr ? Scheduler::Metrics() : scheduler->metrics()),
                         "text/plain; version=0.0.4");
  });
  http.Get("/", [](const HttpRequest&, Response& response) {
    response.set_content(PageHtml(), "text/html; charset=utf-8");
  });
  http.Get("/page.js",
           [](const HttpRequest&, Response& response) { response.set_content(PageScript(), "text/javascript"); });
  http.Get("/page.css", [](const HttpRequest&, Response& response) { response.set_content(PageStyle(), "text/css"); });
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Open(const std::string& model, const Options& options,
                                             const ServeOptions& serving) {
  using Made = Result<std::unique_ptr<Server>>;
  const auto wrong = [](const char* text) { return Made::Failed(compiler::ErrorOf(ErrorCode::kInvalid, text)); };
  if (serving.parallel < 1 || serving.parallel > kMostParallel) return wrong("1 to 256 answers may be under way");
  if (serving.queue < 0 || serving.queue > kMostQueue) return wrong("0 to 4096 requests may wait");
  if (serving.port < 0 || serving.port > 65535) return wrong("a port is a number from 0 to 65535");
  if (serving.tokens < 1 || serving.body_bytes < 1 || serving.seconds < 1) return wrong("limits are 1 or more");
  auto state = std::make_unique<State>();
  state->serving = serving;
  state->path = model;
  state->name = serving.name.empty() ? model.substr(model.find_last_of('/') + 1) : serving.name;
  Result<std::unique_ptr<Scheduler>> scheduler =
      Scheduler::Open(model, options, {.parallel = serving.parallel, .queue = serving.queue});
  if (scheduler.ok()) {
    state->scheduler = std::move(*scheduler);
    state->chat.emplace(ChatTemplate::Open(model));
  } else {
    Result<Embedder> embedder = Embedder::Open(model, options);
    // What is no encoder either gets the first error.
    if (!embedder.ok()) return Made::Failed(scheduler.details());
    Result<Tokenizer> tokenizer = embedder->tokenizer();
    if (!tokenizer.ok()) return Made::Failed(tokenizer.details());
    state->embedder.emplace(std::move(*embedder));
  }
  state->Route();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Result<int> Server::Bind() {
  State& state = *state_;
  const ServeOptions& serving = state.serving;
  const bool bound = serving.port == 0 ? (state.port = state.http.bind_to_any_port(serving.host)) > 0
                                       : state.http.bind_to_port(serving.host, serving.port);
  if (!bound) {
    return Result<int>::Failed(compiler::ErrorOf(
        ErrorCode::kResource, "cannot listen on " + serving.host + ":" + std::to_string(serving.port)));
  }
  if (serving.port != 0) state.port = serving.port;
  state.http.LetMoreWait();
  return state.port;
}

void Server::Run(int grace) {
  State& state = *state_;
  std::thread watch([&] {
    while (!state.stopping) std::this_thread::sleep_for(kPoll);
    if (state.scheduler != nullptr) {
      state.scheduler->Close();
      state.scheduler->Drain(std::chrono::seconds(grace));
    }
    state.http.stop();
  });
  state.http.listen_after_bind();
  state.stopping = true;
  watch.join();
}

void Server::Stop() { state_->stopping = true; }

}  // namespace quern::serve
