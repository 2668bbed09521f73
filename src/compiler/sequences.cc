// Sequences of the public interface: blocks of keys and values, states, and runs of rows of many sequences.

#include "quern/sequences.h"

#include <algorithm>
#include <optional>
#include <set>

#include "codegen/matmul_plan.h"
#include "compiler/public_error.h"
#include "compiler/sequences_state.h"

namespace quern {
namespace {

constexpr int kMostSequences = 1024;

template <typename T>
Result<T> Failed(const Status& status) {
  return Result<T>::Failed(compiler::ErrorOf(status));
}

// The guards of a step: few rows or more; where states are carried, of one row of each sequence or of one sequence.
// With `invariant` those of a session, whose bits a row has.
std::vector<SymbolRanges> GuardsOf(bool carries, bool invariant) {
  const int64_t few = codegen::kFewRows, more = invariant ? few : codegen::kMostFewRows;
  const SymbolRange one = {1, 1};
  std::vector<SymbolRanges> guards;
  for (const SymbolRange& rows : {SymbolRange{1, few}, {few + 1, more}, {more + 1, models::kMaxSequence}}) {
    if (rows.low > rows.high) continue;
    if (!carries) {
      guards.push_back({{models::kSequenceSymbol, rows}});
      continue;
    }
    guards.push_back({{models::kSequenceSymbol, one}, {models::kSequencesSymbol, rows}});
    guards.push_back({{models::kSequenceSymbol, rows}, {models::kSequencesSymbol, one}});
  }
  return guards;
}

}  // namespace

std::optional<Error> Sequences::State::Check(std::span<const SequenceStep> steps) {
  std::set<int> seen;
  int64_t blocks = 0;
  for (const SequenceStep& step : steps) {
    const Sequence* sequence = Find(step.sequence);
    if (sequence == nullptr) return Unknown(step.sequence);
    if (!seen.insert(step.sequence).second)
      return compiler::ErrorOf(ErrorCode::kInvalid,
                               absl::StrFormat("sequence %d occurs twice in a step", step.sequence));
    if (step.ids.empty())
      return compiler::ErrorOf(ErrorCode::kInvalid, absl::StrFormat("no tokens for sequence %d", step.sequence));
    for (const int32_t id : step.ids) {
      if (id < 0 || id >= vocabulary)
        return compiler::ErrorOf(ErrorCode::kInvalid,
                                 absl::StrFormat("token id %d is out of range: the vocabulary has %d", id, vocabulary));
    }
    const int64_t count = static_cast<int64_t>(step.ids.size());
    if (sequence->length + count > context)
      return compiler::ErrorOf(ErrorCode::kOutOfRange,
                               absl::StrFormat("%d tokens at position %d of sequence %d do not fit the "
                                               "context of %d",
                                               count, sequence->length, step.sequence, context));
    blocks += BlocksFor(*sequence, count);
  }
  if (blocks > pool.left())
    return compiler::ErrorOf(ErrorCode::kResource, absl::StrFormat("%d blocks of %d tokens are wanted, %d are left",
                                                                   blocks, kBlock, pool.left()));
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
  rows.sequences.push_back(step.sequence);
  if (carries()) {
    rows.before.push_back(sequence.place);
    rows.after.push_back(places.Take() + 1);
  }
  if (!step.logits || from + count != static_cast<int64_t>(step.ids.size())) return;
  rows.rows.push_back(static_cast<int32_t>(rows.ids.size()) - 1);
  rows.wants.push_back(which);
}

std::vector<int64_t> Sequences::State::EqualPortions(std::span<const SequenceStep> steps,
                                                     const std::vector<int64_t>& done) const {
  std::vector<int64_t> portions(steps.size(), 0);
  const int64_t most = invariant ? codegen::kFewRows : models::kMaxSequence;
  int64_t singles = 0;
  for (size_t i = 0; i < steps.size() && singles < most; ++i) {
    if (static_cast<int64_t>(steps[i].ids.size()) - done[i] != 1) continue;
    portions[i] = 1;
    ++singles;
  }
  for (size_t i = 0; i < steps.size() && singles == 0; ++i) {
    const int64_t all = static_cast<int64_t>(steps[i].ids.size()), rest = all - done[i];
    if (rest == 0) continue;
    portions[i] = compiler::ChunkOf(all, rest, invariant);
    break;
  }
  return portions;
}

std::vector<int64_t> Sequences::State::Portions(std::span<const SequenceStep> steps,
                                                const std::vector<int64_t>& done) const {
  if (carries()) return EqualPortions(steps, done);
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
      {models::kRowsInput, &rows.rows},       {models::kStatesInput, &rows.before},
      {models::kNextStatesInput, &rows.after}};
  const Executable& executable = *model->made.executable;
  inputs.assign(executable.signature().inputs.size(), {});
  for (const auto& [name, values] : given) {
    // An architecture without positions, or states, of its own has no such input left.
    const StatusOr<int> at = executable.InputIndex(name);
    if (at.ok()) inputs[*at] = bytes(*values);
  }
  std::vector<float> out(rows.rows.size() * vocabulary);
  const MutableBytes output{out.data(), static_cast<int64_t>(out.size() * sizeof(float))};
  const int64_t sequences_in = static_cast<int64_t>(rows.lengths.size()), all = static_cast<int64_t>(rows.ids.size());
  QUERN_RETURN_IF_ERROR(model->made.executable->Run(inputs, {&output, 1},
                                                    {{models::kSequenceSymbol, carries() ? all / sequences_in : all},
                                                     {models::kSequencesSymbol, sequences_in},
                                                     {models::kLogitsSymbol, static_cast<int64_t>(rows.rows.size())}}));
  ++steps;
  for (size_t i = 0; i < rows.wants.size(); ++i) {
    const auto first = out.begin() + static_cast<int64_t>(i) * vocabulary;
    logits[rows.wants[i]].assign(first, first + vocabulary);
  }
  return absl::OkStatus();
}

