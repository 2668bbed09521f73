// Arena placement: by hand, and over random lifetimes.
#include "lir/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace quern::lir {
namespace {

constexpr uint32_t kSeed = 7919;

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// At concrete sizes: aligned, inside, and apart from everything that is live at the same time.
void CheckAt(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout, const Binding& binding) {
  ASSERT_EQ(layout.offsets.size(), lifetimes.size());
  const int64_t end = *layout.bytes.Evaluate(binding);
  for (size_t a = 0; a < lifetimes.size(); ++a) {
    const int64_t at = *layout.offsets[a].Evaluate(binding), bytes = *lifetimes[a].bytes.Evaluate(binding);
    EXPECT_EQ(at % 64, 0) << a;
    EXPECT_GE(at, 0) << a;
    EXPECT_LE(at + bytes, end) << a;
    for (size_t b = 0; b < a; ++b) {
      if (!Meet(lifetimes[a], lifetimes[b])) continue;
      const int64_t other = *layout.offsets[b].Evaluate(binding), other_bytes = *lifetimes[b].bytes.Evaluate(binding);
      EXPECT_TRUE(at + bytes <= other || other + other_bytes <= at) << a << " and " << b << " share memory";
    }
  }
}

TEST(Arena, DisjointLifetimesShare) {
  const std::vector<Lifetime> lifetimes = {{0, 1, 1000}, {2, 3, 1000}, {1, 2, 64}};
  const ArenaLayout layout = PlaceArena(lifetimes, {});
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  EXPECT_EQ(layout.bytes, Extent(1024 + 64));
  CheckAt(lifetimes, layout, {});
}

TEST(Arena, BothEndsOfALifetimeCount) {
  const std::vector<Lifetime> lifetimes = {{0, 1, 128}, {1, 2, 128}};  // launch 1 reads one and writes the other
  const ArenaLayout layout = PlaceArena(lifetimes, {});
  EXPECT_EQ(layout.bytes, Extent(256));
}

TEST(Arena, TheSmallestGapThatFits) {
  // Between three long-lived blocks, 512 and then 320 bytes are free during launch 1: a block of 256, or of all of
  // it, takes the second gap.
  for (const int64_t bytes : {256, 320}) {
    const std::vector<Lifetime> lifetimes = {{0, 2, 4096}, {0, 0, 512}, {0, 2, 448},
                                             {0, 0, 320},  {0, 2, 300}, {1, 1, bytes}};
    const ArenaLayout layout = PlaceArena(lifetimes, {});
    EXPECT_EQ(layout.offsets[5], layout.offsets[3]);
    CheckAt(lifetimes, layout, {});
  }
}

TEST(Arena, UnboundedSizesStackAndShareWhatIsProvablyLargeEnough) {
  const Extent s = Extent::Symbol("S");
  const std::vector<Lifetime> lifetimes = {
      {0, 0, s * Extent(64)}, {1, 1, s * Extent(128)}, {0, 1, s * Extent(12)}, {0, 1, 100}};
  const ArenaLayout layout = PlaceArena(lifetimes, {});
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  EXPECT_EQ(layout.bytes, Extent(128) + s * Extent(128) + s * Extent(64));
  for (const int64_t size : {1, 5, 1009}) CheckAt(lifetimes, layout, {{"S", size}});
}

// What verifies plans asks for a proof, which there is none of where halves of sizes are multiplied and rounded.
TEST(Arena, SizesWithTermsBelowZeroLieProvablyInside) {
  const Extent s = Extent::Symbol("S"), t = Extent::Symbol("T");
  const auto places = [](const Extent& size) { return (size + 1).CeilDividedBy(2) - 1; };
  const Extent size = places(s) * places(t.CeilDividedBy(2)) * Extent(800);
  const SymbolRanges ranges = {{"S", {1, 1 << 20}}, {"T", {1, 1 << 20}}};
  const std::vector<Lifetime> lifetimes = {{0, 1, 1000}, {0, 1, s * t * Extent(64)}, {0, 1, size}};
  const ArenaLayout layout = PlaceArena(lifetimes, ranges);
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_TRUE(layout.bytes.ProvablyAtLeast(layout.offsets[i] + lifetimes[i].bytes, ranges)) << i;
    EXPECT_TRUE(layout.offsets[i].ProvablyAtLeast(Extent(0), ranges)) << i;
  }
  for (const int64_t at : {1, 2, 1009}) CheckAt(lifetimes, layout, {{"S", at}, {"T", at + 4}});
}

TEST(Arena, RandomLifetimes) {
  std::mt19937 random(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (int round = 0; round < 60; ++round) {
    SymbolRanges ranges = {{"S", {1, 37}}};
    const bool unbounded = round % 2 == 1;
    if (unbounded) ranges["T"] = {0, INT64_MAX};
    std::vector<Lifetime> lifetimes;
    const int count = 1 + static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      Lifetime lifetime;
      lifetime.first = static_cast<int>(random() % 30);
      lifetime.last = lifetime.first + static_cast<int>(random() % 6);
      lifetime.bytes = static_cast<int64_t>(random() % 5000);
      if (random() % 3 == 0)
        lifetime.bytes = lifetime.bytes + Extent::Symbol("S") * Extent(static_cast<int64_t>(random() % 301));
      if (unbounded && random() % 3 == 0)
        lifetime.bytes = lifetime.bytes + Extent::Symbol("T") * Extent(static_cast<int64_t>(random() % 17));
      lifetimes.push_back(lifetime);
    }
    const ArenaLayout layout = PlaceArena(lifetimes, ranges);
    for (const int64_t s : {1, 13, 37}) {
      for (const int64_t t : {0, 7, 100003}) CheckAt(lifetimes, layout, {{"S", s}, {"T", t}});
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Arena, RoundingNeverShrinks) {
  const Extent size = Extent::Symbol("S") * Extent(100) - Extent::Symbol("T") * Extent(70) + Extent(1);
  const Extent rounded = RoundUp64(size);
  for (const int64_t s : {1, 3, 64}) {
    for (const int64_t t : {0, 1, 2}) {
      const Binding binding = {{"S", s}, {"T", t}};
      EXPECT_GE(*rounded.Evaluate(binding), *size.Evaluate(binding));
      EXPECT_EQ(*rounded.Evaluate(binding) % 64, 0);
    }
  }
}

}  // namespace
}  // namespace quern::lir
