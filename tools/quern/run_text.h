// quern run FILE.qir: a graph in text form once, on values of its file or drawn.
#pragma once

#include <string>
#include <vector>

#include "text_options.h"

struct RunTextOptions {
  std::vector<std::string> out;  // files of outputs, as --out says them
  bool quiet = false;
};

// The outputs go to standard output, how long it took to standard error, unless quiet.
quern::Result<void> RunText(const std::string& path, const quern::Options& options, const TextArguments& arguments,
                            const RunTextOptions& run);
