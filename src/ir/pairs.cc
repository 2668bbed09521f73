#include "ir/pairs.h"

#include <complex>

#include "ir/shape.h"

namespace quern::ir {

Parts PartsOf(Expansion& e, Value pairs) {
  if (!e.ok()) return {};
  std::vector<Extent> dims = e.type(pairs).dims;
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  dims.pop_back();
  const auto part = [&](int64_t at) {
    const Value one =
        e.Add("Narrow", {pairs},
              {{"axis", last}, {"start", std::vector<Extent>{Extent(at)}}, {"length", std::vector<Extent>{Extent(1)}}});
    return e.Sized(one, dims);
  };
  return {part(0), part(1)};
}

Value PairsOf(Expansion& e, const Parts& parts) {
  if (!e.ok()) return {};
  std::vector<Value> both;
  for (const Value part : {parts.re, parts.im}) {
    if (!e.ok()) return {};
    std::vector<Extent> dims = e.type(part).dims;
    dims.emplace_back(1);
    both.push_back(e.Sized(part, std::move(dims)));
  }
  return e.Add("Concat", both, {{"axis", int64_t{-1}}});
}

StatusOr<std::vector<Value>> SameOfPairs(const PairsContext& context) {
  Attributes attributes = context.node.attributes;
  const size_t rank = context.rank(0);
  if (const AttrValue* const axis = attributes.Find("axis"); axis != nullptr) {
    if (const int64_t* const one = std::get_if<int64_t>(axis)) {
      attributes.Set("axis", FromStart(*one, rank));
    } else {
      std::vector<int64_t> axes = attributes.Ints("axis");
      for (int64_t& each : axes) each = FromStart(each, rank);
      attributes.Set("axis", std::move(axes));
    }
  }
  if (attributes.Find("axes") != nullptr) {
    std::vector<int64_t> axes = attributes.Ints("axes");
    for (int64_t& each : axes) each = FromStart(each, rank);
    attributes.Set("axes", std::move(axes));
  }
  const std::vector<Value> x(context.x.begin(), context.x.end());
  return context.e.Finish({context.e.Add(context.node.op->name, x, std::move(attributes))});
}

StatusOr<std::vector<TensorType>> InferRealOfComplex(const InferContext& context) {
  if (!IsComplex(context.operands[0].dtype)) return context.DTypeError(0, "c64");
  return std::vector<TensorType>{{DType::kF32, context.operands[0].dims}};
}

namespace {

template <bool kImaginary>
Status ReferencePart(RefContext& context) {
  const RefTensor& z = *context.operands[0];
  RefTensor& y = context.results[0];
  for (size_t at = 0; at < y.data.size(); ++at) {
    const std::complex<double> number = z.Complex(static_cast<int64_t>(at));
    y.data[at] = kImaginary ? number.imag() : number.real();
  }
  return absl::OkStatus();
}

template <bool kImaginary>
StatusOr<std::vector<Value>> PartOf(const PairsContext& context) {
  const Parts parts = PartsOf(context.e, context.x[0]);
  return context.e.Finish({kImaginary ? parts.im : parts.re});
}

}  // namespace

const OpDef* PartOfComplex(const char* name, const char* doc, bool imaginary) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .operands = {{.name = "z", .shape = "c64"}},
      .infer = InferRealOfComplex,
      .reference = imaginary ? ReferencePart<true> : ReferencePart<false>,
      .pairs = imaginary ? PartOf<true> : PartOf<false>,
      .rtol = 0,
      .examples = {{{"c64[2, 3]"}}, {{"c64[S, 7]"}}},
  });
}

}  // namespace quern::ir
