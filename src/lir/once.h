// What a plan computes once per binding of the parameters: what of it stays for runs to read, and which values of
// different plans are the same bytes.
//
//   once 0  k0 (w -> b3)        b3 is gone when b4 is made: it shares memory with others of its kind
//   once 1  k1 (b3 -> b4)       b4 stays, under a key of all that its bytes follow from: k0's text, k1's and "w"
//   launch  k2 (x, b4 -> y)
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "lir/plan.h"

namespace quern::lir {

struct OnceValue {
  Hash128 key;                   // equal keys, equal bytes, whatever plan of the graph they are in
  std::set<std::string> params;  // those that it depends on
};

// Every buffer of Home::kOnce that runs read, by buffer. Of a sealed plan what was sealed.
std::map<int, OnceValue> KeptOnce(const Plan& plan);

// Positions in plan.once, in order: what must run for these buffers to be filled.
std::vector<size_t> OnceLaunchesFor(const Plan& plan, std::set<int> buffers);

// Gives every buffer of Home::kOnce its offset: first what is kept, then what only other work of this kind reads, where
// two share memory that are not in use at once.
void PlaceOnce(Plan& plan);

// Gives plans of one graph one memory for all of theirs: values that are the same in two of them lie at one offset, and
// whichever plan runs first, or again, writes the same bytes there.
void PlaceOnceTogether(std::span<Plan* const> plans);

}  // namespace quern::lir
