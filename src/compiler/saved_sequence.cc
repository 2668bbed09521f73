// Keys and values of one sequence as bytes, from the blocks where they lie and back.

#include <vector>

#include "compiler/saved_rows.h"
#include "compiler/sequences_state.h"

namespace quern {

Result<std::vector<uint8_t>> Sequences::Save(int sequence) const {
  const State::Sequence* found = state_->Find(sequence);
  if (found == nullptr) return Result<std::vector<uint8_t>>::Failed(State::Unknown(sequence));
  const std::vector<int64_t> rows = state_->RowsBytes();
  return compiler::WriteRows(rows, found->length, [&](size_t s, uint8_t* to) {
    for (int64_t t = 0; t < found->length; t += State::kBlock) {
      const int64_t at = found->blocks[t / State::kBlock] * State::kBlock;
      const int64_t count = std::min(State::kBlock, found->length - t) * rows[s];
      std::memcpy(to + t * rows[s], state_->states[s].data() + at * rows[s], count);
    }
  });
}

Result<int> Sequences::Load(std::span<const uint8_t> bytes) {
  const std::vector<int64_t> rows = state_->RowsBytes();
  const StatusOr<compiler::SavedRows> saved = compiler::ReadRows(bytes, rows, state_->context);
  if (!saved.ok()) return Result<int>::Failed(compiler::ErrorOf(saved.status()));
  const int64_t length = saved->length;
  if ((length + State::kBlock - 1) / State::kBlock > state_->pool.left())
    return Result<int>::Failed(compiler::ErrorOf(ErrorCode::kResource, "there is no room"));
  Result<int> added = Add();
  if (!added.ok()) return added;
  State::Sequence& sequence = state_->sequences[*added];
  for (int64_t t = 0; t < length; t += State::kBlock) sequence.blocks.push_back(state_->pool.Take());
  sequence.length = length;
  for (size_t s = 0; s < rows.size(); ++s) {
    for (int64_t t = 0; t < length; t += State::kBlock) {
      const int64_t at = sequence.blocks[t / State::kBlock] * State::kBlock;
      const int64_t count = std::min(State::kBlock, length - t) * rows[s];
      std::memcpy(state_->states[s].data() + at * rows[s], saved->states[s] + t * rows[s], count);
    }
  }
  return added;
}

}  // namespace quern
