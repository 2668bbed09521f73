#include "ir/kept.h"

namespace quern::ir {

Kept PlacesOfKept(Expansion& e, Value chosen) {
  if (!e.ok()) return {};
  const Extent n = e.type(chosen).dims[0];
  const Value ones = e.Stored(chosen, DType::kI64);
  const Value places = e.Add("CumSum", {ones}, {{"axis", int64_t{0}}, {"exclusive", true}});
  const Value none = e.Add("Size", {}, {{"extent", std::vector<Extent>{n}}});
  const Value count =
      e.Add("Reduce", {ones}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{0}}, {"keep_dim", false}});
  return {e.Add("Where", {chosen, places, none}), count};
}

Value AtPlaces(Expansion& e, Value rows, const Kept& kept) {
  if (!e.ok()) return {};
  const TensorType type = e.type(rows);
  const Value zero = e.Stored(e.Scalar(0, DType::kF64), type.dtype);
  const Value zeros = e.Add("Expand", {zero}, {{"shape", type.dims}});
  const Value at = e.Sized(kept.places, {type.dims[0], Extent(1)});
  return e.Add("ScatterND", {zeros, at, rows});
}

}  // namespace quern::ir
