// Runs a kernel by its definition, one element at a time: the oracle for emitters, rewrites and tile bindings.
//
// Floats are computed in double and rounded where the text says so: at stores, casts and bit casts, to the dtype there.
// Reductions add in order of the index. Integers wrap to their dtype. Tile ops run their meaning, packs the scalar
// encoders and decoders. Every access is checked: an index out of range, or a read of scratch or output that nothing
// has written yet, stops the run with the statement and the index. Deterministic, for tests; not fast.
//
//   QUERN_ASSIGN(Interpreter interpreter, Interpreter::Create(kernel, {{"M", 3}}));
//   QUERN_RETURN_IF_ERROR(interpreter.Run({x_bytes, y_bytes}, 0, interpreter.chunks()));
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"

namespace quern::kir {

// The memory of one parameter, exactly LayoutBytes long; an `in` parameter is only read.
using BufferBytes = std::span<uint8_t>;

class Interpreter {
 public:
  // Errors: an unbound symbol, or what Verify would refuse about names, dtypes and ranks.
  static StatusOr<Interpreter> Create(const Kernel& kernel, const Binding& binding);
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

  int64_t chunks() const;
  // Runs chunks [begin, end) on one buffer a parameter, in the order of declaration. Scratch starts undefined in each
  // chunk, `out` buffers in each call.
  Status Run(std::span<const BufferBytes> buffers, int64_t begin, int64_t end);

 private:
  struct State;
  explicit Interpreter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// All chunks.
Status Interpret(const Kernel& kernel, const Binding& binding, std::span<const BufferBytes> buffers);

}  // namespace quern::kir
