// A command in a process of its own, with an end to its time: what crashes or hangs there does so there.
#pragma once

#include <string>

#include "base/status.h"

namespace quern::check {

struct Outcome {
  bool timed_out = false;
  int status = 0;         // exit status; 128 and the number of the signal that ended it
  std::string said = {};  // what was in `said`
  bool operator==(const Outcome&) const = default;
};

// Runs `command` by /bin/sh without input, and ends it and what it started after `seconds`. Its standard output goes to
// the file `said`, of which the first 4096 bytes are part of the outcome; nowhere without one. Error: no process.
StatusOr<Outcome> RunCommand(const std::string& command, double seconds, const std::string& said = "");
// "exit status 1", "signal 11", "no end in 20 s", or the first line of what was said.
std::string Text(const Outcome& outcome, double seconds);
// `command` with the quoted path for every "{}".
std::string WithPath(const std::string& command, const std::string& path);

}  // namespace quern::check
