// The interpreter on integers is exact, and what it rounds it rounds once.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/interpret.h"

namespace quern::ir {
namespace {

using Bits = std::vector<uint64_t>;

RefTensor Integers(DType dtype, const Bits& bits) {
  RefTensor tensor{dtype, {static_cast<int64_t>(bits.size())}, {}};
  tensor.Allocate();
  for (size_t i = 0; i < bits.size(); ++i) tensor.SetInteger(static_cast<int64_t>(i), static_cast<int64_t>(bits[i]));
  return tensor;
}

// The result of one op over operands, its attributes given.
RefTensor Apply(const char* op, const std::vector<RefTensor>& operands, Attributes attributes = {}) {
  Graph graph;
  Feeds feeds;
  std::vector<Value> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    const std::vector<Extent> dims(operands[i].dims.begin(), operands[i].dims.end());
    inputs.push_back(*graph.AddInput(name, {operands[i].dtype, dims}));
    feeds[name] = operands[i];
  }
  const StatusOr<Value> made = graph.Add(op, inputs, std::move(attributes));
  EXPECT_TRUE(made.ok()) << made.status();
  graph.outputs = {*made};
  StatusOr<std::vector<RefTensor>> results = Interpret(graph, {}, feeds);
  EXPECT_TRUE(results.ok()) << results.status();
  return (*results)[0];
}

void ExpectIntegers(const RefTensor& got, DType dtype, const Bits& bits) {
  EXPECT_EQ(got.dtype, dtype);
  EXPECT_EQ(got.integers, Integers(dtype, bits).integers);
}

constexpr uint64_t kMin = uint64_t{1} << 63, kMax = kMin - 1, kNext = (uint64_t{1} << 53) + 1;

TEST(IntegerReference, ProductsAreExactAndWrap) {
  const auto matrix = [](DType dtype, int64_t rows, const Bits& bits) {
    RefTensor tensor = Integers(dtype, bits);
    tensor.dims = {rows, tensor.dims[0] / rows};
    return tensor;
  };
  const auto product = [&](DType a, const Bits& row, DType b, const Bits& column) {
    const int64_t k = static_cast<int64_t>(row.size());
    const RefTensor x = matrix(a, 1, row), w = matrix(b, k, column);
    const RefTensor y = Apply("MatMul", {x, w});
    EXPECT_EQ(Apply("DotGeneral", {x, w},
                    {{"lhs_contract", std::vector<int64_t>{1}}, {"rhs_contract", std::vector<int64_t>{0}}})
                  .integers,
              y.integers);
    return y;
  };
  const uint64_t low = static_cast<uint64_t>(-128);
  EXPECT_EQ(product(DType::kI8, {low, low, 127}, DType::kI8, {low, 127, low}).integers,
            std::vector<int64_t>({128 * 128 - 128 * 127 - 127 * 128}));
  EXPECT_EQ(product(DType::kU8, {255, 255}, DType::kI8, {low, low}).integers, std::vector<int64_t>({-65280}));
  EXPECT_EQ(product(DType::kI8, {low, 127}, DType::kU8, {255, 255}).integers, std::vector<int64_t>({-255}));
  EXPECT_EQ(product(DType::kU8, {255, 255}, DType::kU8, {255, 255}).integers, std::vector<int64_t>({130050}));
  EXPECT_EQ(product(DType::kI32, {2147483647, 1}, DType::kI32, {2147483647, 3}).integers, std::vector<int64_t>({4}));
  EXPECT_EQ(product(DType::kI64, {kMax, kNext}, DType::kI64, {kMax, 1}).integers,
            std::vector<int64_t>({static_cast<int64_t>(1 + kNext)}));
}

TEST(IntegerReference, ArithmeticWraps) {
  ExpectIntegers(
      Apply("Mul", {Integers(DType::kI32, {1000003, 123456789, 2147483647, 1188932672}),
                    Integers(DType::kI32, {1000003, 987654321, 2147483647, static_cast<uint64_t>(-978304207)})}),
      DType::kI32, {static_cast<uint64_t>(-721379959), static_cast<uint64_t>(-67153019), 1, 1082308672});
  ExpectIntegers(Apply("Mul", {Integers(DType::kU32, {4294967295}), Integers(DType::kU32, {4294967295})}), DType::kU32,
                 {1});
  ExpectIntegers(Apply("Mul", {Integers(DType::kU64, {~uint64_t{0}, 0x123456789abcdef1}),
                               Integers(DType::kU64, {~uint64_t{0}, 0xfedcba9876543211})}),
                 DType::kU64, {1, 0x123456789abcdef1 * 0xfedcba9876543211});
  ExpectIntegers(Apply("Add", {Integers(DType::kI64, {kNext, kMax}), Integers(DType::kI64, {kNext, 1})}), DType::kI64,
                 {2 * kNext, kMin});
  ExpectIntegers(Apply("Sub", {Integers(DType::kU64, {0}), Integers(DType::kU64, {1})}), DType::kU64, {~uint64_t{0}});
  ExpectIntegers(Apply("Neg", {Integers(DType::kI64, {kMin, kNext})}), DType::kI64, {kMin, 0 - kNext});
  ExpectIntegers(Apply("Abs", {Integers(DType::kI8, {0x80, 0xff})}), DType::kI8, {0x80, 1});
}

TEST(IntegerReference, DivisionTruncatesAndTheRemainderIsFloored) {
  const RefTensor a = Integers(DType::kI64, {kMin, kMin, kNext, static_cast<uint64_t>(-7), 5}),
                  b = Integers(DType::kI64, {~uint64_t{0}, 3, 2, 2, 0});
  ExpectIntegers(Apply("Div", {a, b}), DType::kI64,
                 {kMin, static_cast<uint64_t>(INT64_MIN / 3), kNext / 2, static_cast<uint64_t>(-3), 0});
  ExpectIntegers(Apply("Mod", {a, b}), DType::kI64, {0, 1, 1, 1, 0});
  ExpectIntegers(Apply("Div", {Integers(DType::kU64, {~uint64_t{0}}), Integers(DType::kU64, {3})}), DType::kU64,
                 {~uint64_t{0} / 3});
}

TEST(IntegerReference, BitsAndShifts) {
  ExpectIntegers(Apply("BitXor", {Integers(DType::kI64, {kNext}), Integers(DType::kI64, {kMax})}), DType::kI64,
                 {kNext ^ kMax});
  const RefTensor amounts = Integers(DType::kU64, {0, 1, 63, 64, ~uint64_t{0}});
  ExpectIntegers(Apply("Shl", {Integers(DType::kU64, {3, 3, 3, 3, 3}), amounts}), DType::kU64, {3, 6, kMin, 0, 0});
  ExpectIntegers(Apply("Shr", {Integers(DType::kU64, {kMin, kMin, kMin, kMin, kMin}), amounts}), DType::kU64,
                 {kMin, kMin >> 1, 1, 0, 0});
  const RefTensor small = Integers(DType::kI32, {0, 31, 32, static_cast<uint64_t>(-1)});
  ExpectIntegers(Apply("Shl", {Integers(DType::kI32, {1, 3, 3, 3}), small}), DType::kI32, {1, 0x80000000, 0, 0});
  ExpectIntegers(Apply("Shr", {Integers(DType::kI32, {8, 0x80000000, 0x80000000, 0x80000000}), small}), DType::kI32,
                 {8, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}});
}

