// Counts of runs of tokens.

#include <algorithm>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

// How often each n-gram of a pool stands in x [L] or [B, L], with up to `max_skip_count` tokens between two of it.
void TfIdf(Call& c) {
  Value x = c.x(0);
  const bool batch = c.rank(x) == 2;
  const Extents rows = batch ? Extents{c.dim(x, 0)} : Extents{Extent(1)};
  const int64_t length = c.fixed_dim(x, -1), least = c.Int("min_gram_length", 1), most = c.Int("max_gram_length", 1);
  const int64_t skips = c.Int("max_skip_count", 0);
  const Ints starts = c.IntList("ngram_counts"), places = c.IntList("ngram_indexes"), pool = c.IntList("pool_int64s");
  if (c.Find("pool_strings") != nullptr) return c.Fail("its tokens are strings");
  if (least < 1 || most < least || most > static_cast<int64_t>(starts.size()) || skips < 0 || skips > 64)
    return c.Fail(absl::InvalidArgumentError("its lengths of n-grams are none"));
  x = c.Reshape(c.Cast(x, DType::kI64), {rows[0], Extent(length)});
  int64_t width = 0;
  for (const int64_t place : places) width = std::max(width, place + 1);
  if (width < 1 || width > 1 << 20) return c.Fail(absl::InvalidArgumentError("its n-grams have no places"));
  Values counts;
  std::vector<int64_t> column(width, -1);  // of the joined counts
  int64_t id = 0, columns = 0;
  for (int64_t n = 1; n <= static_cast<int64_t>(starts.size()); ++n) {
    const int64_t from = starts[n - 1],
                  to = n < static_cast<int64_t>(starts.size()) ? starts[n] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()) || (to - from) % n != 0)
      return c.Fail(absl::InvalidArgumentError("its pool does not fit its counts"));
    const int64_t grams = (to - from) / n;
    const bool used = n >= least && n <= most && grams > 0;
    for (int64_t g = 0; g < grams; ++g, ++id) {
      if (id >= static_cast<int64_t>(places.size()) || places[id] < 0)
        return c.Fail(absl::InvalidArgumentError("an n-gram has no place"));
      if (used) column[places[id]] = columns + g;
    }
    if (!used) continue;
    columns += grams;
    Value sum = c.Filled(0, DType::kF32, {rows[0], Extent(grams)});
    for (int64_t skip = 0; skip <= (n == 1 ? 0 : skips); ++skip) {
      const int64_t windows = length - (n - 1) * (skip + 1);
      if (windows < 1) break;
      std::optional<Value> all;
      for (int64_t j = 0; j < n; ++j) {
        Ints tokens;
        for (int64_t g = 0; g < grams; ++g) tokens.push_back(pool[from + g * n + j]);
        const Value seen =
            c.Reshape(c.Slice(x, 1, Extent(j * (skip + 1)), Extent(windows)), {rows[0], Extent(windows), Extent(1)});
        const Value same = c.Add("Eq", {seen, c.Integers(tokens)});
        all = all ? c.Add("BitAnd", {*all, same}) : same;
      }
      sum = c.Add("Add", {sum, c.Reduce("sum", c.Cast(*all, DType::kF32), {1}, false)});
    }
    counts.push_back(sum);
  }
  counts.push_back(c.Filled(0, DType::kF32, {rows[0], Extent(1)}));
  for (int64_t& at : column) at = at < 0 ? columns : at;
  Value y = counts.size() == 1 ? counts[0] : c.Add("Concat", counts, {{"axis", int64_t{1}}});
  y = c.Add("Gather", {y, c.Integers(column)}, {{"axis", int64_t{1}}});
  const std::string mode = c.Str("mode", "TF");
  if (mode == "IDF") y = c.Cast(c.Add("Gt", {y, c.Like(0, y)}), DType::kF32);
  if (const std::vector<double> given = c.FloatList("weights"); mode != "TF" && !given.empty()) {
    std::vector<double> weights(width, 1);
    for (size_t i = 0; i < given.size() && i < places.size(); ++i) weights[places[i]] = given[i];
    y = c.Add("Mul", {y, c.Reals(weights, DType::kF32, {Extent(width)})});
  }
  c.Return(batch ? y : c.Reshape(y, {Extent(width)}));
}

constexpr Importer kRows[] = {
    {"TfIdfVectorizer", TfIdf},
};

}  // namespace

std::span<const Importer> TextImporters() { return kRows; }

}  // namespace quern::onnx
