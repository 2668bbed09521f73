#include "ir/diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "ir/binary.h"
#include "ir/op.h"
#include "ir/print_node.h"

namespace quern::ir {
namespace {

// The node but for its operands and its place: nodes of equal text may be each other's.
std::string OwnText(const Node& node) {
  std::string text = node.op->name;
  for (const auto& [name, value] : node.attributes.values()) absl::StrAppend(&text, " ", name, " = ", ToString(value));
  for (const TensorType& type : node.results) absl::StrAppend(&text, " : ", type.ToString());
  for (const auto& body : node.bodies) absl::StrAppend(&text, " ", Fingerprint(*body).ToHex());
  if (node.data == nullptr) return text;
  const std::vector<uint8_t>& data = *node.data;
  const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
  return absl::StrCat(text, " ", HashBytes(bytes).ToHex());
}

// "%3 = MatMul(%1, %2) {transpose_b = true} : f32[7, 5]"
std::string Line(const Graph& graph, int n) { return HeadText(graph, n) + TypesText(graph.node(n)); }

// For each of `a` the one of `b` that is matched with it, or -1: a longest common subsequence, by the shortest edit
// (E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986). What ends take equal is taken off first.
class Matching {
 public:
  Matching(const std::vector<std::string>& a, const std::vector<std::string>& b) : a_(a), b_(b) {
    partner.assign(a.size(), -1);
    const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
    while (front_ < std::min(n, m) && a[front_] == b[front_]) Match(front_, front_), ++front_;
    while (back_ < std::min(n, m) - front_ && a[n - 1 - back_] == b[m - 1 - back_])
      Match(n - 1 - back_, m - 1 - back_), ++back_;
    Middle(n - front_ - back_, m - front_ - back_);
  }
  std::vector<int> partner;

 private:
  // The furthest x of each diagonal x - y is kept for every number of edits; beyond this many, the middle counts as
  // another one altogether.
  static constexpr int kMostEdits = 4000;

  void Match(int x, int y) { partner[x] = y; }

  void Middle(int n, int m) {
    if (n <= 0 || m <= 0) return;
    const int most = std::min(n + m, kMostEdits);
    std::vector<std::vector<int>> furthest;  // by edits: of diagonals -edits, -edits + 2, ..
    const auto at = [&](int edits, int diagonal) {
      if (edits < 0 || diagonal < -edits || diagonal > edits) return -1;
      return furthest[edits][(diagonal + edits) / 2];
    };
    for (int edits = 0; edits <= most; ++edits) {
      furthest.emplace_back(edits + 1, -1);
      for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const int down = at(edits - 1, diagonal + 1), right = at(edits - 1, diagonal - 1);
        int x = edits == 0 ? 0 : std::max(down, right < 0 ? -1 : right + 1);
        if (x < 0 || x > n || x - diagonal < 0 || x - diagonal > m) continue;
        while (x < n && x - diagonal < m && a_[front_ + x] == b_[front_ + x - diagonal]) ++x;
        furthest[edits][(diagonal + edits) / 2] = x;
        if (x == n && x - diagonal == m) return Trace(at, edits, diagonal);
      }
    }
  }

  template <typename At>
  void Trace(const At& at, int edits, int diagonal) {
    for (; edits >= 0; --edits) {
      const int x = at(edits, diagonal), down = at(edits - 1, diagonal + 1), right = at(edits - 1, diagonal - 1);
      const bool from_right = edits > 0 && right >= 0 && right + 1 >= down;
      const int start = edits == 0 ? 0 : from_right ? right + 1 : down;
      for (int i = start; i < x; ++i) Match(front_ + i, front_ + i - diagonal);
      diagonal += from_right ? -1 : 1;
    }
  }

  const std::vector<std::string>&a_, &b_;
  int front_ = 0, back_ = 0;
};

}  // namespace

std::string Diff(const Graph& a, const Graph& b) {
  std::vector<std::string> own_a, own_b;
  for (const Node& node : a.nodes()) own_a.push_back(OwnText(node));
  for (const Node& node : b.nodes()) own_b.push_back(OwnText(node));
  const std::vector<int> partner = Matching(own_a, own_b).partner;
  const auto same = [&](Value in_a, Value in_b) {
    return in_a.result == in_b.result && partner[in_a.node] == in_b.node;
  };
  std::string text;
  const std::string symbols_a = SymbolsText(a.symbols), symbols_b = SymbolsText(b.symbols);
  if (symbols_a != symbols_b) absl::StrAppend(&text, "-", symbols_a, "\n+", symbols_b, "\n");
  size_t next = 0;  // of b
  for (size_t n = 0; n < partner.size(); ++n) {
    if (partner[n] < 0) {
      absl::StrAppend(&text, "- ", Line(a, static_cast<int>(n)), "\n");
      continue;
    }
    for (; next < static_cast<size_t>(partner[n]); ++next)
      absl::StrAppend(&text, "+ ", Line(b, static_cast<int>(next)), "\n");
    next = partner[n] + 1;
    const std::vector<Value>&of_a = a.node(static_cast<int>(n)).inputs, &of_b = b.node(partner[n]).inputs;
    if (std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same)) continue;
    absl::StrAppend(&text, "~ ", Line(b, partner[n]), "  was ", Line(a, static_cast<int>(n)), "\n");
  }
  for (; next < b.nodes().size(); ++next) absl::StrAppend(&text, "+ ", Line(b, static_cast<int>(next)), "\n");
  for (size_t o = 0; o < std::max(a.outputs.size(), b.outputs.size()); ++o) {
    const bool in_a = o < a.outputs.size(), in_b = o < b.outputs.size();
    if (in_a && in_b && same(a.outputs[o], b.outputs[o])) continue;
    if (in_a) absl::StrAppend(&text, "- output ", o, " is ", RefText(a, a.outputs[o]), "\n");
    if (in_b) absl::StrAppend(&text, "+ output ", o, " is ", RefText(b, b.outputs[o]), "\n");
  }
  for (size_t o = 0; o < std::min(a.outputs.size(), b.outputs.size()); ++o) {
    const std::string in_a = OutputName(a.output_names, o), in_b = OutputName(b.output_names, o);
    if (in_a != in_b) absl::StrAppend(&text, "~ output ", o, " is called ", in_b, "  was ", in_a, "\n");
  }
  const auto donations = [&](const Graph& graph, const Graph& other, const char* mark) {
    for (const Donation& d : graph.donations) {
      if (std::find(other.donations.begin(), other.donations.end(), d) == other.donations.end())
        absl::StrAppend(&text, mark, " donate ", d.input, " -> ", d.output, "\n");
    }
  };
  donations(a, b, "-");
  donations(b, a, "+");
  return text;
}

}  // namespace quern::ir
