#include "ir/strides.h"

#include <utility>

namespace quern::ir {

Strides Strides::Dense(std::vector<Extent> dims) {
  Strides dense{std::move(dims), {}, Extent(0)};
  dense.steps.resize(dense.dims.size());
  Extent step(1);
  for (size_t d = dense.dims.size(); d-- > 0;) {
    dense.steps[d] = step;
    step = step * dense.dims[d];
  }
  return dense;
}

bool Strides::IsDense() const {
  Extent step(1);
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == Extent(1)) continue;
    if (steps[d] != step) return false;
    step = step * dims[d];
  }
  return true;
}

std::optional<Strides> Strides::Reshaped(const std::vector<Extent>& to) const {
  Strides made = Dense(to);
  made.offset = offset;
  if (IsDense()) return made;
  // Dimensions that lie as one would are a run; each run becomes some of the new dimensions, the last ones first.
  size_t left = to.size();
  for (size_t d = dims.size(); d > 0;) {
    if (dims[d - 1] == Extent(1)) {
      --d;
      continue;
    }
    const Extent step = steps[d - 1];
    Extent run = dims[--d];
    for (; d > 0 && (dims[d - 1] == Extent(1) || steps[d - 1] == step * run); --d) run = run * dims[d - 1];
    Extent taken(1);
    while (taken != run) {
      if (left == 0) return std::nullopt;
      made.steps[--left] = step * taken;
      taken = taken * to[left];
    }
  }
  for (; left > 0; --left) {
    if (to[left - 1] != Extent(1)) return std::nullopt;
  }
  return made;
}

}  // namespace quern::ir
