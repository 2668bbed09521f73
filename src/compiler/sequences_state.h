// What Sequences are made of: the model, the blocks of its caches, and who has which.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
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
    return compiler::ErrorOf(ErrorCode::kUnknownName, absl::StrFormat("there is no sequence %d", number));
  }
  // Bytes of a token in one of `states`.
  int64_t RowBytes(size_t state) const { return static_cast<int64_t>(states[state].size()) / (pool.size() * kBlock); }

  std::vector<int64_t> RowsBytes() const {
    std::vector<int64_t> rows;
    for (size_t s = 0; s < states.size(); ++s) rows.push_back(RowBytes(s));
    return rows;
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

}  // namespace quern
