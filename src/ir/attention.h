// The sizes and memory layout that an Attention node states in its attributes; shared by the op and its kernels.
#pragma once

#include <string>

#include "ir/graph.h"

namespace quern::ir {

struct AttentionShape {
  enum class Layout : uint8_t { kPacked, kBshd, kBhsd };

  explicit AttentionShape(const Attributes& attributes)
      : heads(attributes.Int("heads")), kv_heads(attributes.Int("kv_heads")), head_dim(attributes.Int("head_dim")) {
    const std::string& name = attributes.String("layout");
    layout = name == "packed" ? Layout::kPacked : name == "bshd" ? Layout::kBshd : Layout::kBhsd;
  }

  int64_t heads, kv_heads, head_dim;
  Layout layout;

  int sequence_axis() const { return layout == Layout::kBhsd ? 2 : 1; }
  // Row-major offset of element d of head h at position s of batch b.
  int64_t Offset(int64_t b, int64_t s, int64_t h, int64_t d, int64_t length, int64_t heads_here) const {
    if (layout == Layout::kBhsd) return ((b * heads_here + h) * length + s) * head_dim + d;
    return ((b * length + s) * heads_here + h) * head_dim + d;
  }
  // Whether `type` is a tensor of that many heads in this layout.
  Status Check(const TensorType& type, int64_t heads_here, const char* operand) const {
    bool fits = false;
    switch (layout) {
      case Layout::kPacked: fits = type.rank() == 3 && type.dims[2] == Extent(heads_here * head_dim); break;
      case Layout::kBshd:
        fits = type.rank() == 4 && type.dims[2] == Extent(heads_here) && type.dims[3] == Extent(head_dim);
        break;
      case Layout::kBhsd:
        fits = type.rank() == 4 && type.dims[1] == Extent(heads_here) && type.dims[3] == Extent(head_dim);
        break;
    }
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat("Attention: %s is %s, which is not %d heads of %d in this layout",
                                                      operand, type.ToString(), heads_here, head_dim));
  }
};

}  // namespace quern::ir
