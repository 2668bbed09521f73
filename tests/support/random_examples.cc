// Ops by their own examples in random graphs, and numbers of two parts.
#include <algorithm>

#include "support/random_generator.h"

namespace quern::testing {

void Generator::AnyExample() {
  const ir::OpDef& op = *ir::Ops()[Below(static_cast<int64_t>(ir::Ops().size()))];
  if (op.examples.empty()) return AnyExample();
  if (op.kind == OpKind::kComposite && !options_.composites) return;
  const ir::Example& example = op.examples[Below(static_cast<int64_t>(op.examples.size()))];
  std::vector<TensorType> types;
  for (const char* text : example.operands) types.push_back(*TensorType::Parse(text));
  const auto is_half = [](const TensorType& type) { return type.dtype == DType::kF16 || type.dtype == DType::kBF16; };
  if (!options_.discontinuous && (op.jumps || std::any_of(types.begin(), types.end(), is_half))) return;
  const bool call = BecomesCall(op, types, example.attributes);
  if (call && !options_.calls) return;
  std::vector<Value> inputs;
  for (const TensorType& wanted : types) {
    // A matrix of values that there are may be singular, or have equal eigenvalues.
    if (call) {
      inputs.push_back(NewLeaf(wanted));
      continue;
    }
    // Block formats are those of Params.
    Value x = IsBlock(wanted.dtype)     ? NewWeight(wanted.dtype, wanted.dims)
              : IsComplex(wanted.dtype) ? ComplexOf(wanted)
              : Below(2) == 0           ? ValueOf(wanted)
                                        : NewLeaf(wanted);
    if (IsFloat(wanted.dtype) && op.sample_low > -4) x = Squashed(x, op.sample_low, op.sample_high);
    inputs.push_back(x);
  }
  const Value made = Add(op.name, std::move(inputs), example.attributes);
  for (size_t r = 0; r < made_.graph.node(made.node).results.size(); ++r) {
    const Value result = {made.node, static_cast<int>(r)};
    if (IsComplex(type(result).dtype))
      Seen(result);
    else
      Tame(result);
  }
}

bool Generator::BecomesCall(const ir::OpDef& op, const std::vector<TensorType>& types, const Attributes& attributes) {
  if (op.kind != OpKind::kComposite || op.expand == nullptr) return false;
  ir::Graph graph;
  graph.symbols = {{"S", {1, 17}}};
  std::vector<Value> inputs;
  for (const TensorType& type : types) inputs.push_back(*graph.AddInput(absl::StrCat("x", inputs.size()), type));
  const Value made = *graph.Add(op, inputs, attributes);
  const ir::Node node = graph.node(made.node);
  QUERN_CHECK(op.expand(graph, node, inputs, -1).ok());
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& each) { return ir::IsRoot(each, "call"); });
}

Value Generator::ComplexOf(TensorType wanted) {
  wanted.dtype = DType::kF32;
  const Value re = Below(2) == 0 ? ValueOf(wanted) : NewLeaf(wanted);
  return Add("Complex", {re, NewLeaf(wanted)});
}

void Generator::Seen(Value z) {
  Limit(Add("Real", {z}));
  Limit(Add("Imag", {z}));
}

void Generator::AnyComplex() {
  if (!options_.composites) return;
  const Value x = SomeF32(1);
  Value z = Add("Complex", {x, Partner(DType::kF32, type(x).dims)});
  for (int64_t left = 1 + Below(3); left > 0; --left) {
    const int rank = type(z).rank();
    std::vector<int64_t> perm(rank);
    for (int d = 0; d < rank; ++d) perm[d] = d;
    std::swap(perm[0], perm[Below(rank)]);
    const auto other = [&] { return Add("Complex", {Partner(DType::kF32, type(z).dims), Scalar(DType::kF32, 2)}); };
    switch (Below(8)) {
      case 0: z = Add("Neg", {z}); break;
      case 1: z = Add("Conjugate", {z}); break;
      case 2: z = Add("Add", {z, other()}); break;
      case 3: z = Add("Sub", {other(), z}); break;
      case 4: z = Add("Mul", {z, other()}); break;
      case 5: z = Add("Div", {z, other()}); break;  // of which no part is near 0
      case 6: z = Add("Transpose", {z}, {{"perm", perm}}); break;
      case 7: z = Add("Reverse", {z}, {{"axes", std::vector<int64_t>{-1}}}); break;
    }
  }
  if (Below(2) == 0) return Seen(z);
  Limit(Add(Pick<const char*>({"Abs", "ComplexNormSq"}), {z}));
}

}  // namespace quern::testing
