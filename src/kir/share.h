// Gives names to values that are used several times, so that the text of a kernel, and the time to verify, cost, run
// and emit it, are linear in the nodes of its expressions, however often they share them.
//
//   y[i] = tanh(x[i]) * tanh(x[i])               let v0 = tanh(x[i])
//                                         =>     y[i] = v0 * v0
//   sum vec c in 0..8 { f(x[c]) * f(x[c]) }  =>  sum vec c in 0..8 { let v0 = f(x[c]); v0 * v0 }
//
// Uses are those of a node by several pointers and of equal nodes made apart. A value is named in front of the first
// statement of its block that uses it, as long as nothing that it reads changes in between, or among the lets of the
// reduction inside of which all of its uses stand; never outside of the block, and so of the branch, where it stood.
// What is in scope under a name already keeps it. Written again rather than named are names, literals, short arithmetic
// on indices, a plain load that is used twice, and what the verifier must see where it stands: the comparisons of an
// `if`, and divisors that are select(x == 0, 1, x). Expressions that nest too deeply to read are cut, too.
#pragma once

#include <set>
#include <string>

#include "kir/kir.h"

namespace quern::kir {

Kernel ShareValues(Kernel kernel);
// Of a part of a kernel; `taken` are names that the block does not mention but that may be visible where it stands.
Block ShareValues(const Block& block, const std::set<std::string>& taken = {});

}  // namespace quern::kir
