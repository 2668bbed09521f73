// The options of quern serve: quern reads them to refuse what cannot be, to complete and to describe them, the program
// quern-serve to serve.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/quern.h"
#include "serve/server.h"

struct ServeArguments {
  // Adds them to `verb`, which must not outlive this.
  explicit ServeArguments(CLI::App& verb);

  quern::Options options;
  quern::serve::ServeOptions serving;
  std::string model, key_file;
  bool verbose = false;
};
