// Ops on elements, most of which have one of ours that does the same.

#include <cmath>

#include "onnx/norms.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

// One float attribute of the same name as ours, with ONNX's default.
template <const char* const* name, int thousandths>
void WithFloat(Call& c) {
  c.Return(c.Add(c.row.op, {c.x(0)}, {{*name, c.Float(*name, thousandths / 1000.0)}}));
}
constexpr const char* kAlpha = "alpha";

// Any number of operands, two at a time.
Value Joined(Call& c) {
  Value result = c.x(0);
  for (int i = 1; i < c.inputs(); ++i) result = c.Add(c.row.op, {result, c.x(i)});
  return result;
}
void Variadic(Call& c) { c.Return(Joined(c)); }
void Mean(Call& c) {
  const Value sum = Joined(c);
  c.Return(c.Add("Div", {sum, c.Like(c.inputs(), sum)}));
}

// Arithmetic that ONNX has for whole numbers too, done in f64, which holds those of 32 bits.
void OfFloats(Call& c) {
  const DType dtype = c.dtype(c.x(0));
  Values x;
  for (const Value value : c.all()) x.push_back(IsFloat(dtype) ? value : c.Cast(value, DType::kF64));
  c.Return(c.Cast(c.Add(c.row.op, x), dtype));
}

void Pow(Call& c) {
  const Value x = c.x(0), y = c.x(1);
  const DType dtype = c.dtype(x);
  const std::optional<std::vector<double>> power =
      c.type(y).rank() == 0 || c.type(y).elements() == Extent(1) ? c.MaybeReals(y) : std::nullopt;
  const bool stays = power && c.rank(y) <= c.rank(x);
  if (stays && (*power)[0] == 2) return c.Return(c.Add("Mul", {x, x}));
  if (stays && (*power)[0] == 0.5 && IsFloat(dtype)) return c.Return(c.Add("Sqrt", {x}));
  const DType in = IsFloat(dtype) ? dtype : DType::kF64;
  c.Return(c.Cast(c.Add("Pow", {c.Cast(x, in), c.Cast(y, in)}), dtype));
}

void Mod(Call& c) { c.Return(c.Add(c.Int("fmod", 0) != 0 ? "Fmod" : "Mod", {c.x(0), c.x(1)})); }

void Clip(Call& c) {
  Value x = c.x(0);
  const bool attributes = c.opset < 11;
  if (attributes ? c.Find("min") != nullptr : c.Has(1))
    x = c.Add("Max", {x, attributes ? c.Like(c.Float("min", 0), x) : c.x(1)});
  if (attributes ? c.Find("max") != nullptr : c.Has(2))
    x = c.Add("Min", {x, attributes ? c.Like(c.Float("max", 0), x) : c.x(2)});
  c.Return(x);
}

void BitShift(Call& c) { c.Return(c.Add(c.Str("direction", "") == "LEFT" ? "Shl" : "Shr", {c.x(0), c.x(1)})); }

void IsInf(Call& c) {
  c.Return(c.Add("IsInf", {c.x(0)},
                 {{"positive", c.Int("detect_positive", 1) != 0}, {"negative", c.Int("detect_negative", 1) != 0}}));
}

void HardSigmoid(Call& c) {
  c.Return(c.Add("HardSigmoid", {c.x(0)}, {{"alpha", c.Float("alpha", 0.2)}, {"beta", c.Float("beta", 0.5)}}));
}

void Gelu(Call& c) { c.Return(c.Add(c.Str("approximate", "none") == "tanh" ? "GeluApprox" : "Gelu", {c.x(0)})); }

void Selu(Call& c) {
  const Value x = c.x(0);
  if (c.Find("alpha") == nullptr && c.Find("gamma") == nullptr) return c.Return(c.Add("Selu", {x}));
  const Value below = c.Add("Mul", {c.Add("Expm1", {x}), c.Like(c.Float("alpha", 1.67326319217681884765625), x)});
  const Value chosen = c.Add("Where", {c.Add("Gt", {x, c.Like(0, x)}), x, below});
  c.Return(c.Add("Mul", {chosen, c.Like(c.Float("gamma", 1.05070102214813232421875), x)}));
}

void Shrink(Call& c) {
  const Value x = c.x(0), bias = c.Like(c.Float("bias", 0), x), zero = c.Like(0, x);
  const double lambda = c.Float("lambd", 0.5);
  const Value above = c.Add("Where", {c.Add("Gt", {x, c.Like(lambda, x)}), c.Add("Sub", {x, bias}), zero});
  c.Return(c.Add("Where", {c.Add("Lt", {x, c.Like(-lambda, x)}), c.Add("Add", {x, bias}), above}));
}

// a where x is not below 0, a slope else; whole numbers too.
void PRelu(Call& c) {
  const Value x = c.x(0);
  Value slope = c.x(1);
  if (c.opset < 7 && c.rank(slope) == 1 && c.rank(x) > 2) slope = PerChannel(c, slope, x);
  if (IsFloat(c.dtype(x))) return c.Return(c.Add("PRelu", {x, slope}));
  c.Return(c.Add("Where", {c.Add("Lt", {x, c.Like(0, x)}), c.Add("Mul", {x, slope}), x}));
}

