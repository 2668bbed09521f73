// What an Attention node states in its attributes: sizes, memory layout, and which operands it has. Shared by the op
// and its kernels.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ir/identity.h"

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
  bool Fits(const TensorType& type, int64_t heads_here) const {
    switch (layout) {
      case Layout::kPacked: return type.rank() == 3 && type.dims[2] == Extent(heads_here * head_dim);
      case Layout::kBshd:
        return type.rank() == 4 && type.dims[2] == Extent(heads_here) && type.dims[3] == Extent(head_dim);
      case Layout::kBhsd:
        return type.rank() == 4 && type.dims[1] == Extent(heads_here) && type.dims[3] == Extent(head_dim);
    }
    return false;
  }
  // "[B, S, 64]": what fits, for errors.
  std::string DimsText(int64_t heads_here) const {
    switch (layout) {
      case Layout::kPacked: return absl::StrFormat("[B, S, %d]", heads_here * head_dim);
      case Layout::kBshd: return absl::StrFormat("[B, S, %d, %d]", heads_here, head_dim);
      case Layout::kBhsd: return absl::StrFormat("[B, %d, S, %d]", heads_here, head_dim);
    }
    return "";
  }

  // The dtypes that there are kernels for, of queries, keys and values each, and their names for errors.
  static bool Computes(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }
  static constexpr const char* kComputed = "f32, f16 or bf16";
};

// Positions of the operands after v, or -1. Each of the last three says more about many sequences in one step.
struct AttentionOperands {
  explicit AttentionOperands(const Attributes& attributes) {
    const std::string &mask_kind = attributes.String("mask"), &sequences = attributes.String("sequences");
    if (mask_kind == "custom" || mask_kind == "bias") mask = count++;
    if (sequences == "ragged" || sequences == "ragged_paged") q_start = count++;
    if (sequences != "none") kv_len = count++;
    if (sequences == "paged" || sequences == "ragged_paged") blocks = count++;
  }

  int mask = -1, q_start = -1, kv_len = -1, blocks = -1;
  int count = 3;

  bool ragged() const { return q_start >= 0; }
  bool lengths() const { return kv_len >= 0; }
  bool paged() const { return blocks >= 0; }
};

// An Attention of q, k, v and the mask that the attributes ask for, if any.
StatusOr<Value> MakeAttention(const MakeNode& make, std::vector<Value> operands, Attributes attributes);

}  // namespace quern::ir
