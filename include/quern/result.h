// Errors of the public interface: a Result is a value, or a sentence that says what went wrong and where, with a code
// and the parts of the sentence for programs. Plain values: they own their text and may be copied and kept.
//
//   quern::Result<quern::Program> program = graph.Compile();
//   if (!program.ok()) return Complain(program.error());   // "SwiGLU: gate is f32[7, 5], [7, 11] expected (in ffn)"
//   program.code() == quern::ErrorCode::kShapeMismatch, program.details().operand == "gate", .where == "ffn"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace quern {

enum class ErrorCode : uint8_t {
  kNone,
  // What is wrong with a graph, at the block or op `op`.
  kUnknownOp,
  kUnknownOperand,  // `operand` refers to no value
  kInputCount,      // how many operands or tensors were given
  kMissingBias,
  kShapeMismatch,  // of an operand, or of a tensor given to a run
  kDTypeMismatch,  // likewise
  kUnboundSymbol,  // a type names a symbol that was not declared
  kBadAttribute,
  kDuplicateName,
  kUnsupported,  // right, but nothing here can compile or read it
  // What is wrong with a run.
  kMissing,       // a parameter, input, output or symbol was not given
  kUnknownName,   // there is no such parameter, input, output, symbol or state
  kOutOfRange,    // a symbol is outside its range
  kSizeConflict,  // sizes that do not go together
  kBusy,          // another run of the same program is under way
  kCancelled,     // Options::cancel asked it to stop
  kCheck,         // Options::check found a wrong or unwanted value: the message has a sentence and lines of details
  // The rest.
  kInvalid,   // anything else about what was given: a file, a text, an option
  kResource,  // memory, or a file that cannot be read
  kInternal,  // a bug in Quern
};

struct Error {
  ErrorCode code = ErrorCode::kNone;
  std::string message;                     // the whole sentence
  std::string op, operand, expected, got;  // its parts, where they apply
  std::string where;  // label path of the block, number of the node ("%7"), or name of the graph; empty when unknown
  std::string suggestion;  // of a name that there is not: one that there is and that may have been meant
};

// A value or an Error.
template <typename T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: returned as plain values
  static Result Failed(Error error) {
    Result result;
    result.error_ = std::move(error);
    return result;
  }
  bool ok() const { return value_.has_value(); }
  // kNone, an empty sentence and empty parts where all is well.
  ErrorCode code() const { return error_.code; }
  const std::string& error() const { return error_.message; }
  const Error& details() const { return error_; }
  // The value. Precondition: ok().
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Result() = default;
  std::optional<T> value_;
  Error error_;
};

// Success or an Error.
template <>
class Result<void> {
 public:
  Result() = default;
  static Result Failed(Error error) {
    Result result;
    result.error_ = std::move(error);
    return result;
  }
  bool ok() const { return error_.code == ErrorCode::kNone; }
  ErrorCode code() const { return error_.code; }
  const std::string& error() const { return error_.message; }
  const Error& details() const { return error_; }

 private:
  Error error_;
};

}  // namespace quern
