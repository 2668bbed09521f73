// Keys and values of one sequence as bytes: a mark, how many states and tokens there are, and for each state the bytes
// of a token's row, then the rows.

#include "compiler/sequences_state.h"

namespace quern {
namespace {

constexpr char kMagic[8] = {'Q', 'U', 'E', 'R', 'N', 'K', 'V', '1'};

}  // namespace

Result<std::vector<uint8_t>> Sequences::Save(int sequence) const {
  const State::Sequence* found = state_->Find(sequence);
  if (found == nullptr) return Result<std::vector<uint8_t>>::Failed(State::Unknown(sequence));
  std::vector<uint8_t> bytes(kMagic, kMagic + sizeof(kMagic));
  auto put = [&](const void* data, size_t count) {
    const auto* first = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), first, first + count);
  };
  const int64_t header[] = {static_cast<int64_t>(state_->states.size()), found->length};
  put(header, sizeof(header));
  for (size_t s = 0; s < state_->states.size(); ++s) {
    const int64_t row = state_->RowBytes(s);
    put(&row, sizeof(row));
    for (int64_t t = 0; t < found->length; t += State::kBlock) {
      const int64_t at = found->blocks[t / State::kBlock] * State::kBlock;
      put(state_->states[s].data() + at * row, std::min(State::kBlock, found->length - t) * row);
    }
  }
  return bytes;
}

Result<int> Sequences::Load(std::span<const uint8_t> bytes) {
  const auto failed = [](ErrorCode code, std::string text) {
    return Result<int>::Failed(compiler::ErrorOf(code, text));
  };
  int64_t header[2];
  const size_t start = sizeof(kMagic) + sizeof(header);
  if (bytes.size() < start || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return failed(ErrorCode::kInvalid, "these are no keys and values of a sequence");
  std::memcpy(header, bytes.data() + sizeof(kMagic), sizeof(header));
  const int64_t length = header[1];
  if (header[0] != static_cast<int64_t>(state_->states.size()) || length < 0 || length > state_->context) {
    return failed(ErrorCode::kInvalid,
                  absl::StrFormat("the keys and values of %d tokens in %d states do not fit a model of %d and a "
                                  "context of %d",
                                  length, header[0], state_->states.size(), state_->context));
  }
  size_t expected = start;
  for (size_t s = 0; s < state_->states.size(); ++s) expected += sizeof(int64_t) + length * state_->RowBytes(s);
  if (bytes.size() != expected)
    return failed(ErrorCode::kInvalid, absl::StrFormat("%d bytes, not %d", bytes.size(), expected));
  if ((length + State::kBlock - 1) / State::kBlock > state_->pool.left())
    return failed(ErrorCode::kResource, "there is no room");
  size_t at = start;
  for (size_t s = 0; s < state_->states.size(); ++s) {
    int64_t row = 0;
    std::memcpy(&row, bytes.data() + at, sizeof(row));
    if (row != state_->RowBytes(s))
      return failed(ErrorCode::kInvalid, absl::StrFormat("rows of %d bytes, not %d", row, state_->RowBytes(s)));
    at += sizeof(row) + length * row;
  }
  Result<int> added = Add();
  if (!added.ok()) return added;
  State::Sequence& sequence = state_->sequences[*added];
  for (int64_t t = 0; t < length; t += State::kBlock) sequence.blocks.push_back(state_->pool.Take());
  sequence.length = length;
  at = start;
  for (size_t s = 0; s < state_->states.size(); ++s) {
    const int64_t row = state_->RowBytes(s);
    at += sizeof(row);
    for (int64_t t = 0; t < length; t += State::kBlock) {
      const int64_t count = std::min(State::kBlock, length - t) * row;
      std::memcpy(state_->states[s].data() + sequence.blocks[t / State::kBlock] * State::kBlock * row,
                  bytes.data() + at, count);
      at += count;
    }
  }
  return added;
}

}  // namespace quern
