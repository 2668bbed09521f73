// Checks of generated kernels, after the fact: Options::check writes a reproduction where a kernel is wrong; these run
// it again and make it smaller (docs/checking.md has the form of the files).
//
//   quern::Result<quern::Replayed> again = quern::Replay("check-layers.0-ffn-MatMul.qir", {});
//   if (again.ok() && !again->passed) std::puts(again->text.c_str());
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct ReplayOptions {
  std::string cpu = {};  // level; empty: the file's, or this machine's own where it lacks that
  int threads = 0;       // 0: as many as the file says
};

struct Replayed {
  bool passed = false;
  std::string text;  // "ok: ...", or the finding in several lines
  // What the finding is about, in a line that smaller files that fail in the same way share: "Log makes a NaN of
  // negative", "MatMul is outside of its contract". Empty where all is well.
  std::string signature;
};

// Compiles the graph of a .qir file as its comments say, runs it on the values beside it, and compares every output
// with the interpreter in double (or looks for NaNs, where that is what the file is about). Errors: a damaged file,
// with the place; a graph that cannot be compiled; a level this machine lacks.
Result<Replayed> Replay(const std::string& path, const ReplayOptions& options);

struct ReduceOptions {
  std::string output = {};  // the smaller .qir; empty: NAME-reduced.qir beside the file
  // Run by /bin/sh with the path of a candidate for each "{}": it fails when the exit status is the one that the whole
  // file gives, which is not 0. Crashes, and no end within `seconds`, are failures of their own kinds.
  std::string command;
  // What it prints to standard output is part of that: `quern replay --brief` prints Replayed::signature, so that the
  // op and the kind of the finding are kept.
  bool same_output = false;
  double seconds = 20;
  int attempts = 2000;                             // candidates that are run at most
  std::function<void(std::string_view)> log = {};  // a line a step; may be null
};

// Makes a reproduction smaller for as long as the command fails in the same way, and writes it. Its path. Errors: a
// damaged file; a command that does not fail; a file that cannot be written.
Result<std::string> Reduce(const std::string& path, const ReduceOptions& options);

}  // namespace quern
