// Where a prompt comes from: the command line, a file, or standard input.
#pragma once

#include <string>

#include "quern/result.h"

struct PromptSource {
  bool given = false;     // --prompt was
  std::string text = {};  // its value
  std::string file = {};  // of --file; "-": standard input; empty: not given
};

// What was given; of neither, standard input to its end, unless that is a terminal. The line end that closes a file or
// standard input is no part of the prompt. Errors: nothing was
// given, a file that cannot be read, more than 1 GiB.
quern::Result<std::string> PromptOf(const PromptSource& source);

// An error that a command found itself.
quern::Error Invalid(std::string message);