TEST(IntegerReference, OrderIsThatOfTheDType) {
  const Bits bits = {kMin, 1};
  const RefTensor i = Integers(DType::kI64, bits), u = Integers(DType::kU64, bits), one = Integers(DType::kU64, {1, 1});
  ExpectIntegers(Apply("Max", {i, Integers(DType::kI64, {0, 0})}), DType::kI64, {0, 1});
  ExpectIntegers(Apply("Max", {u, one}), DType::kU64, bits);
  EXPECT_EQ(Apply("Lt", {u, one}).data, (std::vector<double>{0, 0}));
  EXPECT_EQ(Apply("Lt", {i, Integers(DType::kI64, {1, 1})}).data, (std::vector<double>{1, 0}));
  EXPECT_EQ(Apply("Eq", {Integers(DType::kU64, {kNext}), Integers(DType::kU64, {kNext - 1})}).data,
            std::vector<double>{0});
}

TEST(IntegerReference, Reductions) {
  auto reduce = [](const char* op, const RefTensor& x) {
    return Apply("Reduce", {x}, {{"op", std::string(op)}, {"axes", std::vector<int64_t>{0}}});
  };
  const RefTensor x = Integers(DType::kI64, {kMax, 1, kNext});
  ExpectIntegers(reduce("sum", x), DType::kI64, {kMin + kNext});
  ExpectIntegers(reduce("prod", Integers(DType::kI32, {123456789, 987654321, 3})), DType::kI32,
                 {static_cast<uint64_t>(-67153019) * 3});
  ExpectIntegers(reduce("max", x), DType::kI64, {kMax});
  ExpectIntegers(reduce("max", Integers(DType::kI64, {})), DType::kI64, {kMin});
  ExpectIntegers(reduce("min", Integers(DType::kU64, {})), DType::kU64, {~uint64_t{0}});
}

