// How long each buffer of the arena is in use, in ticks: the plan's launches and steps with bodies in the order in
// which they stand, each body behind the one before it. What a loop's bodies find when a trip begins stays until its
// last trip has ended.
//
//   launch 0 (-> b1)        tick 0      b1 [0, 4]: read in every trip
//   while over b2           tick 1      the places of b2 [1, 5], as b2 is read after the loop
//     launch 1 (b1 -> b3)   tick 2      b3 [2, 3]
//     launch 2 (b3 -> ..)   tick 3
//   end of the loop         tick 4
//   launch 3 (b2 -> ..)     tick 5
#pragma once

#include <map>
#include <set>

#include "lir/arena.h"
#include "lir/plan.h"

namespace quern::lir {

// By buffer; arena buffers alone.
std::map<int, Lifetime> Lifetimes(const Plan& plan);

// Buffers of every home but the loops' own that launches or steps of a run touch.
std::set<int> ReadByRuns(const Plan& plan);

}  // namespace quern::lir
