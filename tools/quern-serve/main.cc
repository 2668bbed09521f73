// quern-serve, which `quern serve` becomes: a model behind OpenAI's interface over HTTP. A program of its own, so that
// others start without the libraries of HTTP.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "serve/server.h"
#include "tools/quern/errors.h"
#include "tools/quern/file_sampling.h"
#include "tools/quern/serve_options.h"
#include "tools/quern/usage.h"

namespace {

quern::serve::Server* g_server = nullptr;

void StopServer(int) {
  if (g_server != nullptr) g_server->Stop();
  std::signal(SIGINT, SIG_DFL);  // the second one ends the process
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("a model behind OpenAI's interface, with a page to try it in", "quern serve");
  ServeArguments arguments(app);
  if (const std::optional<int> status = ParseCommandLine(app, argc, argv)) return *status;
  quern::serve::ServeOptions& serving = arguments.serving;
  const std::string& key_file = arguments.key_file;
  if (const char* key = std::getenv("QUERN_SERVE_KEY"); key != nullptr && key_file.empty()) serving.key = key;
  if (!key_file.empty()) {
    std::ifstream file(key_file);
    if (!file) return Fail("cannot open " + key_file + ": " + std::strerror(errno));
    if (!std::getline(file, serving.key) || serving.key.empty()) return Fail(key_file + " has no key");
  }
  if (arguments.verbose) {
    serving.log = [](std::string_view line) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
  }
  const auto given = [](const quern::SamplingNumber&) { return false; };
  if (const quern::Result<void> taken = TakeFileSampling(arguments.model, given, serving.sampling); !taken.ok())
    return Fail(taken.error());
  quern::Result<std::unique_ptr<quern::serve::Server>> server =
      quern::serve::Server::Open(arguments.model, arguments.options, serving);
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
