// ActivationBackward: dy times the derivative of an elementwise function at x. `kind` is the function; what has steps
// has the derivative 0 there as everywhere, and at a corner the one of the side below, but that Abs has 0.

#include <cmath>

#include "ir/activation.h"
#include "ir/backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr double kRootOfHalf = 0.70710678118654752440, kDensity = 0.39894228040143267794, kGelu = kRootOfTwoOverPi;
constexpr double kLogOf2 = 0.69314718055994530942, kErf = 1.12837916709551257390;  // 2 / sqrt(pi)
constexpr double kSelu = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;

struct Row {
  const char* kind;
  Term (*expand)(const Term& x);
  double (*reference)(double x);
};

Term Sigmoid(const Term& x) { return x.Call("Sigmoid"); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
Term Above(const Term& x, double bound) { return x.Like(bound).Join("Lt", x); }
Term Zero(const Term& x) { return x.Like(0); }

// Between bounds: a line, outside numbers.
Term Inside(const Term& x, double bound, const Term& value, double below, double above) {
  const Term upper = Term::Choose(x.Join("Lt", x.Like(bound)), value, x.Like(above));
  return Term::Choose(Above(x, -bound), upper, x.Like(below));
}

constexpr Row kRows[] = {
    {"abs", [](const Term& x) { return x.Call("Sign"); },
     [](double x) -> double { return x > 0   ? 1
                                     : x < 0 ? -1
                                             : x; }},
    {"acos", [](const Term& x) { return -(1 - x * x).Call("Rsqrt"); },
     [](double x) { return -1 / std::sqrt(1 - x * x); }},
    {"acosh", [](const Term& x) { return (x * x - 1).Call("Rsqrt"); },
     [](double x) { return 1 / std::sqrt(x * x - 1); }},
    {"asin", [](const Term& x) { return (1 - x * x).Call("Rsqrt"); },
     [](double x) { return 1 / std::sqrt(1 - x * x); }},
    {"asinh", [](const Term& x) { return (x * x + 1).Call("Rsqrt"); },
     [](double x) { return 1 / std::sqrt(x * x + 1); }},
    {"atan", [](const Term& x) { return 1 / (1 + x * x); }, [](double x) { return 1 / (1 + x * x); }},
    {"atanh", [](const Term& x) { return 1 / (1 - x * x); }, [](double x) { return 1 / (1 - x * x); }},
    {"ceil", [](const Term& x) { return Zero(x); }, [](double) -> double { return 0; }},
    {"cos", [](const Term& x) { return -x.Call("Sin"); }, [](double x) { return -std::sin(x); }},
    {"cosh", [](const Term& x) { return x.Call("Sinh"); }, [](double x) { return std::sinh(x); }},
    {"elu", [](const Term& x) { return Term::Choose(Above(x, 0), x.Like(1), x.Call("Exp")); },
     [](double x) { return x > 0 ? 1 : std::exp(x); }},
    {"erf", [](const Term& x) { return (-(x * x)).Call("Exp") * kErf; },
     [](double x) { return kErf * std::exp(-x * x); }},
    {"exp", [](const Term& x) { return x.Call("Exp"); }, [](double x) { return std::exp(x); }},
    {"exp2", [](const Term& x) { return x.Call("Exp2") * kLogOf2; }, [](double x) { return kLogOf2 * std::exp2(x); }},
    {"expm1", [](const Term& x) { return x.Call("Exp"); }, [](double x) { return std::exp(x); }},
    {"floor", [](const Term& x) { return Zero(x); }, [](double) -> double { return 0; }},
    {"gelu",
     [](const Term& x) {
       const Term density = (x * x * -0.5).Call("Exp") * kDensity;
       return 0.5 * (1 + (x * kRootOfHalf).Call("Erf")) + x * density;
     },
     [](double x) { return 0.5 * std::erfc(-x * kRootOfHalf) + x * kDensity * std::exp(-x * x / 2); }},
    {"gelu_approx",
     [](const Term& x) {
       const Term t = ((x + x * x * x * 0.044715) * kGelu).Call("Tanh");
       return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (kGelu * (1 + x * x * (3 * 0.044715)));
     },
     [](double x) {
       const double t = std::tanh(kGelu * (x + 0.044715 * x * x * x));
       return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGelu * (1 + 3 * 0.044715 * x * x);
     }},
    {"hard_sigmoid", [](const Term& x) { return Inside(x, 3, x.Like(1.0 / 6), 0, 0); },
     [](double x) { return x > -3 && x < 3 ? 1.0 / 6 : 0; }},
    {"hard_swish", [](const Term& x) { return Inside(x, 3, x / 3 + 0.5, 0, 1); },
     [](double x) { return !(x > -3) ? 0
                           : x < 3   ? x / 3 + 0.5
                                     : 1; }},
    {"log", [](const Term& x) { return 1 / x; }, [](double x) { return 1 / x; }},
    {"log1p", [](const Term& x) { return 1 / (1 + x); }, [](double x) { return 1 / (1 + x); }},
    {"log2", [](const Term& x) { return 1 / (x * kLogOf2); }, [](double x) { return 1 / (x * kLogOf2); }},
    {"log_sigmoid", [](const Term& x) { return Sigmoid(-x); }, [](double x) { return Sigmoid(-x); }},
    {"mish",
     [](const Term& x) {
       const Term t = x.Call("Softplus").Call("Tanh");
       return t + x * (1 - t * t) * Sigmoid(x);
     },
     [](double x) {
       const double t = std::tanh(std::log1p(std::exp(x)));
       return t + x * (1 - t * t) * Sigmoid(x);
     }},
    {"quick_gelu",
     [](const Term& x) {
       const Term s = Sigmoid(x * 1.702);
       return s * (1 + x * 1.702 * (1 - s));
     },
     [](double x) {
       const double s = Sigmoid(1.702 * x);
       return s * (1 + 1.702 * x * (1 - s));
     }},
    {"recip", [](const Term& x) { return -1 / (x * x); }, [](double x) { return -1 / (x * x); }},
    {"round", [](const Term& x) { return Zero(x); }, [](double) -> double { return 0; }},
    {"rsqrt",
     [](const Term& x) {
       const Term r = x.Call("Rsqrt");
       return r * r * r * -0.5;
     },
     [](double x) { return -0.5 / (x * std::sqrt(x)); }},
    {"selu",
     [](const Term& x) { return Term::Choose(Above(x, 0), x.Like(kSelu), x.Call("Exp") * (kSelu * kSeluAlpha)); },
     [](double x) { return x > 0 ? kSelu : kSelu * kSeluAlpha * std::exp(x); }},
    {"sigmoid",
     [](const Term& x) {
       const Term s = Sigmoid(x);
       return s * (1 - s);
     },
     [](double x) { return Sigmoid(x) * Sigmoid(-x); }},
    {"sign", [](const Term& x) { return Zero(x); }, [](double) -> double { return 0; }},
    {"silu",
     [](const Term& x) {
       const Term s = Sigmoid(x);
       return s * (1 + x * (1 - s));
     },
     [](double x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); }},
    {"sin", [](const Term& x) { return x.Call("Cos"); }, [](double x) { return std::cos(x); }},
    {"sinh", [](const Term& x) { return x.Call("Cosh"); }, [](double x) { return std::cosh(x); }},
    {"softplus", [](const Term& x) { return Sigmoid(x); }, [](double x) { return Sigmoid(x); }},
    {"softsign",
     [](const Term& x) {
       const Term d = 1 + x.Call("Abs");
       return 1 / (d * d);
     },
     [](double x) { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }},
    {"sqrt", [](const Term& x) { return 0.5 * x.Call("Rsqrt"); }, [](double x) { return 0.5 / std::sqrt(x); }},
    {"tan",
     [](const Term& x) {
       const Term t = x.Call("Tan");
       return 1 + t * t;
     },
     [](double x) { return 1 + std::tan(x) * std::tan(x); }},
    {"tanh",
     [](const Term& x) {
       const Term t = x.Call("Tanh");
       return 1 - t * t;
     },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {"trunc", [](const Term& x) { return Zero(x); }, [](double) -> double { return 0; }},
};

const Row& RowOf(const Node& node) {
  const std::string& kind = node.attributes.String("kind");
  for (const Row& row : kRows) {
    if (kind == row.kind) return row;
  }
  return kRows[0];  // the attribute has been checked
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (!context.Equal(context.operands[1].dims, x.dims)) return context.ShapeError(1, ToString(x.dims));
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Term x = Term::Wide(e, inputs[0]), dy = Term::Wide(e, inputs[1]);
  return e.Finish({e.Stored((RowOf(node).expand(x) * dy).value, node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  RefTensor& y = context.results[0];
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = RoundTo(y.dtype, RowOf(context.node).reference(x.data[i]) * dy.data[i]);
  return absl::OkStatus();
}

// What cancels in a derivative is of the size of 1, and where x stands beside it of x.
Status Magnitude(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  std::vector<double>& sizes = context.results[0].data;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double size = std::fabs(x.data[i]);
    sizes[i] = (std::fabs(RowOf(context.node).reference(x.data[i])) * (1 + size) * (1 + size) + 1 + size) *
               std::fabs(dy.data[i]);
  }
  return absl::OkStatus();
}

std::vector<const char*> Kinds() {
  std::vector<const char*> kinds;
  for (const Row& row : kRows) kinds.push_back(row.kind);
  return kinds;
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const Row& row : kRows) examples.push_back({{"f32[3, 7]", "f32[3, 7]"}, {{"kind", std::string(row.kind)}}});
  examples.push_back({{"f16[S]", "f16[S]"}, {{"kind", std::string("silu")}}});
  return examples;
}

}  // namespace

const OpDef& Op_activation_backward() {
  static const OpDef* const op = Make({
      .name = "ActivationBackward",
      .doc = "dy times the derivative of an elementwise function at x",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "as x"}},
      .attributes = {{.name = "kind", .kind = AttrKind::kString, .choices = Kinds()}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 4e-6,
      .magnitude = Magnitude,
      .sample_low = 0.1,
      .sample_high = 0.9,
      .examples = Examples(),
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
