// What the handles of quern/c.h are, and how its functions check what they are given and say what went wrong. The
// library is a coat over the public interface: it sees public headers and JSON.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quern/c.h"
#include "quern/graph.h"
#include "quern/profile.h"
#include "quern/quern.h"
#include "quern/result.h"

struct quern_error {
  quern::Error error;
};
struct quern_text {
  std::string bytes;
};
struct quern_cancel {
  std::shared_ptr<quern::CancelToken> token = std::make_shared<quern::CancelToken>();
};

namespace quern::c {

// What the memory of a graph's parameters lies in, and the graph itself.
using Kept = std::vector<std::shared_ptr<const void>>;

// Handles share these, so that they may be freed in any order.
struct OwnedProgram {
  std::shared_ptr<const Kept> kept;
  std::shared_ptr<const CancelToken> cancel;
  Program program;
  std::vector<std::string> dtypes[4] = {};  // by kind of port, in its order
};
struct OwnedSession {
  std::shared_ptr<const CancelToken> cancel;
  Session session;
};

quern_error* Failed(Error error);
// A sentence about the arguments of a function of quern/c.h: kInvalid.
quern_error* Refused(const char* function, const std::string& sentence);

// A refusal of the first that is null, or null.
struct Argument {
  const char* name;
  const void* pointer;
};
quern_error* Needs(const char* function, std::initializer_list<Argument> arguments);
// Of an array: null where it is said to have elements.
quern_error* NeedsArray(const char* function, const char* name, const void* pointer, size_t count);

// The error of a result, or null.
template <typename T>
quern_error* ErrorOf(const Result<T>& result) {
  return result.ok() ? nullptr : Failed(result.details());
}
// Moves the text of a result to *out, unless there is none.
quern_error* TakeText(Result<std::string> made, quern_text** out);

inline quern_text* MakeText(std::string bytes) { return new quern_text{std::move(bytes)}; }

}  // namespace quern::c

struct quern_graph {
  std::shared_ptr<quern::c::Kept> kept;
  const quern::Graph* read = nullptr;  // lies in the first of them
  quern::Graph* write = nullptr;       // null: of a file
};
struct quern_program {
  std::shared_ptr<quern::c::OwnedProgram> owned;
};
struct quern_session {
  std::shared_ptr<quern::c::OwnedSession> owned;
};
struct quern_token_sampler {
  quern::Sampler sampler;
};
struct quern_profiler {
  std::shared_ptr<void> of;  // the session or program, which outlives it
  quern::Profiler profiler;
};