void CastTo(Call& c, int64_t type) {
  const StatusOr<DType> to = DTypeOf(static_cast<int>(type));
  // Floats of 8 bits and numbers of 4 are in other dtypes here: a cast would not round.
  if (!to.ok() || type > 16) return c.Fail("casts to %s have no op", TypeName(static_cast<int>(type)));
  c.Return(c.Cast(c.x(0), *to));
}
void Cast(Call& c) { CastTo(c, c.Int("to", 0)); }
void CastLike(Call& c) { c.Return(c.Cast(c.x(0), c.dtype(c.x(1)))); }

void Identity(Call& c) { c.ReturnItem(0, c.item(0)); }

void Dropout(Call& c) {
  // Of inference, which every training_mode is that is not known to be true.
  bool training = false;
  if (c.opset >= 12 && c.Has(2)) {
    const Ints mode = c.IntsOf(c.x(2));
    const std::optional<std::vector<double>> ratio = c.Has(1) ? c.MaybeReals(c.x(1)) : std::vector<double>{0.5};
    training = !mode.empty() && mode[0] != 0;
    if (training && !ratio) c.RealsOf(c.x(1));
    training = training && (!ratio || ratio->empty() || (*ratio)[0] != 0);
  }
  if (training) return c.Fail("what it drops while it trains is random");
  c.Return(c.x(0));
  if (c.Wants(1)) c.Return(1, c.Filled(1, c.opset < 10 ? c.dtype(c.x(0)) : DType::kBool, c.type(c.x(0)).dims));
}

constexpr Importer kRows[] = {
    {"Abs", SameOp, "Abs"},
    {"Acos", SameOp, "Acos"},
    {"Acosh", SameOp, "Acosh"},
    {"Add", SameOp, "Add", 2},
    {"And", SameOp, "BitAnd", 2},
    {"Asin", SameOp, "Asin"},
    {"Asinh", SameOp, "Asinh"},
    {"Atan", SameOp, "Atan"},
    {"Atanh", SameOp, "Atanh"},
    {"BitShift", BitShift, "", 2},
    {"BitwiseAnd", SameOp, "BitAnd", 2},
    {"BitwiseNot", SameOp, "BitNot"},
    {"BitwiseOr", SameOp, "BitOr", 2},
    {"BitwiseXor", SameOp, "BitXor", 2},
    {"Cast", Cast},
    {"CastLike", CastLike, "", 2},
    {"Ceil", SameOp, "Ceil"},
    {"Celu", WithFloat<&kAlpha, 1000>, "Celu"},
    {"Clip", Clip},
    {"Cos", SameOp, "Cos"},
    {"Cosh", SameOp, "Cosh"},
    {"Div", SameOp, "Div", 2},
    {"Dropout", Dropout},
    {"Elu", WithFloat<&kAlpha, 1000>, "Elu"},
    {"Equal", SameOp, "Eq", 2},
    {"Erf", SameOp, "Erf"},
    {"Exp", SameOp, "Exp"},
    {"Floor", SameOp, "Floor"},
    {"Gelu", Gelu},
    {"Greater", SameOp, "Gt", 2},
    {"GreaterOrEqual", SameOp, "Ge", 2},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", SameOp, "HardSwish"},
    {"Identity", Identity, "", 1, "", true},
    {"IsInf", IsInf},
    {"IsNaN", SameOp, "IsNaN"},
    {"LeakyRelu", WithFloat<&kAlpha, 10>, "LeakyRelu"},
    {"Less", SameOp, "Lt", 2},
    {"LessOrEqual", SameOp, "Le", 2},
    {"Log", SameOp, "Log"},
    {"Max", Variadic, "Max"},
    {"Mean", Mean, "Add"},
    {"Min", Variadic, "Min"},
    {"Mish", SameOp, "Mish"},
    {"Mod", Mod, "", 2},
    {"Mul", SameOp, "Mul", 2},
    {"Neg", SameOp, "Neg"},
    {"Not", SameOp, "Not"},
    {"Or", SameOp, "BitOr", 2},
    {"PRelu", PRelu, "", 2},
    {"Pow", Pow, "", 2},
    {"Reciprocal", OfFloats, "Recip"},
    {"Relu", SameOp, "Relu"},
    {"Round", SameOp, "Round"},
    {"Selu", Selu},
    {"Shrink", Shrink},
    {"Sigmoid", SameOp, "Sigmoid"},
    {"Sign", SameOp, "Sign"},
    {"Sin", SameOp, "Sin"},
    {"Sinh", SameOp, "Sinh"},
    {"Softplus", SameOp, "Softplus"},
    {"Softsign", SameOp, "Softsign"},
    {"Sqrt", SameOp, "Sqrt"},
    {"Sub", SameOp, "Sub", 2},
    {"Sum", Variadic, "Add"},
    {"Tan", SameOp, "Tan"},
    {"Tanh", SameOp, "Tanh"},
    {"ThresholdedRelu", WithFloat<&kAlpha, 1000>, "ThresholdedRelu"},
    {"Where", SameOp, "Where", 3},
    {"Xor", SameOp, "Ne", 2},
};

}  // namespace

std::span<const Importer> ElementwiseImporters() { return kRows; }

}  // namespace quern::onnx
