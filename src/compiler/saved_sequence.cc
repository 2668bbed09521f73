// What is kept of one sequence as bytes, from the blocks and places where it lies and back.

#include <vector>

#include "compiler/saved_rows.h"
#include "compiler/sequences_state.h"

namespace quern {

Result<std::vector<uint8_t>> Sequences::Save(int sequence) const {
  const State::Sequence* found = state_->Find(sequence);
  if (found == nullptr) return Result<std::vector<uint8_t>>::Failed(State::Unknown(sequence));
  return compiler::WriteRows(state_->RowsOfStates(), found->length, [&](size_t s, uint8_t* to) {
    state_->EachPiece(*found, state_->states[s],
                      [&](const uint8_t* piece, int64_t from, int64_t count) { std::memcpy(to + from, piece, count); });
  });
}

Result<int> Sequences::Load(std::span<const uint8_t> bytes) {
  const StatusOr<compiler::SavedRows> saved = compiler::ReadRows(bytes, state_->RowsOfStates(), state_->context);
  if (!saved.ok()) return Result<int>::Failed(compiler::ErrorOf(saved.status()));
  const int64_t length = saved->length;
  if ((length + State::kBlock - 1) / State::kBlock > state_->pool.left())
    return Result<int>::Failed(compiler::ErrorOf(ErrorCode::kResource, "there is no room"));
  Result<int> added = Add();
  if (!added.ok()) return added;
  State::Sequence& sequence = state_->sequences[*added];
  for (int64_t t = 0; t < length; t += State::kBlock) sequence.blocks.push_back(state_->pool.Take());
  sequence.length = length;
  if (state_->carries() && length > 0) sequence.place = state_->places.Take() + 1;
  for (size_t s = 0; s < state_->states.size(); ++s) {
    state_->EachPiece(sequence, state_->states[s], [&](uint8_t* piece, int64_t from, int64_t count) {
      std::memcpy(piece, saved->states[s] + from, count);
    });
  }
  return added;
}

}  // namespace quern