void Sequences::State::Settle(const Rows& rows, bool ran) {
  for (size_t i = 0; i < rows.after.size(); ++i)
    Leave(ran ? std::exchange(sequences[rows.sequences[i]].place, rows.after[i]) : rows.after[i]);
}

std::optional<Error> Sequences::State::CheckCut(int number, int64_t tokens) const {
  const int64_t length = sequences[number].length;
  if (tokens < 0 || tokens > length)
    return compiler::ErrorOf(ErrorCode::kOutOfRange,
                             absl::StrFormat("sequence %d has %d tokens, not %d", number, length, tokens));
  if (carries() && tokens != 0 && tokens != length)
    return compiler::ErrorOf(ErrorCode::kUnsupported,
                             absl::StrFormat("this model's states go on with every token: of sequence %d there is the "
                                             "one after all %d and that before the first, not one after %d",
                                             number, length, tokens));
  return std::nullopt;
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
    state->row_blocks = (state->context + State::kBlock - 1) / State::kBlock;
    const int64_t tokens = sequences.tokens > 0 ? sequences.tokens : sequences.most * state->row_blocks * State::kBlock;
    const int64_t blocks = std::max<int64_t>(1, (tokens + State::kBlock - 1) / State::kBlock);
    // Each sequence may have a state, and the next one while a run makes it.
    const int64_t places = 2 * sequences.most;
    QUERN_ASSIGN(
        compiler::OpenedModel opened,
        compiler::OpenModel(path, options,
                            {.most = sequences.most, .block = State::kBlock, .blocks = blocks, .states = places + 1}));
    const std::vector<SymbolRanges> guards = GuardsOf(opened.spec.carries(), options.invariant);
    QUERN_ASSIGN(state->model, compiler::RunModel(std::move(opened), options, guards));
    state->vocabulary = state->model->opened.spec.vocabulary;
    state->invariant = options.invariant;
    state->pool = compiler::BlockPool(blocks);
    state->places = compiler::BlockPool(places);
    state->sequences.resize(sequences.most);
    for (const Port& port : state->model->made.executable->signature().states) {
      QUERN_ASSIGN(const std::span<uint8_t> bytes, state->model->made.executable->State(port.name));
      state->states.push_back({bytes, compiler::RowsOf(state->model->opened.spec, port, bytes)});
    }
    return state;
  };
  StatusOr<std::unique_ptr<State>> state = open();
  if (!state.ok()) return Failed<Sequences>(state.status());
  return Sequences(*std::move(state));
}

int64_t Sequences::vocabulary() const { return state_->vocabulary; }
int64_t Sequences::context() const { return state_->context; }
int64_t Sequences::room() const { return state_->pool.left() * State::kBlock; }
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
    return Result<int>::Failed(compiler::ErrorOf(
        ErrorCode::kResource, absl::StrFormat("there are %d sequences already", state_->sequences.size())));
  }
  state_->sequences[*number].live = true;
  return *number;
}

bool Sequences::rewinds() const { return !state_->carries(); }

Result<int> Sequences::Fork(int sequence, int64_t tokens) {
  const State::Sequence* from = state_->Find(sequence);
  if (from == nullptr) return Result<int>::Failed(State::Unknown(sequence));
  if (std::optional<Error> wrong = state_->CheckCut(sequence, tokens)) return Result<int>::Failed(*std::move(wrong));
  Result<int> added = Add();
  if (!added.ok()) return added;
  State::Sequence& to = state_->sequences[*added];
  to.length = tokens;
  to.blocks.assign(from->blocks.begin(), from->blocks.begin() + (tokens + State::kBlock - 1) / State::kBlock);
  for (const int block : to.blocks) state_->pool.Share(block);
  if (from->place > 0 && tokens > 0) state_->places.Share((to.place = from->place) - 1);
  return added;
}

Result<void> Sequences::Truncate(int sequence, int64_t tokens) {
  State::Sequence* found = state_->Find(sequence);
  if (found == nullptr) return Result<void>::Failed(State::Unknown(sequence));
  if (std::optional<Error> wrong = state_->CheckCut(sequence, tokens)) return Result<void>::Failed(*std::move(wrong));
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
    const Status ran = state_->Run(rows, logits);
    state_->Settle(rows, ran.ok());
    if (!ran.ok()) {
      for (size_t i = 0; i < steps.size(); ++i) state_->Cut(state_->sequences[steps[i].sequence], before[i]);
      return Failed<std::vector<std::vector<float>>>(ran);
    }
  }
}

}  // namespace quern
