#include "support/wide_graph.h"

#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::testing {
namespace {

class Writer {
 public:
  Writer(uint64_t seed, const WideGraphOptions& options) : random_(seed), options_(options) {}

  std::string Text() {
    for (int i = 0; i < 2; ++i) Leaf(absl::StrCat("x", i), options_.real, options_.dims);
    Leaf("row", options_.real, options_.row);
    if (options_.mixed) {
      Leaf("i", "i32", options_.dims);
      Leaf("irow", "i32", options_.row);
      Leaf("h", "f16", options_.dims);
      Node("bool", "Lt", {Full(options_.real), Any(options_.real)});
    }
    while (next_ < options_.nodes) Step();
    // The first output has to do with every other one, so that all are of one region.
    const std::string& real = options_.real;
    int all = Node(real, "Min", {Full(real), Far(real)});
    std::vector<int> others = {Node(real, "Abs", {Full(real)})};
    if (options_.mixed) {
      others = {Node("i32", "Sub", {Full("i32"), Any("i32")}), Node("bool", "Not", {Full("bool")}),
                Node("f16", "Min", {Full("f16"), Full("f16")})};
      const std::string to = absl::StrCat(" {to = ", real, "}");
      all = Node(real, "Where", {others[1], all, Node(real, "Cast", {others[0]}, to)});
      all = Node(real, "Max", {all, Node(real, "Cast", {others[2]}, to)});
    }
    all = Node(real, "Sub", {all, options_.mixed ? Full(real) : others[0]});
    std::vector<std::string> outputs = {Ref(all)};
    for (const int other : others) outputs.push_back(Ref(other));
    return absl::StrCat("graph wide ", options_.symbols, " {\n", text_, "  return ", absl::StrJoin(outputs, ", "),
                        "\n}\n");
  }

 private:
  static std::string Ref(int value) { return absl::StrCat("%", value); }
  uint32_t Below(size_t count) { return static_cast<uint32_t>(random_() % count); }

  void Leaf(const std::string& name, const std::string& dtype, const std::string& dims) {
    absl::StrAppend(&text_, "  %", next_, " = Input() {name = \"", name, "\"} : ", dtype, "[", dims, "]\n");
    values_[dtype].push_back(next_);
    if (dims == options_.dims) full_[dtype].push_back(next_);
    ++next_;
  }
  int Node(const std::string& dtype, const std::string& op, const std::vector<int>& operands,
           const std::string& attributes = "") {
    std::vector<std::string> refs;
    for (const int operand : operands) refs.push_back(Ref(operand));
    absl::StrAppend(&text_, "  %", next_, " = ", op, "(", absl::StrJoin(refs, ", "), ")", attributes, " : ", dtype, "[",
                    options_.dims, "]\n");
    values_[dtype].push_back(next_);
    full_[dtype].push_back(next_);
    return next_++;
  }
  // A late value more often than an early one.
  int Pick(const std::vector<int>& from) {
    const size_t back = Below(3) == 0 ? Below(from.size()) : Below(std::min<size_t>(from.size(), 12));
    return from[from.size() - 1 - back];
  }
  int Full(const std::string& dtype) { return Pick(full_[dtype]); }
  int Any(const std::string& dtype) { return Pick(values_[dtype]); }
  int Far(const std::string& dtype) { return full_[dtype][full_[dtype].size() / 2]; }

  void Step() {
    const std::string& real = options_.real;
    const char* const twos[] = {"Sub", "Max", "Min", "Mul"};
    const char* const ones[] = {"Tanh", "Sigmoid", "Abs", "Neg", "Exp2"};
    const char* const integers[] = {"Add", "Sub", "Mul", "Max", "BitXor", "Div", "Mod"};
    const uint32_t kind = Below(options_.mixed ? 16 : 8);
    if (kind < 3) {
      Node(real, "Tanh", {Node(real, "Add", {Full(real), Any(real)})});
    } else if (kind < 6) {
      const char* const op = twos[Below(4)];
      Node(real, op, {Node(real, "Tanh", {Full(real)}), Node(real, "Sigmoid", {Full(real)})});
    } else if (kind < 8) {
      const char* const op = ones[Below(5)];
      Node(real, op, {Node(real, "Tanh", {Full(real)})});
    } else if (kind < 11) {
      Node("i32", integers[Below(7)], {Full("i32"), Any("i32")});
    } else if (kind < 12) {
      Node("bool", "Lt", {Full(real), Any(real)});
    } else if (kind < 13) {
      Node("bool", "Eq", {Full("i32"), Any("i32")});
    } else if (kind < 14) {
      Node(real, "Where", {Full("bool"), Full(real), Any(real)});
    } else if (kind < 15) {
      Node("f16", "Cast", {Node(real, "Tanh", {Full(real)})}, " {to = f16}");
    } else {
      Node(real, "Cast", {Node("f16", "Max", {Full("f16"), Full("f16")})}, absl::StrCat(" {to = ", real, "}"));
    }
  }

  std::mt19937_64 random_;
  const WideGraphOptions& options_;
  std::string text_;
  std::map<std::string, std::vector<int>> values_, full_;  // by dtype; full: of all dims
  int next_ = 0;
};

}  // namespace

std::string WideGraph(uint64_t seed, const WideGraphOptions& options) { return Writer(seed, options).Text(); }

}  // namespace quern::testing