TEST(IntegerReference, Scans) {
  const RefTensor x = Integers(DType::kI64, {kMax, 1, kNext});
  auto scan = [&](bool exclusive, bool reverse) {
    return Apply("CumSum", {x}, {{"axis", int64_t{0}}, {"exclusive", exclusive}, {"reverse", reverse}});
  };
  ExpectIntegers(scan(false, false), DType::kI64, {kMax, kMin, kMin + kNext});
  ExpectIntegers(scan(true, false), DType::kI64, {0, kMax, kMin});
  ExpectIntegers(scan(false, true), DType::kI64, {kMin + kNext, 1 + kNext, kNext});
}

// Neighbours that one double stands for.
TEST(IntegerReference, PlacesOfTheLargestAndSmallest) {
  const RefTensor x = Integers(DType::kU64, {kNext, kMin + 1, kMin, kNext - 1, kMin + 1, kNext - 1});
  auto place = [&](const char* op, bool last) { return Apply(op, {x}, {{"axis", int64_t{0}}, {"last", last}}); };
  ExpectIntegers(place("ArgMax", false), DType::kI64, {1});
  ExpectIntegers(place("ArgMax", true), DType::kI64, {4});
  ExpectIntegers(place("ArgMin", false), DType::kI64, {3});
  ExpectIntegers(place("ArgMin", true), DType::kI64, {5});
  const RefTensor y{DType::kF32, {5}, {1, NAN, 3, NAN, 3}};
  ExpectIntegers(Apply("ArgMax", {y}, {{"axis", int64_t{0}}, {"last", true}}), DType::kI64, {1});
}

TEST(IntegerReference, CastsSaturateFromFloatsAndWrapFromIntegers) {
  auto cast = [](const RefTensor& x, DType to) { return Apply("Cast", {x}, {{"to", to}}); };
  const RefTensor floats{DType::kF64, {6}, {NAN, -1.5, 0x1p63, 0x1p64, -0x1p70, INFINITY}};
  ExpectIntegers(cast(floats, DType::kU64), DType::kU64, {0, 0, kMin, ~uint64_t{0}, 0, ~uint64_t{0}});
  ExpectIntegers(cast(floats, DType::kI64), DType::kI64, {0, ~uint64_t{0}, kMax, kMax, kMin, kMax});
  ExpectIntegers(cast(Integers(DType::kI64, {kNext, 0x1ff}), DType::kU8), DType::kU8, {1, 0xff});
  ExpectIntegers(cast(Integers(DType::kI32, {0x80000000}), DType::kU64), DType::kU64, {0xffffffff80000000});
  EXPECT_EQ(cast(Integers(DType::kU64, {~uint64_t{0}}), DType::kF64).data, std::vector<double>{0x1p64});
  EXPECT_EQ(cast(Integers(DType::kI64, {kMin, 0}), DType::kBool).data, (std::vector<double>{1, 0}));
}

