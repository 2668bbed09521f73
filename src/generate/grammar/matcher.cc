#include "generate/grammar/matcher.h"

#include <algorithm>

namespace quern::grammar {
namespace {

constexpr int kStackBits = 28, kByteBits = 16;
constexpr uint64_t kStackMask = (uint64_t{1} << kStackBits) - 1, kByteMask = (uint64_t{1} << kByteBits) - 1;

uint64_t PositionOf(int32_t node, uint16_t byte_state, int32_t stack) {
  return (static_cast<uint64_t>(node) << kByteBits | byte_state) << kStackBits | static_cast<uint64_t>(stack);
}

Status Exhausted(const char* what, int64_t most) {
  return absl::ResourceExhaustedError(absl::StrFormat("the grammar needs more than %d %s", most, what));
}

}  // namespace

size_t Matcher::HashPositions::operator()(const std::vector<Position>& positions) const {
  uint64_t hash = positions.size();
  for (const Position position : positions) {
    hash = (hash ^ position) * 0x9E3779B97F4A7C15;  // a step of Fibonacci hashing
    hash ^= hash >> 32;
  }
  return hash;
}

Matcher::Matcher(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  frames_.push_back({0, 0, 0});  // below the root
  rows_.emplace_back().fill(kDead);
  positions_.emplace_back();
  accepts_.push_back(false);
}

Status Matcher::Step() {
  return ++steps_ > kMostSteps ? Exhausted("steps for one token", kMostSteps) : absl::OkStatus();
}

StatusOr<int32_t> Matcher::Push(int32_t node, int32_t below) {
  const auto [found, added] = frame_ids_.emplace(static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(below),
                                                 static_cast<int32_t>(frames_.size()));
  if (!added) return found->second;
  const int32_t depth = frames_[static_cast<size_t>(below)].depth + 1;
  if (depth > kMostDepth) return Exhausted("rules within each other", kMostDepth);
  if (frames_.size() > kStackMask) return Exhausted("stacks", static_cast<int64_t>(kStackMask));
  frames_.push_back({node, below, depth});
  return found->second;
}

Status Matcher::Reach(int32_t node, int32_t stack) {
  work_.assign(1, {node, stack});
  while (!work_.empty()) {
    const auto [at, above] = work_.back();
    work_.pop_back();
    QUERN_RETURN_IF_ERROR(Step());
    if (!seen_.emplace(static_cast<uint64_t>(at) << 32 | static_cast<uint32_t>(above), true).second) continue;
    const Node& here = grammar_->node(at);
    switch (here.kind) {
      case Node::Kind::kChars: found_.push_back(PositionOf(at, static_cast<uint16_t>(here.value), above)); break;
      case Node::Kind::kFork:
        work_.emplace_back(here.next, above);
        work_.emplace_back(here.value, above);
        break;
      case Node::Kind::kCall: {
        int32_t inner = above;
        // Behind the last call of a rule there is nothing to come back to: lists by recursion stay flat.
        if (grammar_->node(here.next).kind != Node::Kind::kEnd) {
          QUERN_ASSIGN(inner, Push(here.next, above));
        }
        work_.emplace_back(grammar_->begin(here.value), inner);
        break;
      }
      case Node::Kind::kEnd:
        if (above == 0)
          found_.push_back(PositionOf(at, 0, 0));  // the end of a text; nothing follows
        else
          work_.emplace_back(frames_[static_cast<size_t>(above)].node, frames_[static_cast<size_t>(above)].below);
        break;
    }
    if (found_.size() > kMostStacks) return Exhausted("stacks at once", static_cast<int64_t>(kMostStacks));
  }
  return absl::OkStatus();
}

StatusOr<Matcher::State> Matcher::Intern() {
  if (found_.empty()) return kDead;
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  const auto known = ids_.find(found_);
  if (known != ids_.end()) return known->second;
  if (rows_.size() == kMostStates) return Exhausted("states for one token", static_cast<int64_t>(kMostStates));
  const auto state = static_cast<State>(rows_.size());
  rows_.emplace_back().fill(kUnknown);
  kept_ += found_.size();
  // The end sorts first: it is node 0, of the last stack.
  accepts_.push_back(found_[0] == PositionOf(0, 0, 0));
  positions_.push_back(found_);
  ids_.emplace(found_, state);
  return state;
}

StatusOr<Matcher::State> Matcher::Begin() {
  steps_ = 0;
  found_.clear();
  seen_.clear();
  QUERN_RETURN_IF_ERROR(Reach(grammar_->begin(grammar_->root()), 0));
  return Intern();
}

StatusOr<Matcher::State> Matcher::Find(State state, uint8_t byte) {
  found_.clear();
  if (seen_.bucket_count() > 65536) seen_ = {};  // clearing costs as much as it ever held
  seen_.clear();
  for (const Position position : positions_[static_cast<size_t>(state)]) {
    QUERN_RETURN_IF_ERROR(Step());
    const auto stack = static_cast<int32_t>(position & kStackMask);
    const auto within = static_cast<uint16_t>(position >> kStackBits & kByteMask);
    const auto node = static_cast<int32_t>(position >> (kStackBits + kByteBits));
    const uint16_t next = grammar_->bytes().Next(within, byte);
    if (next == ByteStates::kDead) continue;
    if (next == ByteStates::kMatched)
      QUERN_RETURN_IF_ERROR(Reach(grammar_->node(node).next, stack));
    else
      found_.push_back(PositionOf(node, next, stack));
  }
  QUERN_ASSIGN(const State result, Intern());
  rows_[static_cast<size_t>(state)][byte] = result;
  return result;
}

bool Matcher::BeginToken(State& state) {
  steps_ = 0;
  constexpr size_t kMostKept = size_t{1} << 20;
  if (rows_.size() < kMostStates / 2 && kept_ < kMostKept && frames_.size() < kMostKept) return false;
  Matcher fresh(grammar_);
  // Frames stand above those below them: one pass over them, lowest numbers first.
  std::vector<bool> used(frames_.size());
  const std::vector<Position> positions = positions_[static_cast<size_t>(state)];
  for (const Position position : positions) {
    for (auto frame = static_cast<size_t>(position & kStackMask); frame > 0 && !used[frame];
         frame = static_cast<size_t>(frames_[frame].below)) {
      used[frame] = true;
    }
  }
  std::vector<int32_t> renamed(frames_.size());
  for (size_t i = 1; i < frames_.size(); ++i) {
    if (!used[i]) continue;
    const int32_t below = renamed[static_cast<size_t>(frames_[i].below)];
    renamed[i] = static_cast<int32_t>(fresh.frames_.size());
    fresh.frame_ids_.emplace(static_cast<uint64_t>(frames_[i].node) << 32 | static_cast<uint32_t>(below), renamed[i]);
    fresh.frames_.push_back({frames_[i].node, below, frames_[i].depth});
  }
  for (const Position position : positions)
    fresh.found_.push_back((position & ~kStackMask) | static_cast<uint64_t>(renamed[position & kStackMask]));
  if (StatusOr<State> kept = fresh.Intern(); kept.ok()) state = *kept;  // one state fits
  *this = std::move(fresh);
  return true;
}

}  // namespace quern::grammar
