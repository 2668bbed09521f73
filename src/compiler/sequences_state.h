// What Sequences are made of: the model, the blocks of its caches, the places of its states, and who has which.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/block_pool.h"
#include "compiler/model.h"
#include "compiler/public_error.h"
#include "quern/sequences.h"

namespace quern {

struct Sequences::State {
  static constexpr int64_t kBlock = 32;  // tokens

  struct Sequence {
    bool live = false;
    int64_t length = 0;
    std::vector<int> blocks;
    int place = 0;  // of what its tokens carry on; 0: zeros, before the first
  };
  // Rows of one run, as the graph's inputs want them.
  struct Rows {
    std::vector<int32_t> ids, positions, index, starts = {0}, lengths, blocks, rows, before, after;
    std::vector<size_t> wants;   // of each logits row: the step that it is of
    std::vector<int> sequences;  // of the run
  };
  // Memory of one of the model's states.
  struct Held {
    std::span<uint8_t> bytes;
    compiler::KeptRows rows;
    uint8_t* at(int64_t row) const { return bytes.data() + row * rows.bytes; }
  };

  std::unique_ptr<compiler::RunningModel> model;
  std::optional<Result<Tokenizer>> tokenizer;
  compiler::BlockPool pool{0};
  std::vector<Sequence> sequences;
  // Place n + 1 is number n: a run writes the states of its sequences to new ones, so that until it has ended well, and
  // for who shares them, the old ones are what they were.
  compiler::BlockPool places{0};
  std::vector<Held> states;  // of each layer: keys, then values, or what is carried on
  std::vector<ConstBytes> inputs;
  int64_t context = 0, vocabulary = 0, row_blocks = 0, steps = 0;
  bool invariant = false;

  Sequence* Find(int number) {
    return number >= 0 && number < static_cast<int>(sequences.size()) && sequences[number].live ? &sequences[number]
                                                                                                : nullptr;
  }
  static Error Unknown(int number) {
    return compiler::ErrorOf(ErrorCode::kUnknownName, absl::StrFormat("there is no sequence %d", number));
  }
  bool carries() const { return model->opened.spec.carries(); }
  // Why a sequence cannot be cut to `tokens`.
  std::optional<Error> CheckCut(int number, int64_t tokens) const;

  std::vector<compiler::KeptRows> RowsOfStates() const {
    std::vector<compiler::KeptRows> rows;
    for (const Held& state : states) rows.push_back(state.rows);
    return rows;
  }
  // Calls visit(where, from, bytes) for each part of a sequence's rows of a state that lies in one piece: bytes from
  // `from` on of these rows.
  template <typename Visit>
  void EachPiece(const Sequence& sequence, const Held& state, Visit visit) const {
    const int64_t row = state.rows.bytes;
    if (state.rows.carried) {
      if (sequence.length > 0) visit(state.at(sequence.place), int64_t{0}, row);
      return;
    }
    for (int64_t t = 0; t < sequence.length; t += kBlock)
      visit(state.at(sequence.blocks[t / kBlock] * kBlock), t * row, std::min(kBlock, sequence.length - t) * row);
  }

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
      for (const Held& state : states) {
        if (state.rows.carried) continue;
        std::memcpy(state.at(copy * kBlock), state.at(sequence.blocks[at] * kBlock), kBlock * state.rows.bytes);
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
    if (length == 0) Leave(std::exchange(sequence.place, 0));
  }
  void Leave(int place) {
    if (place > 0) places.Give(place - 1);
  }

  std::optional<Error> Check(std::span<const SequenceStep> steps);
  void Append(Rows& rows, const SequenceStep& step, size_t which, int64_t from, int64_t count);
  // Of the ids of each step, `done` have been taken: how many go into the next run.
  std::vector<int64_t> Portions(std::span<const SequenceStep> steps, const std::vector<int64_t>& done) const;
  // The same where a run has equally many rows of each of its sequences.
  std::vector<int64_t> EqualPortions(std::span<const SequenceStep> steps, const std::vector<int64_t>& done) const;
  Status Run(Rows& rows, std::vector<std::vector<float>>& logits);
  // The sequences of a run have the states that it made, or, where it failed, those they had.
  void Settle(const Rows& rows, bool ran);
};

}  // namespace quern
