#include "ir/requantise.h"

#include <cmath>

#include "ir/shape.h"

namespace quern::ir {

std::vector<AttrDef> RequantiseAttributes(std::vector<AttrDef> others) {
  for (const char* name : {"x_zp", "w_zp", "out_zp"})
    others.push_back({.name = name, .kind = AttrKind::kInt, .default_value = int64_t{0}});
  others.push_back({.name = "mult",
                    .kind = AttrKind::kFloat,
                    .default_value = 1.0,
                    .doc = "where there is no operand of that name"});
  return others;
}

std::vector<OperandDef> RequantiseOperands(const char* x, const char* w, const char* n) {
  return {{.name = "x", .kind = OperandKind::kInteger, .shape = x},
          {.name = "w", .kind = OperandKind::kInteger, .shape = w, .own_dtype = true},
          {.name = "bias", .kind = OperandKind::kInteger, .shape = n, .own_dtype = true},
          {.name = "mult", .kind = OperandKind::kFloat, .shape = n, .optional = true, .own_dtype = true}};
}

Status CheckRequantised(const InferContext& context, const Extent& n) {
  const auto bytes = [](DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; };
  for (const int i : {0, 1}) {
    if (!bytes(context.operands[i].dtype)) return context.DTypeError(i, "i8 or u8");
  }
  if (context.operands[2].dtype != DType::kI32) return context.DTypeError(2, "i32");
  if (context.operands.size() > 3 && context.operands[3].dtype != DType::kF32) return context.DTypeError(3, "f32");
  for (size_t i = 2; i < context.operands.size(); ++i) {
    const std::vector<Extent> wanted = {n};
    if (!context.Equal(context.operands[i].dims, wanted))
      return context.ShapeError(static_cast<int>(i), ToString(wanted));
  }
  for (const auto& [name, dtype] :
       {std::pair("x_zp", context.operands[0].dtype), std::pair("w_zp", context.operands[1].dtype),
        std::pair("out_zp", context.operands[0].dtype)}) {
    const int64_t zero = context.attributes.Int(name);
    if (zero < static_cast<int64_t>(Lowest(dtype)) || zero > static_cast<int64_t>(Highest(dtype)))
      return context.AttributeError(name, absl::StrCat("one of ", std::string(Name(dtype))));
  }
  return absl::OkStatus();
}

Value Sum32(Expansion& e, Value bytes, int64_t axis) { return e.Reduced("sum", e.Stored(bytes, DType::kI32), {axis}); }

// In f64, which has every i32 and its product by an f32.
Value Requantised(Expansion& e, const Node& node, Value sum, std::span<const Value> inputs,
                  const std::vector<Extent>& beside) {
  const Attributes& attributes = node.attributes;
  sum = e.Add("Add", {sum, e.Sized(inputs[2], beside)});
  const Value mult = inputs.size() > 3 ? e.Stored(e.Sized(inputs[3], beside), DType::kF64)
                                       : e.Scalar(attributes.Float("mult"), DType::kF64);
  const Value whole = e.Add("Round", {e.Add("Mul", {e.Stored(sum, DType::kF64), mult})});
  const Value zero = e.Scalar(static_cast<double>(attributes.Int("out_zp")), DType::kF64);
  return e.Stored(e.Add("Add", {whole, zero}), node.results[0].dtype);
}

int64_t Requantised(const RefContext& context, int64_t sum, int64_t n) {
  const int64_t total = static_cast<int32_t>(sum + static_cast<int64_t>(context.operands[2]->Integer(n)));
  const double mult =
      context.operands.size() > 3 ? context.operands[3]->data[n] : context.node.attributes.Float("mult");
  const double value =
      std::nearbyint(static_cast<double>(total) * mult) + static_cast<double>(context.node.attributes.Int("out_zp"));
  return static_cast<int64_t>(Saturated(context.results[0].dtype, value));
}

}  // namespace quern::ir
