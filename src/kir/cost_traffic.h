// Which elements of its parameters a kernel touches, access by access of its text. Internal to kir/cost.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kir/cost_value.h"
#include "kir/kir.h"

namespace quern::kir {

// A loop around the statement at hand.
struct Frame {
  int64_t trips, trip;
  bool each;       // its trips are looked at one by one
  uint64_t loops;  // it and those its bounds depend on
};

// What one dimension of an access covers in this trip: [start, start + extent).
struct Span {
  CostValue start;
  int64_t extent = 1;
};

// Reads of a parameter, or writes.
struct Side {
  int param;
  bool write;
  bool operator==(const Side&) const = default;
};

class Traffic {
 public:
  // Notes what `site`, an access of the text to a parameter of `dims`, covers in this trip of the loops around it.
  // Returns whether that depends on data, and so is an estimate.
  bool Note(const void* site, Side side, std::span<const Span> spans, std::span<const int64_t> dims,
            std::span<const Frame> frames);

  // Distinct bytes of all that was noted.
  int64_t Bytes(Side side, const BufferType& type, std::span<const int64_t> dims) const;

 private:
  // One access of the text over all trips.
  struct Site {
    Side side;
    struct Dim {
      int64_t low = kFarIndex, high = -kFarIndex;
      int64_t step = 0;  // the indices are low, low + step, ..; 0: no more than low
      bool data = false;
    };
    std::vector<Dim> dims;
    std::map<std::vector<int64_t>, int64_t> data_rows;  // values of a data index, by the trips of loops looked at one
                                                        // by one
  };
  std::vector<int64_t> Steps(Side side, const BufferType& type, size_t rank) const;

  std::map<const void*, Site> sites_;
};

}  // namespace quern::kir
