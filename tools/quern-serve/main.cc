// quern-serve, which `quern serve` becomes: a model behind OpenAI's interface over HTTP. A program of its own, so that
// others start without the libraries of HTTP.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "serve/server.h"
#include "tools/quern/errors.h"
#include "tools/quern/model_options.h"

namespace {

quern::serve::Server* g_server = nullptr;

void StopServer(int) {
  if (g_server != nullptr) g_server->Stop();
  std::signal(SIGINT, SIG_DFL);  // the second one ends the process
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("a model behind OpenAI's interface, with a page to try it in", "quern serve");
  quern::Options options;
  quern::serve::ServeOptions serving;
  std::string model, key_file;
  bool verbose = false;
  AddModelOptions(app, model, options);
  AddCpuOption(app, options);
  AddRunOptions(app, options);
  app.add_option("--host", serving.host, "address to listen on; 0.0.0.0: all of this machine's")->capture_default_str();
  app.add_option("--port", serving.port, "0: any that is free")->capture_default_str()->check(WholeNumber<int>);
  app.add_option("--key-file", key_file,
                 "a file with the key that clients must send; QUERN_SERVE_KEY when not given, or none");
  app.add_option("--parallel", serving.parallel, "answers under way at a time")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  app.add_option("--queue", serving.queue, "requests that may wait; more are refused")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  app.add_option("-n,--tokens", serving.tokens, "of an answer, where a request does not say")
      ->capture_default_str()
      ->check(WholeNumber<int64_t>);
  app.add_option("--seconds", serving.seconds, "that an answer may take")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  app.add_option("--name", serving.name, "of the model, in answers; the file's when not given");
  app.add_flag("--verbose", verbose, "a line for each request; never what is in it");
  RequireValues(app);
  app.footer(
      "Examples:\n"
      "  quern serve model.gguf\n"
      "  quern serve model.gguf --port 8000 --parallel 8 --key-file key.txt\n"
      "  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'");
  CLI11_PARSE(app, argc, argv);
  if (const char* key = std::getenv("QUERN_SERVE_KEY"); key != nullptr && key_file.empty()) serving.key = key;
  if (!key_file.empty()) {
    std::ifstream file(key_file);
    if (!std::getline(file, serving.key) || serving.key.empty()) return Fail(key_file + " has no key");
  }
  if (verbose) {
    serving.log = [](std::string_view line) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
  }
  quern::Result<std::unique_ptr<quern::serve::Server>> server = quern::serve::Server::Open(model, options, serving);
  if (!server.ok()) return Fail(server.error());
  quern::Result<int> port = (*server)->Bind();
  if (!port.ok()) return Fail(port.error());
  g_server = server->get();
  std::signal(SIGINT, StopServer);
  std::signal(SIGTERM, StopServer);
  std::printf("listening on http://%s:%d\n", serving.host.c_str(), *port);
  std::fflush(stdout);
  (*server)->Run();
  g_server = nullptr;
  return 0;
}
