// Server: OpenAI's interface to one model over HTTP, a page to try it in, and metrics.
//
//   POST /v1/chat/completions, /v1/completions      of language models; streamed as server-sent events on request
//   POST /v1/embeddings                             of encoders
//   GET  /v1/models, /health, /metrics, /
//
// It listens on one address. Requests must name it in Host, and pages of other origins get nothing, so that no page a
// browser shows can reach a server on the loopback interface by a name of its own (DNS rebinding). With a key, /v1 and
// /metrics want it. No prompt and no answer is ever logged.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "quern/quern.h"

namespace quern::serve {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                                 // 0: any that is free
  std::string key = {};                            // that clients send as "Authorization: Bearer KEY"; empty: none
  int parallel = 4;                                // answers under way
  int queue = 64;                                  // requests that wait
  int64_t tokens = 1024;                           // of an answer, where a request does not say
  SamplingOptions sampling = {.temperature = 1};   // where a request does not say
  int64_t body_bytes = 8 << 20;                    // of a request
  int seconds = 600;                               // that an answer may take
  std::string name = {};                           // of the model in answers; empty: the file's
  std::function<void(std::string_view)> log = {};  // a line for each request: method, path, status, time
};

// Thread-safe.
class Server {
 public:
  // Opens the model. Errors: those of Sequences::Open or Embedder::Open, of the tokenizer; numbers outside their
  // ranges.
  static Result<std::unique_ptr<Server>> Open(const std::string& model, const Options& options,
                                              const ServeOptions& serving);
  ~Server();

  // Binds the address. The port it has. Error: kResource, it is taken.
  Result<int> Bind();
  // Serves until Stop; after it, answers under way end first, for at most `grace` seconds.
  void Run(int grace = 10);
  // From any thread, and from a signal handler.
  void Stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern::serve
