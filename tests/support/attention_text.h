// Graphs of one Attention as text, of every dtype and form that it has.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::testing {

inline constexpr const char* kFloats[] = {"f32", "f16", "bf16"};
inline constexpr const char* kMasks[] = {"none", "causal", "sliding", "custom", "bias"};
inline constexpr const char* kSequences[] = {"none", "lengths", "ragged", "paged", "ragged_paged"};
inline constexpr const char* kLayouts[] = {"packed", "bshd", "bhsd"};

struct AttentionText {
  std::array<std::string, 3> dtypes = {"f32", "f32", "f32"};  // of q, k and v
  std::string mask = "none", mask_dtype = "f32", sequences = "none", layout = "packed";
  int64_t rows = 1, keys = 130, batch = 2, heads = 4, kv_heads = 2, head_dim = 24;
  double softcap = 0;
  bool finish = false;  // an op by element follows

  static constexpr int64_t kSlot = 48;  // where keys are paged

  bool ragged() const { return sequences.starts_with("ragged"); }
  bool paged() const { return sequences.ends_with("paged"); }
  int64_t slots_each() const { return (keys + kSlot - 1) / kSlot; }
  int64_t room() const { return paged() ? slots_each() * kSlot : keys; }

  std::string Name() const {
    return absl::StrCat("q ", dtypes[0], " k ", dtypes[1], " v ", dtypes[2], ", ", rows, " rows, ", keys, " keys, ",
                        heads, " heads on ", kv_heads, " of ", head_dim, ", mask ", mask, " ", mask_dtype, ", ",
                        sequences, " ", layout, finish ? " and an op" : "");
  }

  std::string Dims(int64_t of, int64_t length, int64_t of_heads) const {
    if (layout == "packed") return absl::StrCat("[", of, ", ", length, ", ", of_heads * head_dim, "]");
    if (layout == "bshd") return absl::StrCat("[", of, ", ", length, ", ", of_heads, ", ", head_dim, "]");
    return absl::StrCat("[", of, ", ", of_heads, ", ", length, ", ", head_dim, "]");
  }

  std::string ToString() const {
    const std::string q = Dims(ragged() ? 1 : batch, rows, heads),
                      k = Dims(paged() ? batch * slots_each() + 1 : batch, paged() ? kSlot : keys, kv_heads);
    std::vector<std::pair<std::string, std::string>> inputs = {
        {"q", dtypes[0] + q}, {"k", dtypes[1] + k}, {"v", dtypes[2] + k}};
    if (mask == "custom") inputs.emplace_back("mask", absl::StrCat(mask_dtype, "[", batch, ", ", room(), "]"));
    if (mask == "bias")
      inputs.emplace_back("mask", absl::StrCat(mask_dtype, "[", heads, ", ", rows, ", ", room(), "]"));
    if (ragged()) inputs.emplace_back("q_start", absl::StrCat("i32[", batch + 1, "]"));
    if (sequences != "none") inputs.emplace_back("kv_len", absl::StrCat("i32[", batch, "]"));
    if (paged()) inputs.emplace_back("blocks", absl::StrCat("i32[", batch, ", ", slots_each(), "]"));
    std::string text = "graph g {\n";
    std::vector<std::string> operands;
    for (size_t i = 0; i < inputs.size(); ++i) {
      absl::StrAppend(&text, "  %", i, " = Input() {name = \"", inputs[i].first, "\"} : ", inputs[i].second, "\n");
      operands.push_back(absl::StrCat("%", i));
    }
    const size_t last = inputs.size();
    absl::StrAppend(&text, "  %", last, " = Attention(", absl::StrJoin(operands, ", "), ") {head_dim = ", head_dim,
                    ", heads = ", heads, ", kv_heads = ", kv_heads, ", layout = \"", layout, "\", mask = \"", mask,
                    "\", sequences = \"", sequences, "\", softcap = ", softcap, ".0, window = 70} : ", dtypes[0], q,
                    "\n");
    if (!finish) return absl::StrCat(text, "  return %", last, "\n}\n");
    return absl::StrCat(text, "  %", last + 1, " = Tanh(%", last, ") : ", dtypes[0], q, "\n  return %", last + 1,
                        "\n}\n");
  }

  // What the operands that are integers hold: a sequence that fills its room, others shorter, slots in no order.
  std::map<std::string, std::vector<int32_t>> Integers() const {
    std::map<std::string, std::vector<int32_t>> values;
    for (int64_t b = 0; b < batch; ++b) {
      values["kv_len"].push_back(static_cast<int32_t>(std::max<int64_t>(1, keys - 37 * b)));
      values["q_start"].push_back(static_cast<int32_t>(rows * b / batch));
    }
    values["q_start"].push_back(static_cast<int32_t>(rows));
    const int64_t slots = batch * slots_each();
    for (int64_t n = 0; n < slots; ++n) values["blocks"].push_back(static_cast<int32_t>((n * 5 + 2) % (slots + 1)));
    return values;
  }
};

// Calls visit for every dtype of q, k and v with few rows and many, under every mask; over sequences, layouts and what
// follows in turn, so that each of them meets all dtypes.
template <typename Visit>
void ForEachAttention(const Visit& visit) {
  int turn = 0;
  for (const char* q : kFloats) {
    for (const char* k : kFloats) {
      for (const char* v : kFloats) {
        for (const bool many : {false, true}) {
          for (const char* mask : kMasks) {
            AttentionText text{.dtypes = {q, k, v}, .mask = mask};
            text.rows = many ? turn % 4 < 2 ? 9 : 70 : turn % 4 < 2 ? 1 : 5;
            text.sequences = kSequences[turn % std::size(kSequences)];
            text.layout = kLayouts[turn / 2 % std::size(kLayouts)];
            text.finish = turn % 2 == 1;
            text.batch = 1 + turn % 3;
            if (text.mask == "bias") text.mask_dtype = turn % 4 == 0 ? "bool" : kFloats[turn % 3];
            if (text.mask == "custom") text.mask_dtype = turn % 2 == 0 ? "bool" : kFloats[turn % 3];
            text.head_dim = turn % 7 == 0 ? 15 : turn % 7 == 3 ? 64 : 24;
            text.kv_heads = turn % 3 == 0 ? 4 : 2;
            text.softcap = turn % 11 == 0 ? 2 : 0;
            visit(text, turn++);
          }
        }
      }
    }
  }
}

}  // namespace quern::testing
