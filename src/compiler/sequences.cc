// Sequences of the public interface: blocks of keys and values, and runs of rows of many sequences.

#include "quern/sequences.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "codegen/matmul_plan.h"
#include "compiler/block_pool.h"
#include "compiler/model.h"
#include "compiler/public_error.h"

namespace quern {
namespace {

constexpr int64_t kBlock = 32;  // tokens
constexpr int kMostSequences = 1024;
constexpr char kMagic[8] = {'Q', 'U', 'E', 'R', 'N', 'K', 'V', '1'};

template <typename T>
Result<T> Failed(const Status& status) {
  return Result<T>::Failed(compiler::ErrorOf(status));
}

Error MadeError(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

}  // namespace

struct Sequences::State {
  struct Sequence {
    bool live = false;
    int64_t length = 0;
    std::vector<int> blocks;
  };
  // Rows of one run, as the graph's inputs want them.
  struct Rows {
    std::vector<int32_t> ids, positions, index, starts = {0}, lengths, blocks, rows;
    std::vector<size_t> wants;  // of each logits row: the step that it is of
  };

  std::unique_ptr<compiler::RunningModel> model;
  std::optional<Result<Tokenizer>> tokenizer;
  compiler::BlockPool pool{0};
  std::vector<Sequence> sequences;
  std::vector<std::span<uint8_t>> states;  // of each layer: keys, then values
  std::vector<ConstBytes> inputs;
  int64_t context = 0, vocabulary = 0, row_blocks = 0, steps = 0;
  bool invariant = false;

  Sequence* Find(int number) {
    return number >= 0 && number < static_cast<int>(sequences.size()) && sequences[number].live ? &sequences[number]
                                                                                                : nullptr;
  }
  static Error Unknown(int number) {
    return MadeError(ErrorCode::kUnknownName, absl::StrFormat("there is no sequence %d", number));
  }
  // Bytes of a token in one of `states`.
  int64_t RowBytes(size_t state) const { return static_cast<int64_t>(states[state].size()) / (pool.size() * kBlock); }

  std::optional<int> Free() const {
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (!sequences[i].live) return static_cast<int>(i);
    }
    return std::nullopt;
  }
  // Blocks that `count` more tokens of a sequence take: new ones, and copies of those it shares.
  int64_t BlocksFor(const Sequence& sequence, int64_t count) const {
    const int64_t all = (sequence.length + count + kBlock - 1) / kBlock,
                  own = static_cast<int64_t>(sequence.blocks.size());
    const bool shared = sequence.length % kBlock != 0 && pool.IsShared(sequence.blocks[sequence.length / kBlock]);
    return std::max<int64_t>(0, all - own) + (shared ? 1 : 0);
  }
  // The row of the caches for the next token of a sequence. Precondition: the pool has what BlocksFor said.
  int64_t NextRow(Sequence& sequence) {
    const size_t at = static_cast<size_t>(sequence.length / kBlock);
    if (at == sequence.blocks.size()) {
      sequence.blocks.push_back(pool.Take());
    } else if (pool.IsShared(sequence.blocks[at])) {
      const int copy = pool.Take();
      for (size_t s = 0; s < states.size(); ++s) {
        const int64_t bytes = kBlock * RowBytes(s);
        std::memcpy(states[s].data() + copy * bytes, states[s].data() + sequence.blocks[at] * bytes, bytes);
      }
      pool.Give(sequence.blocks[at]);
      sequence.blocks[at] = copy;
    }
    return sequence.blocks[at] * kBlock + sequence.length % kBlock;
  }
  void Cut(Sequence& sequence, int64_t length) {
    while (static_cast<int64_t>(sequence.blocks.size()) * kBlock >= length + kBlock) {
      pool.Give(sequence.blocks.back());
      sequence.blocks.pop_back();
    }
    sequence.length = length;
  }

