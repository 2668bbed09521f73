// Keys and values of a text's tokens as bytes: a mark, how many states and tokens there are, and for each state the
// bytes of a token's row, then the rows. Sessions and sequences of one model read what the other wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"

namespace quern::compiler {

// `rows`: bytes of a token's row in each state. `copy` writes the `length` rows of a state.
std::vector<uint8_t> WriteRows(std::span<const int64_t> rows, int64_t length,
                               const std::function<void(size_t state, uint8_t* to)>& copy);

struct SavedRows {
  int64_t length = 0;
  std::vector<const uint8_t*> states;  // where the rows of each begin
};
// What WriteRows made for the same `rows`, of no more than `context` tokens. The bytes are not trusted: kInvalid.
StatusOr<SavedRows> ReadRows(std::span<const uint8_t> bytes, std::span<const int64_t> rows, int64_t context);

}  // namespace quern::compiler