// 2^62 + 2^54 is half way between two bf16, and a double does not hold the 1 that decides.
TEST(IntegerReference, IntegersBecomeFloatsByOneRounding) {
  const uint64_t above = (uint64_t{1} << 62) + (uint64_t{1} << 54) + 1;
  const RefTensor y = Apply("Cast", {Integers(DType::kI64, {above, 0 - above, above - 1})}, {{"to", DType::kBF16}});
  EXPECT_EQ(y.data, (std::vector<double>{0x1.02p62, -0x1.02p62, 0x1p62}));
  const uint64_t over = (uint64_t{1} << 60) + (uint64_t{1} << 36) + 1;
  const RefTensor single = Apply("Cast", {Integers(DType::kU64, {over})}, {{"to", DType::kF32}});
  EXPECT_EQ(BytesOf(single), BytesOf({DType::kF32, {1}, {0x1.000002p60}}));
}

TEST(IntegerReference, DoublesBecomeHalvesByOneRounding) {
  const RefTensor x{DType::kF64, {2}, {1 + 0x1p-11 + 0x1p-40, -(1 + 0x1p-11 + 0x1p-40)}};
  EXPECT_EQ(Apply("Cast", {x}, {{"to", DType::kF16}}).data, (std::vector<double>{1 + 0x1p-10, -1 - 0x1p-10}));
  const RefTensor z{DType::kF64, {1}, {1 + 0x1p-8 + 0x1p-40}};
  EXPECT_EQ(Apply("Cast", {z}, {{"to", DType::kBF16}}).data, std::vector<double>{1 + 0x1p-7});
}

TEST(IntegerReference, ElementsAreMovedWhole) {
  const RefTensor x = Integers(DType::kU64, {kNext, ~uint64_t{0}, kMin + 1});
  ExpectIntegers(Apply("Gather", {x, Integers(DType::kI64, {2, kMin, kMax, ~uint64_t{0}})}), DType::kU64,
                 {kMin + 1, kNext, kMin + 1, kMin + 1});
  ExpectIntegers(Apply("Concat", {x, x}, {{"axis", int64_t{0}}}), DType::kU64,
                 {kNext, ~uint64_t{0}, kMin + 1, kNext, ~uint64_t{0}, kMin + 1});
  ExpectIntegers(
      Apply("Slice", {x}, {{"axis", int64_t{0}}, {"start", int64_t{0}}, {"stop", int64_t{3}}, {"step", int64_t{2}}}),
      DType::kU64, {kNext, kMin + 1});
  ExpectIntegers(
      Apply("Pad", {x}, {{"low", std::vector<int64_t>{1}}, {"high", std::vector<int64_t>{0}}, {"value", 1e30}}),
      DType::kU64, {~uint64_t{0}, kNext, ~uint64_t{0}, kMin + 1});
  RefTensor condition{DType::kBool, {3}, {1, 0, 1}};
  ExpectIntegers(Apply("Where", {condition, x, Integers(DType::kU64, {1, 2, 3})}), DType::kU64, {kNext, 2, kMin + 1});
  ExpectIntegers(
      Apply("Update", {x, Integers(DType::kU64, {kMax})}, {{"axis", int64_t{0}}, {"start", std::vector<Extent>{1}}}),
      DType::kU64, {kNext, kMax, kMin + 1});
  EXPECT_EQ(BytesOf(x).size(), 24u);
  EXPECT_EQ(RefTensorFromBytes(DType::kU64, {3}, BytesOf(x))->integers, x.integers);
}

}  // namespace
}  // namespace quern::ir
