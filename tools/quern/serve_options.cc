#include "serve_options.h"

#include "model_options.h"

ServeArguments::ServeArguments(CLI::App& verb) {
  AddModelOptions(verb, model, options, /*graphs=*/false);
  AddCpuOption(verb, options);
  AddRunOptions(verb, options);
  verb.add_option("--host", serving.host, "address to listen on; 0.0.0.0: all of this machine's")
      ->capture_default_str();
  verb.add_option("--port", serving.port, "0: any that is free")->capture_default_str()->check(Between(0, 65535));
  verb.add_option("--key-file", key_file,
                  "a file with the key that clients must send; QUERN_SERVE_KEY when not given, or none");
  verb.add_option("--parallel", serving.parallel, "answers under way at a time")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  verb.add_option("--queue", serving.queue, "requests that may wait; more are refused")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  verb.add_option("-n,--tokens", serving.tokens, "of an answer, where a request does not say")
      ->capture_default_str()
      ->check(WholeNumber<int64_t>);
  verb.add_option("--seconds", serving.seconds, "that an answer may take")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  verb.add_option("--name", serving.name, "of the model, in answers; the file's when not given");
  verb.add_flag("--verbose", verbose, "a line for each request; never what is in it");
  RequireValues(verb);
  verb.footer(
      "Examples:\n"
      "  quern serve model.gguf\n"
      "  quern serve model.gguf --port 8000 --parallel 8 --key-file key.txt\n"
      "  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'");
}