  std::optional<Error> Check(std::span<const SequenceStep> steps);
  void Append(Rows& rows, const SequenceStep& step, size_t which, int64_t from, int64_t count);
  // Of the ids of each step, `done` have been taken: how many go into the next run.
  std::vector<int64_t> Portions(std::span<const SequenceStep> steps, const std::vector<int64_t>& done) const;
  Status Run(Rows& rows, std::vector<std::vector<float>>& logits);
};

std::optional<Error> Sequences::State::Check(std::span<const SequenceStep> steps) {
  std::set<int> seen;
  int64_t blocks = 0;
  for (const SequenceStep& step : steps) {
    const Sequence* sequence = Find(step.sequence);
    if (sequence == nullptr) return Unknown(step.sequence);
    if (!seen.insert(step.sequence).second)
      return MadeError(ErrorCode::kInvalid, absl::StrFormat("sequence %d occurs twice in a step", step.sequence));
    if (step.ids.empty())
      return MadeError(ErrorCode::kInvalid, absl::StrFormat("no tokens for sequence %d", step.sequence));
    for (const int32_t id : step.ids) {
      if (id < 0 || id >= vocabulary)
        return MadeError(ErrorCode::kInvalid,
                         absl::StrFormat("token id %d is out of range: the vocabulary has %d", id, vocabulary));
    }
    const int64_t count = static_cast<int64_t>(step.ids.size());
    if (sequence->length + count > context)
      return MadeError(ErrorCode::kOutOfRange, absl::StrFormat("%d tokens at position %d of sequence %d do not fit the "
                                                               "context of %d",
                                                               count, sequence->length, step.sequence, context));
    blocks += BlocksFor(*sequence, count);
  }
  if (blocks > pool.left())
    return MadeError(ErrorCode::kResource,
                     absl::StrFormat("%d blocks of %d tokens are wanted, %d are left", blocks, kBlock, pool.left()));
  return std::nullopt;
}

void Sequences::State::Append(Rows& rows, const SequenceStep& step, size_t which, int64_t from, int64_t count) {
  Sequence& sequence = sequences[step.sequence];
  for (int64_t i = from; i < from + count; ++i) {
    rows.index.push_back(static_cast<int32_t>(NextRow(sequence)));
    rows.ids.push_back(step.ids[i]);
    rows.positions.push_back(static_cast<int32_t>(sequence.length++));
  }
  rows.starts.push_back(static_cast<int32_t>(rows.ids.size()));
  rows.lengths.push_back(static_cast<int32_t>(sequence.length));
  const size_t first = rows.blocks.size();
  rows.blocks.insert(rows.blocks.end(), sequence.blocks.begin(), sequence.blocks.end());
  rows.blocks.resize(first + row_blocks, 0);
  if (!step.logits || from + count != static_cast<int64_t>(step.ids.size())) return;
  rows.rows.push_back(static_cast<int32_t>(rows.ids.size()) - 1);
  rows.wants.push_back(which);
}

std::vector<int64_t> Sequences::State::Portions(std::span<const SequenceStep> steps,
                                                const std::vector<int64_t>& done) const {
  std::vector<int64_t> portions(steps.size(), 0);
  const int64_t few = codegen::kFewRows;
  int64_t left = models::kMaxSequence;
  // Single tokens first: prompts fill what is left of the rows.
  for (const bool single : {true, false}) {
    for (size_t i = 0; i < steps.size() && left > 0; ++i) {
      const int64_t all = static_cast<int64_t>(steps[i].ids.size()), rest = all - done[i];
      if (rest == 0 || (all <= few) != single) continue;
      if (invariant && single) {
        // As a Session would compute them: a few rows together, the rows of a prompt by themselves.
        if (models::kMaxSequence - left + rest > few) continue;
        portions[i] = rest;
        left -= rest;
      } else if (invariant) {
        if (left < models::kMaxSequence) continue;
        portions[i] = compiler::ChunkOf(all, rest, true);
        left = 0;
      } else {
        portions[i] = std::min(rest, left);
        left -= portions[i];
      }
    }
  }
  return portions;
}

Status Sequences::State::Run(Rows& rows, std::vector<std::vector<float>>& logits) {
  const bool none = rows.rows.empty();
  if (none) rows.rows.push_back(0);  // a run has logits of something
  const auto bytes = [](const std::vector<int32_t>& values) {
    return ConstBytes{values.data(), static_cast<int64_t>(values.size() * sizeof(int32_t))};
  };
  const std::pair<const char*, const std::vector<int32_t>*> given[] = {
      {models::kIdsInput, &rows.ids},         {models::kPositionsInput, &rows.positions},
      {models::kIndexInput, &rows.index},     {models::kStartsInput, &rows.starts},
      {models::kLengthsInput, &rows.lengths}, {models::kBlocksInput, &rows.blocks},
      {models::kRowsInput, &rows.rows}};
  const Executable& executable = *model->executable;
  inputs.assign(executable.signature().inputs.size(), {});
  for (const auto& [name, values] : given) {
    // An architecture without positions of its own has no such input left.
    const StatusOr<int> at = executable.InputIndex(name);
    if (at.ok()) inputs[*at] = bytes(*values);
  }
  std::vector<float> out(rows.rows.size() * vocabulary);
  const MutableBytes output{out.data(), static_cast<int64_t>(out.size() * sizeof(float))};
  QUERN_RETURN_IF_ERROR(model->executable->Run(inputs, {&output, 1},
                                               {{models::kSequenceSymbol, static_cast<int64_t>(rows.ids.size())},
                                                {models::kSequencesSymbol, static_cast<int64_t>(rows.lengths.size())},
                                                {models::kLogitsSymbol, static_cast<int64_t>(rows.rows.size())}}));
  ++steps;
  for (size_t i = 0; i < rows.wants.size(); ++i) {
    const auto first = out.begin() + static_cast<int64_t>(i) * vocabulary;
    logits[rows.wants[i]].assign(first, first + vocabulary);
  }
  return absl::OkStatus();
}

Sequences::Sequences(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sequences::Sequences(Sequences&&) noexcept = default;
Sequences& Sequences::operator=(Sequences&&) noexcept = default;
Sequences::~Sequences() = default;

Result<Sequences> Sequences::Open(const std::string& path, const Options& options, const SequenceOptions& sequences) {
  auto open = [&]() -> StatusOr<std::unique_ptr<State>> {
    if (sequences.most < 1 || sequences.most > kMostSequences) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%d sequences are not in 1..%d", sequences.most, kMostSequences));
    }
    if (sequences.tokens < 0) return absl::InvalidArgumentError("a room for fewer than 0 tokens");
    // Blocks are counted by the context, which the file may have to say.
    QUERN_ASSIGN(const compiler::OpenedModel plain, compiler::OpenModel(path, options));
    if (plain.spec.encoder) {
      return absl::UnimplementedError(absl::StrFormat("%s: the architecture %s is an encoder, without a next token",
                                                      path, plain.spec.architecture));
    }
    auto state = std::make_unique<State>();
    state->context = plain.spec.context;
    state->row_blocks = (state->context + kBlock - 1) / kBlock;
    const int64_t tokens = sequences.tokens > 0 ? sequences.tokens : sequences.most * state->row_blocks * kBlock;
    const int64_t blocks = std::max<int64_t>(1, (tokens + kBlock - 1) / kBlock);
    QUERN_ASSIGN(compiler::OpenedModel opened,
                 compiler::OpenModel(path, options, {.most = sequences.most, .block = kBlock, .blocks = blocks}));
    const int64_t few = codegen::kFewRows, most = models::kMaxSequence;
    const std::vector<SymbolRanges> guards = {{{models::kSequenceSymbol, {1, few}}},
                                              {{models::kSequenceSymbol, {few + 1, most}}}};
    QUERN_ASSIGN(state->model, compiler::RunModel(std::move(opened), options, guards));
    state->vocabulary = state->model->opened.spec.vocabulary;
    state->invariant = options.invariant;
    state->pool = compiler::BlockPool(blocks);
    state->sequences.resize(sequences.most);
    for (const Port& port : state->model->executable->signature().states) {
      QUERN_ASSIGN(const std::span<uint8_t> bytes, state->model->executable->State(port.name));
      state->states.push_back(bytes);
    }
    return state;
  };
  StatusOr<std::unique_ptr<State>> state = open();
  if (!state.ok()) return Failed<Sequences>(state.status());
  return Sequences(*std::move(state));
}

int64_t Sequences::vocabulary() const { return state_->vocabulary; }
int64_t Sequences::context() const { return state_->context; }
int64_t Sequences::room() const { return state_->pool.left() * kBlock; }
int64_t Sequences::steps() const { return state_->steps; }

Result<Tokenizer> Sequences::tokenizer() const {
  if (!state_->tokenizer) {
    const auto made = compiler::TokenizerOf(state_->model->opened.file, state_->vocabulary);
    state_->tokenizer = made.ok() ? Tokenizer(*made) : Failed<Tokenizer>(made.status());
  }
  return *state_->tokenizer;
}

Result<int> Sequences::Add() {
  const std::optional<int> number = state_->Free();
  if (!number) {
    return Result<int>::Failed(
        MadeError(ErrorCode::kResource, absl::StrFormat("there are %d sequences already", state_->sequences.size())));
  }
  state_->sequences[*number].live = true;
  return *number;
}

Result<int> Sequences::Fork(int sequence, int64_t tokens) {
  const State::Sequence* from = state_->Find(sequence);
  if (from == nullptr) return Result<int>::Failed(State::Unknown(sequence));
  if (tokens < 0 || tokens > from->length) {
    return Result<int>::Failed(MadeError(
        ErrorCode::kOutOfRange, absl::StrFormat("sequence %d has %d tokens, not %d", sequence, from->length, tokens)));
  }
  Result<int> added = Add();
  if (!added.ok()) return added;
  State::Sequence& to = state_->sequences[*added];
  to.length = tokens;
  to.blocks.assign(from->blocks.begin(), from->blocks.begin() + (tokens + kBlock - 1) / kBlock);
  for (const int block : to.blocks) state_->pool.Share(block);
  return added;
}

Result<void> Sequences::Truncate(int sequence, int64_t tokens) {
  State::Sequence* found = state_->Find(sequence);
  if (found == nullptr) return Result<void>::Failed(State::Unknown(sequence));
  if (tokens < 0 || tokens > found->length) {
    return Result<void>::Failed(MadeError(
        ErrorCode::kOutOfRange, absl::StrFormat("sequence %d has %d tokens, not %d", sequence, found->length, tokens)));
  }
  state_->Cut(*found, tokens);
  return {};
}

Result<void> Sequences::Remove(int sequence) {
  Result<void> cut = Truncate(sequence, 0);
  if (cut.ok()) state_->sequences[sequence].live = false;
  return cut;
}

int64_t Sequences::length(int sequence) const {
  const State::Sequence* found = state_->Find(sequence);
  return found == nullptr ? -1 : found->length;
}

Result<std::vector<std::vector<float>>> Sequences::Step(std::span<const SequenceStep> steps) {
  using Logits = Result<std::vector<std::vector<float>>>;
  if (std::optional<Error> wrong = state_->Check(steps)) return Logits::Failed(*std::move(wrong));
  std::vector<std::vector<float>> logits(steps.size());
  std::vector<int64_t> done(steps.size(), 0);
  while (true) {
    const std::vector<int64_t> portions = state_->Portions(steps, done);
    State::Rows rows;
    std::vector<int64_t> before;
    for (size_t i = 0; i < steps.size(); ++i) {
      before.push_back(state_->sequences[steps[i].sequence].length);
      if (portions[i] == 0) continue;
      state_->Append(rows, steps[i], i, done[i], portions[i]);
      done[i] += portions[i];
    }
    if (rows.ids.empty()) return logits;
    if (const Status ran = state_->Run(rows, logits); !ran.ok()) {
      for (size_t i = 0; i < steps.size(); ++i) state_->Cut(state_->sequences[steps[i].sequence], before[i]);
      return Failed<std::vector<std::vector<float>>>(ran);
    }
  }
}

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
    for (int64_t t = 0; t < found->length; t += kBlock) {
      const int64_t at = found->blocks[t / kBlock] * kBlock;
      put(state_->states[s].data() + at * row, std::min(kBlock, found->length - t) * row);
    }
  }
  return bytes;
}

Result<int> Sequences::Load(std::span<const uint8_t> bytes) {
  const auto failed = [](ErrorCode code, std::string text) { return Result<int>::Failed(MadeError(code, text)); };
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
  if ((length + kBlock - 1) / kBlock > state_->pool.left()) return failed(ErrorCode::kResource, "there is no room");
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
  for (int64_t t = 0; t < length; t += kBlock) sequence.blocks.push_back(state_->pool.Take());
  sequence.length = length;
  at = start;
  for (size_t s = 0; s < state_->states.size(); ++s) {
    const int64_t row = state_->RowBytes(s);
    at += sizeof(row);
    for (int64_t t = 0; t < length; t += kBlock) {
      const int64_t count = std::min(kBlock, length - t) * row;
      std::memcpy(state_->states[s].data() + sequence.blocks[t / kBlock] * kBlock * row, bytes.data() + at, count);
      at += count;
    }
  }
  return added;
}

}  // namespace quern
