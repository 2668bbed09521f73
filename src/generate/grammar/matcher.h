// Which texts go on by a grammar, byte by byte.
//
// A state is the set of stacks that what was read so far may have led to: each a place in a rule, maybe within a
// character, and the places behind the calls around it. States are made when they are first met and then are numbers
// with a table of bytes, so that going where one has been costs a look-up. Equal ends of stacks are shared.
//
//   root ::= "a" root "b" | "c"     "" -> {at 'a' or 'c'} -"a"-> {the same, above "b"} -"c"-> {at 'b'} -"b"-> {end}
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "generate/grammar/grammar.h"

namespace quern::grammar {

// What an ambiguous, deep or wide grammar may cost.
inline constexpr size_t kMostStacks = 4096;              // of one state
inline constexpr int32_t kMostDepth = 4096;              // of a stack: a level of nesting is one to three
inline constexpr int64_t kMostSteps = int64_t{1} << 20;  // for one token, of work that is new
inline constexpr size_t kMostStates = size_t{1} << 15;

// Not thread-safe.
class Matcher {
 public:
  using State = int32_t;
  static constexpr State kDead = 0;  // no text of the grammar begins so

  explicit Matcher(std::shared_ptr<const Grammar> grammar);

  // Before the first byte; also allows kMostSteps anew, as BeginToken does. Errors: those of Next.
  StatusOr<State> Begin();
  // The state behind one more byte, of one that Begin, Next or BeginToken gave. Error: kResourceExhausted, the limit.
  StatusOr<State> Next(State state, uint8_t byte) {
    const State known = Known(state, byte);
    return known == kUnknown ? Find(state, byte) : StatusOr<State>(known);
  }
  // The same where it is known, else kUnknown.
  State Known(State state, uint8_t byte) const { return rows_[static_cast<size_t>(state)][byte]; }
  static constexpr State kUnknown = -1;
  // Whether what was read is a whole text of the grammar.
  bool Accepts(State state) const { return accepts_[static_cast<size_t>(state)]; }

  // Allows kMostSteps more. Where there are many states, all but `state` are forgotten, and it gets another number:
  // true, and what was kept by number is void.
  bool BeginToken(State& state);

 private:
  // A node, the state within its character, a stack: 20, 16 and 28 bits.
  using Position = uint64_t;
  struct Frame {
    int32_t node, below, depth;  // where a call goes on; the frame below, 0 the last
  };

  StatusOr<State> Find(State state, uint8_t byte);
  // Adds to found_ every place where a character is awaited from `node` on, above `stack`.
  Status Reach(int32_t node, int32_t stack);
  StatusOr<int32_t> Push(int32_t node, int32_t below);
  StatusOr<State> Intern();
  Status Step();

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, int32_t> frame_ids_;

  std::vector<std::array<State, 256>> rows_;
  std::vector<std::vector<Position>> positions_;
  std::vector<bool> accepts_;
  struct HashPositions {
    size_t operator()(const std::vector<Position>& positions) const;
  };
  std::unordered_map<std::vector<Position>, State, HashPositions> ids_;
  size_t kept_ = 0;  // positions of all states
  int64_t steps_ = 0;

  std::vector<Position> found_;
  std::unordered_map<uint64_t, bool> seen_;  // nodes above stacks
  std::vector<std::pair<int32_t, int32_t>> work_;
};

}  // namespace quern::grammar
