// quern run FILE.qir: a graph in text form once, on values of its file or drawn.
#pragma once

#include <string>

#include "text_options.h"

// The outputs go to standard output, how long it took to standard error.
quern::Result<void> RunText(const std::string& path, const quern::Options& options, const TextArguments& arguments,
                            const std::vector<std::string>& out);
