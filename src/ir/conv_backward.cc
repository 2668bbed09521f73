#include "ir/conv_backward.h"

#include <functional>

#include "ir/shape.h"

namespace quern::ir {

std::vector<AttrDef> ConvBackwardAttributes(const char* of) {
  return WindowAttributes({{.name = "groups", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                           {.name = "dims", .kind = AttrKind::kExtents, .doc = of}});
}

Status CheckConvBackward(const InferContext& context, const TensorType& x, const TensorType& w) {
  const OpDef& conv = *FindConvolution();
  Attributes attributes;
  for (const auto& [name, value] : context.attributes.values()) {
    if (name != "dims") attributes.Set(name, value);
  }
  QUERN_RETURN_IF_ERROR(CheckAttributes(conv.name, conv.attributes, attributes, /*fill_defaults=*/true));
  const TensorType operands[] = {x, w};
  InferContext forward{conv, operands, attributes, context.symbols, context.constraints};
  const StatusOr<std::vector<TensorType>> y = conv.infer(forward);
  if (!y.ok()) {
    const std::optional<Diagnostic> why = DiagnosticOf(y.status());
    if (why && why->code == DiagnosticCode::kBadAttribute) return context.AttributeError(why->operand, why->expected);
    return context.AttributeError("dims", why ? absl::StrCat(why->operand, " ", why->expected) : "what Conv takes");
  }
  if (!context.Equal(context.operands[1].dims, (*y)[0].dims)) return context.ShapeError(1, ToString((*y)[0].dims));
  return absl::OkStatus();
}

void ForEachProduct(const Attributes& attributes, const std::vector<int64_t>& x, const std::vector<int64_t>& w,
                    const std::vector<int64_t>& y, const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const Window window = WindowOf(attributes, std::span(w).subspan(2));
  const int64_t rows = w[0] / attributes.Int("groups");
  const auto offset = [](const std::vector<int64_t>& dims, const std::vector<int64_t>& at) {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) place = place * dims[d] + at[d];
    return place;
  };
  std::vector<int64_t> terms = w, index(y.size());
  terms[0] = 1;
  int64_t all = 1, count = 1;
  for (const int64_t n : y) all *= n;
  for (const int64_t n : terms) count *= n;
  for (int64_t at = 0; at < all; ++at, NextIndex(y, index)) {
    std::vector<int64_t> k(w.size()), from(x.size()), weight;
    for (int64_t t = 0; t < count; ++t, NextIndex(terms, k)) {
      from[0] = index[0];
      from[1] = index[1] / rows * w[1] + k[1];
      bool inside = true;
      for (size_t d = 2; d < x.size(); ++d) {
        from[d] = index[d] * window.strides[d - 2] + k[d] * window.dilations[d - 2] - window.low[d - 2];
        inside = inside && from[d] >= 0 && from[d] < x[d];
      }
      weight = k;
      weight[0] = index[1];
      if (inside) visit(offset(x, from), offset(w, weight), at);
    }
  }
}

}  // namespace quern::ir
