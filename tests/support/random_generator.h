// The maker of random graphs; random_graph.h is what tests use. Recipes of nodes with bodies are random_bodies.cc's,
// those of convolutions and contractions random_contractions.cc's, examples random_examples.cc's, and sizes that data
// decide random_counted.cc's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/half.h"
#include "ir/op.h"
#include "ir/product.h"
#include "support/random_graph.h"

namespace quern::testing {

using ir::Attributes;
using ir::OperandKind;
using ir::OpKind;
using ir::TensorType;
using ir::Value;

inline constexpr int64_t kMaxElements = 4000;
inline constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 31, 33};

// The stored form of an integer, wrapped, little-endian.
inline std::vector<uint8_t> ScalarBytesOf(DType dtype, int64_t value) {
  std::vector<uint8_t> bytes(ScalarBytes(dtype));
  std::memcpy(bytes.data(), &value, bytes.size());
  return bytes;
}

// The stored form of a number, little-endian.
inline std::vector<uint8_t> ScalarBytesOf(DType dtype, double value) {
  std::vector<uint8_t> bytes(ScalarBytes(dtype));
  const float narrow = static_cast<float>(value);
  const uint16_t half = dtype == DType::kF16 ? FloatToHalf(narrow) : FloatToBFloat16(narrow);
  const int64_t integer = static_cast<int64_t>(value);
  if (dtype == DType::kF32)
    std::memcpy(bytes.data(), &narrow, 4);
  else if (dtype == DType::kF64)
    std::memcpy(bytes.data(), &value, 8);
  else if (IsFloat(dtype))
    std::memcpy(bytes.data(), &half, 2);
  else
    std::memcpy(bytes.data(), &integer, bytes.size());
  return bytes;
}

// Half of them small, the others from the whole range of the dtype or from where precision and sign end.
inline int64_t RandomInteger(std::mt19937_64& random, DType dtype) {
  const int64_t small = static_cast<int64_t>(random() % 7) - (IsUnsigned(dtype) ? 0 : 3);
  constexpr int kEdges[] = {7, 8, 15, 16, 24, 31, 32, 53, 54, 63};
  switch (random() % 4) {
    case 0: return static_cast<int64_t>(random());
    case 1:
      return static_cast<int64_t>((uint64_t{1} << kEdges[random() % std::size(kEdges)]) + static_cast<uint64_t>(small));
    default: return small;
  }
}

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {
    made_.graph.name = "random";
    made_.graph.symbols = {
        {"B", {1, 4}}, {"P", {0, kMostPast}}, {"S", {1, Below(3) == 0 ? int64_t{1} << 20 : 32}}, {"T", {1, 64}}};
    made_.binding =
        RandomBinding(1 + Below(3), Pick<int64_t>({1, 2, 5, 8, 11, 16}), Pick<int64_t>({0, 1, 7, kMostPast}));
  }

  // Of a body of a node of `outer`, which outlives it.
  Generator(uint64_t seed, const RandomGraphOptions& options, Generator& outer, std::string prefix)
      : random_(seed), options_(options), outer_(&outer), prefix_(std::move(prefix)) {
    made_.graph.name = "body";
    made_.graph.symbols = outer.made_.graph.symbols;
    made_.binding = outer.made_.binding;
  }

  RandomGraph Make() {
    NewLeaf({DType::kF32, RandomDims()});
    while (static_cast<int>(made_.graph.nodes().size()) < options_.nodes) Step();
    // Outputs: what nothing reads, and now and then something that is read too.
    const auto users = made_.graph.Users();
    for (int n = 0; n < static_cast<int>(users.size()); ++n) {
      const ir::Node& node = made_.graph.node(n);
      if (node.op->kind == OpKind::kLeaf || IsPartOfState({n, 0})) continue;
      for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
        if (IsComplex(node.results[r].dtype)) continue;
        if ((users[n].empty() && !IsOutput({n, r})) || Below(12) == 0) made_.graph.outputs.push_back({n, r});
      }
    }
    if (made_.graph.outputs.empty()) made_.graph.outputs.push_back({static_cast<int>(users.size()) - 1, 0});
    const Status verified = ir::Verify(made_.graph);
    QUERN_CHECK(verified.ok());
    for (const Found& found : found_) made_.binding.erase(found.symbol);
    return std::move(made_);
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  template <typename T>
  T Pick(const std::vector<T>& from) {
    return from[Below(static_cast<int64_t>(from.size()))];
  }
  bool IsOutput(Value value) const {
    return std::find(made_.graph.outputs.begin(), made_.graph.outputs.end(), value) != made_.graph.outputs.end();
  }

  // A view of an input that the step overwrites cannot be an output.
  bool IsPartOfState(Value value) const {
    const ir::Node* node = &made_.graph.node(value.node);
    while (node->op->kind == OpKind::kIndex && !node->inputs.empty()) node = &made_.graph.node(node->inputs[0].node);
    if (node->op->kind != OpKind::kLeaf || node->attributes.Find("name") == nullptr) return false;
    const std::string& name = node->attributes.String("name");
    return std::any_of(made_.graph.donations.begin(), made_.graph.donations.end(),
                       [&](const ir::Donation& d) { return d.input == name; });
  }

  const TensorType& type(Value value) const { return made_.graph.type(value); }
  int64_t Size(const Extent& extent) const { return *extent.Evaluate(made_.binding); }
  int64_t Elements(const std::vector<Extent>& dims) const {
    int64_t product = 1;
    for (const Extent& dim : dims) product *= Size(dim);
    return product;
  }

  Extent RandomExtent() {
    if (Below(5) == 0) return Extent::Symbol(Below(3) == 0 ? "B" : "S");
    const int64_t size = kSizes[Below(std::size(kSizes))];
    return Extent(options_.most_elements > 600 && Below(2) == 0 ? size * 17 : size);
  }
  std::vector<Extent> RandomDims() {
    while (true) {
      std::vector<Extent> dims;
      const int64_t rank = 1 + Below(4);
      for (int64_t d = 0; d < rank; ++d) dims.push_back(RandomExtent());
      // One symbol at most once: products stay polynomials of degree one in each.
      int s = 0, b = 0;
      for (const Extent& dim : dims) s += dim == Extent::Symbol("S"), b += dim == Extent::Symbol("B");
      if (s <= 1 && b <= 1 && Elements(dims) <= options_.most_elements) return dims;
    }
  }

  Value Add(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}) {
    const StatusOr<Value> made = made_.graph.Add(op, std::move(inputs), std::move(attributes), Origin());
    if (!made.ok())
      fprintf(stderr, "%s\n%s\n", std::string(made.status().message()).c_str(), ir::Print(made_.graph).c_str());
    QUERN_CHECK(made.ok());
    for (size_t r = 0; r < made_.graph.node(made->node).results.size(); ++r)
      pool_.push_back({made->node, static_cast<int>(r)});
    return *made;
  }
  int Origin() { return made_.graph.AddOrigin({absl::StrCat("n", made_.graph.nodes().size()), ""}); }

  Value Scalar(DType dtype, double value) {
    return *made_.graph.AddConstant({dtype, {}}, ScalarBytesOf(dtype, value), Origin());
  }
  Value NewLeaf(TensorType type) {
    if (NamesFound(type)) return NewFound(std::move(type));
    const std::string name = absl::StrCat(prefix_, "v", made_.graph.nodes().size());
    const bool constant =
        std::all_of(type.dims.begin(), type.dims.end(), [](const Extent& e) { return e.is_constant(); });
    const bool param = constant && Below(3) == 0;
    if (outer_ != nullptr && !param) captures_.push_back(outer_->ValueOf(type));
    const StatusOr<Value> made =
        param ? made_.graph.AddParam(name, std::move(type)) : made_.graph.AddInput(name, std::move(type));
    QUERN_CHECK(made.ok());
    if (outer_ != nullptr && !param) captured_.push_back(made->node);
    pool_.push_back(*made);
    return *made;
  }

  Value NewWeight(DType dtype, std::vector<Extent> dims) {
    return *made_.graph.AddParam(absl::StrCat(prefix_, "w", made_.graph.nodes().size()), {dtype, std::move(dims)});
  }

  bool Fits(OperandKind kind, DType dtype) const { return !IsBlock(dtype) && ir::Accepts(kind, dtype); }
  DType AnyDType(OperandKind kind) {
    if (!options_.discontinuous && Fits(kind, DType::kF32)) return DType::kF32;  // rounding to halves is a step too
    while (true) {
      const DType dtype = Pick<DType>({DType::kF32, DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kBF16,
                                       DType::kF64, DType::kI32, DType::kI64, DType::kI64, DType::kI16, DType::kI8,
                                       DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool});
      if (Fits(kind, dtype)) return dtype;
    }
  }
  // A recent value of that kind, or a new leaf.
  Value Some(OperandKind kind, int least_rank = 0) {
    for (int tries = 0; tries < 12; ++tries) {
      const int64_t back = Below(std::min<int64_t>(static_cast<int64_t>(pool_.size()), 10));
      const Value value = pool_[pool_.size() - 1 - back];
      if (Fits(kind, type(value).dtype) && type(value).rank() >= least_rank) return value;
    }
    while (true) {
      TensorType fresh{AnyDType(kind), RandomDims()};
      if (fresh.rank() >= least_rank) return NewLeaf(std::move(fresh));
    }
  }
  Value SomeF32(int least_rank = 0) {
    const Value value = Some(OperandKind::kFloat, least_rank);
    return type(value).dtype == DType::kF32 ? value : Add("Cast", {value}, {{"to", DType::kF32}});
  }
  // A value of that dtype that broadcasts against `like`: of equal extents, with ones, of lower rank, or a constant.
  Value Partner(DType dtype, const std::vector<Extent>& like) {
    if (Below(5) == 0) {
      if (IsInteger(dtype))
        return *made_.graph.AddConstant({dtype, {}}, ScalarBytesOf(dtype, RandomInteger(random_, dtype)), Origin());
      return Scalar(dtype, dtype == DType::kBool ? 1 : Pick<double>({1, 2, 0.5, -1, 3}));
    }
    if (Below(3) != 0) {
      for (int tries = 0; tries < 8; ++tries) {
        const Value value = pool_[Below(static_cast<int64_t>(pool_.size()))];
        if (type(value).dtype == dtype && type(value).dims == like) return value;
      }
    }
    std::vector<Extent> dims = like;
    if (!dims.empty() && Below(3) == 0) dims.erase(dims.begin());
    for (Extent& dim : dims) {
      if (Below(4) == 0) dim = Extent(1);
      if (dim == Extent::Symbol("S") && Below(4) == 0) dim = Extent::Symbol("T");  // which must be equal then
    }
    return NewLeaf({dtype, std::move(dims)});
  }

  // Maps any float into [low, high], where the op is defined.
  Value Squashed(Value x, double low, double high) {
    const DType dtype = type(x).dtype;
    return Add("Add", {Add("Mul", {Add("Sigmoid", {x}), Scalar(dtype, high - low)}), Scalar(dtype, low)});
  }
  static constexpr double kBound = 8;
  // Whether floats within bounds give results within bounds, as far as trying shows.
  bool StaysWithin(const ir::OpDef& op, DType dtype) {
    const auto [known, fresh] = tame_.emplace(std::pair(&op, dtype), true);
    if (!fresh) return known->second;
    constexpr int kSteps = 25;
    ir::Node node;
    node.op = &op;
    for (const ir::AttrDef& def : op.attributes) {
      if (def.default_value) node.attributes.Set(def.name, *def.default_value);
    }
    std::vector<ir::RefTensor> operands, results;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const bool condition = op.operands[i].own_dtype;
      std::vector<int64_t> dims(op.operands.size(), 1);
      dims[i] = kSteps;
      ir::RefTensor& operand = operands.emplace_back(ir::RefTensor{condition ? DType::kBool : dtype, dims, {}});
      for (int s = 0; s < kSteps; ++s) {
        operand.data.push_back(condition ? s % 2 : -kBound + 2 * kBound * s / (kSteps - 1));
      }
    }
    ir::RefTensor& result =
        results.emplace_back(ir::RefTensor{dtype, std::vector<int64_t>(op.operands.size(), kSteps), {}});
    result.Allocate();
    std::vector<const ir::RefTensor*> pointers;
    for (const ir::RefTensor& operand : operands) pointers.push_back(&operand);
    const Binding none;
    ir::RefContext context{node, pointers, none, results};
    QUERN_CHECK(op.reference(context).ok());
    for (const double value : result.data)
      known->second = known->second && (std::isnan(value) || std::fabs(value) <= kBound + 1);
    return known->second;
  }
  // Later nodes read a float x only within bounds. Integers wrap, and have none.
  void Tame(Value x) {
    const DType dtype = type(x).dtype;
    if (!IsFloat(dtype)) return;
    const ir::Node& node = made_.graph.node(x.node);
    if (node.op->kind == OpKind::kElementwise && StaysWithin(*node.op, dtype)) return;
    Limit(x);
  }
  void Limit(Value x) {
    const DType dtype = type(x).dtype;
    const Value low = Add("Min", {x, Scalar(dtype, kBound)});
    const Value both = Add("Max", {low, Scalar(dtype, -kBound)});
    std::erase_if(pool_, [&](Value value) { return value == x || value == low; });
    if (std::find(pool_.begin(), pool_.end(), both) == pool_.end()) pool_.push_back(both);
  }

  void Step() {
    struct Recipe {
      int weight;
      void (Generator::*make)();
    };
    static constexpr Recipe kRecipes[] = {
        {16, &Generator::AnyElementwise}, {2, &Generator::AnyCast},        {4, &Generator::AnyReduce},
        {1, &Generator::AnyCumSum},       {1, &Generator::AnyArgFold},     {2, &Generator::AnyComposite},
        {2, &Generator::AnyReshape},      {2, &Generator::AnyTranspose},   {2, &Generator::AnyPart},
        {2, &Generator::AnyJoin},         {3, &Generator::AnyMatMul},      {1, &Generator::AnyGather},
        {1, &Generator::AnyUpdate},       {1, &Generator::AnyRope},        {1, &Generator::AnyAttention},
        {2, &Generator::AnyConvolution},  {1, &Generator::AnyContraction}, {8, &Generator::AnyExample},
        {1, &Generator::AnyComplex},
    };
    static constexpr Recipe kBodies[] = {{1, &Generator::AnyIf},
                                         {2, &Generator::AnyWhile},
                                         {1, &Generator::AnyScan},
                                         {1, &Generator::AnyFunction},
                                         {1, &Generator::AnyScanBackward}};
    if (options_.counted && found_.size() < 2 && Below(5) == 0) return AnyCounted();
    if (options_.bodies > 0 && Below(3) == 0) {
      int64_t at = Below(6);
      for (const Recipe& recipe : kBodies) {
        at -= recipe.weight;
        if (at < 0) return (this->*recipe.make)();
      }
    }
    int total = 0;
    for (const Recipe& recipe : kRecipes) total += recipe.weight;
    int64_t at = Below(total);
    for (const Recipe& recipe : kRecipes) {
      at -= recipe.weight;
      if (at >= 0) continue;
      (this->*recipe.make)();
      return;
    }
  }

  // Whether an elementwise op takes floats, and a small error of one moves the result by little.
  static bool IsSmooth(const ir::OpDef& op) { return !op.jumps && ir::Accepts(op.operands.back().kind, DType::kF32); }

  void AnyElementwise() {
    const ir::OpDef* op = nullptr;
    do {
      op = ir::Ops()[Below(static_cast<int64_t>(ir::Ops().size()))];
    } while (op->kind != OpKind::kElementwise || !op->examples.empty() || !(options_.discontinuous || IsSmooth(*op)));
    const bool where = op->operands[0].own_dtype;
    const OperandKind kind = op->operands.back().kind;
    Value x = !options_.discontinuous ? SomeF32()
              : Below(3) == 0         ? NewLeaf({AnyDType(kind), RandomDims()})
                                      : Some(kind);
    const DType dtype = type(x).dtype;
    if (IsFloat(dtype) && (op->sample_low > -4 || op->sample_high < 4))
      x = Squashed(x, op->sample_low, std::min(op->sample_high, op->sample_low + 8));
    std::vector<Value> inputs = {x};
    while (inputs.size() < op->operands.size()) {
      const bool condition = where && inputs.size() + 1 == op->operands.size();
      const DType wanted = condition ? DType::kBool : dtype;
      Value y = Partner(wanted, type(x).dims);
      if (condition && Below(3) == 0) y = Add("Not", {y});
      if (IsFloat(wanted) && op->sample_low > -4)
        y = Squashed(y, op->sample_low, std::min(op->sample_high, op->sample_low + 8));
      inputs.push_back(y);
    }
    if (where)
      std::reverse(inputs.begin(), inputs.end());
    else if (Below(2) == 0)
      std::reverse(inputs.begin(), inputs.end());
    if (inputs[0] == x && inputs.size() == 2 && Below(8) == 0) inputs[1] = x;
    Attributes attributes;
    for (const ir::AttrDef& def : op->attributes) {
      if (Below(2) == 0) continue;  // the default
      if (def.kind == ir::AttrKind::kFloat) attributes.Set(def.name, Pick<double>({0.25, 0.5, 1}));
      if (def.kind == ir::AttrKind::kBool) attributes.Set(def.name, Below(2) == 0);
    }
    Tame(Add(op->name, std::move(inputs), std::move(attributes)));
  }

  // random_examples.cc
  // One of the op's own examples, over values of these types that there are, or new ones.
  void AnyExample();
  void AnyComplex();
  // Whether the op stands for a C function's.
  static bool BecomesCall(const ir::OpDef& op, const std::vector<TensorType>& types, const Attributes& attributes);
  // Numbers of c64 live inside of a graph: they are made of floats, and seen as such.
  Value ComplexOf(TensorType wanted);
  void Seen(Value z);

  void AnyCast() {
    const Value x = Some(options_.discontinuous ? OperandKind::kAny : OperandKind::kFloat);
    const Value y = Add("Cast", {x}, {{"to", options_.discontinuous ? AnyDType(OperandKind::kAny) : DType::kF32}});
    if (IsInteger(type(x).dtype) && IsFloat(type(y).dtype)) Limit(y);
  }
  // What ops that move elements move.
  OperandKind Moved() const { return options_.discontinuous ? OperandKind::kAny : OperandKind::kFloat; }

  void AnyReduce() {
    const Value x = Some(options_.discontinuous ? OperandKind::kNumeric : OperandKind::kFloat, 1);
    const bool integer = IsInteger(type(x).dtype);
    const int rank = type(x).rank();
    std::vector<int64_t> axes;
    if (Below(2) == 0) {
      axes = {-1};
    } else {
      for (int d = 0; d < rank; ++d) {
        if (Below(2) == 0) axes.push_back(d);
      }
      if (axes.empty()) axes = {Below(rank)};
    }
    int64_t count = 1;
    for (const int64_t axis : axes) count *= Size(type(x).dims[axis < 0 ? axis + rank : axis]);
    std::string op = Pick<const char*>({"sum", "mean", "max", "min", "prod"});
    if (integer && op == "mean") op = "sum";
    if (!integer && op == "prod" && count > 32) op = "max";  // products of many leave the range of f32
    Tame(Add("Reduce", {x}, {{"op", std::move(op)}, {"axes", axes}, {"keep_dim", Below(3) != 0}}));
  }

  void AnyCumSum() {
    const Value x = Some(OperandKind::kNumeric, 1);
    const int64_t axis = Below(type(x).rank());
    if (IsFloat(type(x).dtype) && Size(type(x).dims[axis]) > 64) return;  // sums of many leave the range of halves
    // From the end on as well, along fixed lengths and symbols.
    Tame(Add("CumSum", {x}, {{"axis", axis}, {"exclusive", Below(2) == 0}, {"reverse", Below(2) == 0}}));
  }

  // Where values are close a kernel's rounding decides.
  void AnyArgFold() {
    if (!options_.discontinuous) return;
    const Value x = Some(OperandKind::kNumeric, 1);
    const std::string op = Pick<const char*>({"ArgMax", "ArgMin"});
    const int64_t axis = Below(type(x).rank());
    Tame(Add(op, {x}, {{"axis", axis}, {"keep_dim", Below(2) == 0}, {"last", Below(2) == 0}}));
  }

  void AnyComposite() {
    if (!options_.composites) return;
    const Value x = SomeF32(1);
    const Extent width = type(x).dims.back();
    switch (Below(6)) {
      case 0: Add("Softmax", {x}, {{"axis", Below(3) == 0 ? int64_t{0} : int64_t{-1}}}); break;
      case 1: Tame(Add("RmsNorm", {x, NewLeaf({DType::kF32, {width}})}, {{"eps", 1e-2}})); break;
      case 2:
        Tame(Add("LayerNorm", {x, NewLeaf({DType::kF32, {width}}), NewLeaf({DType::kF32, {width}})}, {{"eps", 1e-2}}));
        break;
      case 3: {
        const Value residual = NewLeaf(type(x));
        const Value norm = Add("FusedResidualRmsNorm", {x, residual, NewLeaf({DType::kF32, {width}})}, {{"eps", 1e-2}});
        Tame(norm);
        break;
      }
      case 4: {
        if (!width.is_constant() || width.constant() % 2 != 0) return;
        Tame(Add("FusedSwiGLU", {x}, {{"gate_first", Below(2) == 0}}));
        break;
      }
      case 5: {
        if (type(x).rank() < 2 || !width.is_constant()) return;
        const bool transposed = Below(2) == 0;
        const Extent n(Pick<int64_t>({5, 8, 17}));
        const Value w = NewWeight(DType::kF32, transposed ? std::vector{n, width} : std::vector{width, n}),
                    b = NewLeaf({DType::kF32, {n}});
        const std::string act = Pick<const char*>({"", "Silu", "Relu", "LeakyRelu", "Gelu", "Tanh"});
        Tame(Add("FusedMatMulBiasAct", {x, w, b}, {{"act", act}, {"transpose_b", transposed}}));
        break;
      }
    }
  }

  void AnyReshape() {
    const Value x = Some(OperandKind::kAny);
    std::vector<Extent> shape = type(x).dims;
    switch (Below(3)) {
      case 0: shape.insert(shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1), Extent(1)); break;
      case 1:
        for (size_t d = 0; d + 1 < shape.size(); ++d) {
          if (!shape[d + 1].is_constant()) continue;
          shape[d] = shape[d] * shape[d + 1];
          shape.erase(shape.begin() + static_cast<int64_t>(d) + 1);
          break;
        }
        break;
      case 2:
        for (size_t d = 0; d < shape.size(); ++d) {
          if (!shape[d].is_constant() || shape[d].constant() % 2 != 0 || shape[d].constant() < 4) continue;
          shape[d] = Extent(shape[d].constant() / 2);
          shape.insert(shape.begin() + static_cast<int64_t>(d) + 1, Extent(2));
          break;
        }
        break;
    }
    if (shape.size() <= 5) Add("Reshape", {x}, {{"shape", shape}});
  }

  void AnyTranspose() {
    const Value x = Some(OperandKind::kAny, 2);
    std::vector<int64_t> perm(type(x).rank());
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
    std::shuffle(perm.begin(), perm.end(), random_);
    Add("Transpose", {x}, {{"perm", perm}});
  }

  // A part of a tensor, or more of it.
  void AnyPart() {
    const Value x = Some(Moved(), 1);
    const std::vector<Extent> dims = type(x).dims;
    const int64_t axis = Below(static_cast<int64_t>(dims.size()));
    const Extent& dim = dims[axis];
    switch (Below(5)) {
      case 4: Add("Reverse", {x}, {{"axes", std::vector<int64_t>{axis}}}); return;
      case 0:
        if (!dim.is_constant() || dim == Extent(0)) return;
        {
          const int64_t start = Below(dim.constant()), length = 1 + Below(dim.constant() - start);
          Add("Narrow", {x},
              {{"axis", axis}, {"start", std::vector<Extent>{start}}, {"length", std::vector<Extent>{length}}});
        }
        return;
      case 1: {
        const int64_t least = dim.LowerBound(made_.graph.symbols).value_or(0);
        if (least == 0) return;
        const int64_t start = Below(least);
        ir::Attributes attributes = {{"axis", axis}, {"start", start}, {"step", 1 + Below(3)}};
        if (Below(3) == 0) attributes.Set("stop", start + 1 + Below(least - start));
        Add("Slice", {x}, std::move(attributes));
        return;
      }
      case 2: {
        std::vector<int64_t> low(dims.size()), high(dims.size());
        low[axis] = Below(3);
        high[axis] = Below(3);
        Add("Pad", {x}, {{"low", low}, {"high", high}, {"value", 0.5}});
        return;
      }
      case 3: {
        std::vector<Extent> shape = dims;
        if (Below(2) == 0)
          shape.insert(shape.begin(), Extent(3));
        else if (dim == Extent(1))
          shape[axis] = Extent(5);
        // Windows of windows have as many dimensions as a tensor may have.
        if (shape.size() <= ir::kMostDims && Elements(shape) <= kMaxElements) Add("Expand", {x}, {{"shape", shape}});
        return;
      }
    }
  }

  void AnyJoin() {
    const Value x = Some(Moved(), 1);
    const int64_t axis = Below(type(x).rank());
    TensorType other = type(x);
    if (other.dims[axis].is_constant()) other.dims[axis] = Extent(1 + Below(5));
    const Value y = Below(3) == 0 ? x : NewLeaf(other);
    if (Elements(type(x).dims) * 3 <= kMaxElements) Add("Concat", {y, x}, {{"axis", axis}});
  }

  // Rows of blocks under a new value: what the pool holds is seldom as wide as a block.
  void BlockMatMul() {
    std::vector<DType> formats;
    for (int d = 0; d < kDTypeCount; ++d) {
      const DType format = static_cast<DType>(d);
      if (ir::Accepts(OperandKind::kWeight, format) && IsBlock(format)) formats.push_back(format);
    }
    const DType dtype = Pick<DType>(formats);
    const Extent k(Row(dtype).block_elements * Pick<int64_t>({1, 1, 2, 3})), n(Pick<int64_t>({1, 3, 8, 16, 17, 33}));
    Value a = NewLeaf({DType::kF32, {RandomExtent(), k}});
    if (Below(2) == 0) a = Add(Pick<const char*>({"Silu", "Tanh", "Abs"}), {a});
    const int products = Below(3) == 0 ? 2 : 1;
    for (int i = 0; i < products; ++i) Tame(Add("MatMul", {a, NewWeight(dtype, {n, k})}, {{"transpose_b", true}}));
  }

  void IntegerMatMul() {
    const std::vector<Extent> dims = RandomDims();
    if (dims.size() < 2) return;
    const bool bytes = Below(3) != 0, transposed = Below(2) == 0;
    const auto dtype = [&] { return Below(2) == 0 ? DType::kI8 : DType::kU8; };
    const DType wide = Below(2) == 0 ? DType::kI32 : DType::kI64;
    const Extent n(Pick<int64_t>({1, 3, 8, 13, 33})), &k = dims.back();
    const Value a = NewLeaf({bytes ? dtype() : wide, dims});
    const Value b = NewLeaf({bytes ? dtype() : wide, transposed ? std::vector{n, k} : std::vector{k, n}});
    Add("MatMul", {a, b}, {{"transpose_b", transposed}});
  }

  void AnyMatMul() {
    if (options_.blocks && Below(4) == 0) return BlockMatMul();
    if (options_.discontinuous && Below(5) == 0) return IntegerMatMul();
    const Value a = SomeF32(2);
    const std::vector<Extent> dims = type(a).dims;
    if (!dims.back().is_constant()) return;
    const bool transposed = Below(3) != 0;
    const int products = Below(3) == 0 ? 2 : 1;  // of one left side
    for (int i = 0; i < products; ++i) {
      const Extent n(Pick<int64_t>({3, 8, 13, 16, 32})), k = dims.back();
      std::vector<Extent> shape;
      if (dims.size() > 2 && Below(4) == 0) shape.assign(dims.begin(), dims.end() - 2);
      shape.push_back(transposed ? n : k);
      shape.push_back(transposed ? k : n);
      const bool constant = std::all_of(shape.begin(), shape.end(), [](const Extent& e) { return e.is_constant(); });
      Value b;
      if (constant && Below(3) != 0) {
        b = NewWeight(Below(4) == 0 ? DType::kF16 : DType::kF32, shape);
      } else {
        b = NewLeaf({DType::kF32, shape});
      }
      Tame(Add("MatMul", {a, b}, {{"transpose_b", transposed}}));
    }
    if (dims.size() == 2 && Below(6) == 0) {
      const Extent n(Pick<int64_t>({3, 8, 33})), k = dims.back(), e(1 + Below(4));
      const Value w = NewLeaf({DType::kF32, transposed ? std::vector{e, n, k} : std::vector{e, k, n}});
      Tame(Add("GroupedMatMul", {a, w, NewLeaf({DType::kI32, {dims[0]}})}, {{"transpose_b", transposed}}));
    }
    if (dims.size() == 2 && Below(6) == 0) {
      const Extent n(Pick<int64_t>({3, 8, 33})), e(1 + Below(4));
      Tame(Add("PickedMatMul", {a, NewLeaf({DType::kF32, {e, n, dims.back()}}), NewLeaf({DType::kI32, {e}})},
               {{"by", std::string("run")}}));
    }
    if (Below(8) != 0) return;
    const Value panels = NewWeight(DType::kF32, {Extent(2), dims.back(), Extent(ir::kPanelColumns)});
    Tame(Add("MatMulPanels", {a, panels}, {{"columns", ir::kPanelColumns + 1 + Below(ir::kPanelColumns)}}));
  }

  void AnyGather() {
    const Value table = Some(Moved(), 1);
    if (Elements(type(table).dims) > 800) return;
    const Value ids = NewLeaf({Below(2) == 0 ? DType::kI32 : DType::kI64, {Extent(1 + Below(4))}});
    Add("Gather", {table, ids}, {{"axis", Below(type(table).rank())}});
  }

  void AnyRope() {
    const int64_t head_dim = Pick<int64_t>({2, 4, 6, 8, 16}), heads = 1 + Below(3);
    const int64_t n_rot = 2 * (1 + Below(head_dim / 2));
    const bool packed = Below(2) == 0;
    const Extent positions = RandomExtent();
    std::vector<Extent> dims;
    if (Below(2) == 0) dims.push_back(Extent(1 + Below(3)));
    const bool batched = !dims.empty() && Below(2) == 0;
    std::vector<Extent> table = {positions, Extent(Below(2) == 0 ? n_rot / 2 : head_dim)};
    if (batched) table.insert(table.begin(), Below(2) == 0 ? dims[0] : Extent(1));
    dims.push_back(positions);
    if (packed)
      dims.push_back(Extent(heads * head_dim));
    else
      dims.insert(dims.end(), {Extent(heads), Extent(head_dim)});
    Value x = NewLeaf({DType::kF32, dims});
    if (Below(2) == 0) x = Add("Neg", {x});
    const bool looked_up = Below(3) == 0;
    if (looked_up) table[table.size() - 2] = Extent(1 + Below(7));
    const Value c = NewLeaf({DType::kF32, table}), s = NewLeaf({DType::kF32, table});
    std::vector<Value> operands = {x, c, s};
    if (looked_up) operands.push_back(NewLeaf({DType::kI32, {positions}}));
    Tame(Add("Rope", std::move(operands),
             {{"head_dim", head_dim},
              {"n_rot", n_rot},
              {"style", std::string(Pick<const char*>({"gptj", "neox"}))},
              {"packed", packed}}));
  }

  void AnyAttention() {
    const int64_t kv_heads = 1 + Below(3), group = 1 + Below(3), head_dim = Pick<int64_t>({4, 8, 16, 20, 32});
    const Extent batch(1 + Below(2));
    const Extent queries = Below(3) == 0 ? Extent::Symbol("S") : Extent(Pick<int64_t>({1, 1, 2, 3, 8, 9, 33, 40}));
    const Extent keys = Below(3) == 0 ? queries + Extent(Below(3)) : Extent(Pick<int64_t>({1, 3, 17, 63, 64, 65, 130}));
    const std::string layout = Pick<const char*>({"packed", "bshd", "bhsd"}),
                      mask = Pick<const char*>({"none", "causal", "sliding", "custom", "bias"});
    auto dims = [&](const Extent& length, int64_t heads) -> std::vector<Extent> {
      if (layout == "packed") return {batch, length, Extent(heads * head_dim)};
      if (layout == "bshd") return {batch, length, Extent(heads), Extent(head_dim)};
      return {batch, Extent(heads), length, Extent(head_dim)};
    };
    // Sequences of lengths of their own, whose rows may follow each other and whose keys may lie in slots.
    const std::string sequences =
        Below(2) == 0 ? "none" : Pick<const char*>({"lengths", "ragged", "paged", "ragged_paged"});
    const bool ragged = sequences.starts_with("ragged"), paged = sequences.ends_with("paged");
    const Extent rows_of(ragged ? Extent(1) : batch), each(1 + Below(4));
    const Extent slot(Pick<int64_t>({1, 4, 16, 48, 64, 100})), room = paged ? each * slot : keys;
    TensorType kv{options_.discontinuous && Below(2) == 0 ? DType::kF16 : DType::kF32, dims(keys, kv_heads)};
    if (paged) kv.dims = dims(slot, kv_heads), kv.dims[0] = Extent(1 + Below(5));
    std::vector<Extent> q_dims = dims(queries, kv_heads * group);
    q_dims[0] = rows_of;
    Value q = NewLeaf({DType::kF32, q_dims});
    if (Below(2) == 0) q = Add("Tanh", {q});
    std::vector<Value> operands = {q, NewLeaf(kv), NewLeaf(kv)};
    if (mask == "custom")
      operands.push_back(NewLeaf({options_.discontinuous ? DType::kBool : DType::kF32, {batch, room}}));
    if (mask == "bias") {
      std::vector<Extent> bias = {rows_of, Extent(kv_heads * group), queries, room};
      for (Extent& dim : bias) dim = Below(3) == 0 ? Extent(1) : dim;
      operands.push_back(NewLeaf({DType::kF32, bias}));
    }
    if (ragged) operands.push_back(NewLeaf({DType::kI32, {batch + Extent(1)}}));
    if (sequences != "none") operands.push_back(NewLeaf({DType::kI32, {batch}}));
    if (paged) operands.push_back(NewLeaf({DType::kI32, {batch, each}}));
    Tame(Add("Attention", std::move(operands),
             {{"heads", kv_heads * group},
              {"kv_heads", kv_heads},
              {"head_dim", head_dim},
              {"layout", layout},
              {"mask", mask},
              {"sequences", sequences},
              {"window", Below(9)},
              {"softcap", Below(3) == 0 ? 3.0 : 0.0}}));
  }

  void AnyUpdate() {
    const Value update = Some(Moved(), 1);
    if (!options_.updates || outer_ != nullptr || NamesFound(type(update))) return;
    const auto [state, result] = NewUpdate(update);
    if (Below(3) == 0) return;
    DonateTo(state, result);
    if (Below(3) == 0) pool_.push_back(state);
  }
  // An Input larger than `update`, and the update of it.
  std::pair<Value, Value> NewUpdate(Value update) {
    TensorType whole = type(update);
    const int64_t axis = Below(3) == 0 ? Below(whole.rank()) : 0;
    Extent start(Below(3)), room = whole.dims[axis] + start + Extent(Below(3));
    if (Below(2) == 0 && (room.is_constant() || whole.dims[axis] == Extent::Symbol("S"))) {
      // A cache of its capacity, filled so far.
      start = start + Extent::Symbol("P");
      room = Extent(Size(room) + kMostPast + 16);
    }
    whole.dims[axis] = room;
    const Value state = *made_.graph.AddInput(absl::StrCat("state", made_.graph.nodes().size()), whole);
    if (Below(3) == 0) {
      const Value index = NewLeaf({DType::kI32, {type(update).dims[axis]}});
      return {state, Add("Update", {state, update, index}, {{"axis", axis}})};
    }
    return {state, Add("Update", {state, update}, {{"axis", axis}, {"start", std::vector<Extent>{start}}})};
  }
  void DonateTo(Value input, Value output) {
    made_.graph.outputs.push_back(output);
    made_.graph.donations.push_back(
        {static_cast<int>(made_.graph.outputs.size()) - 1, made_.graph.node(input.node).attributes.String("name")});
  }

  // ---- random_bodies.cc
  // random_contractions.cc
  void AnyConvolution();
  void AnyContraction();

  // random_counted.cc
  void AnyCounted();
  // Of a size that a run finds, and what has such a size, which no Input may have.
  struct Found {
    std::string symbol;
    Value count;
    Extent most;
  };
  bool NamesFound(const TensorType& type) const;
  Value NewFound(TensorType type);
  // Those of sizes that are known outside: what a body may return.
  std::vector<Value> Known() const;

  // random_bodies.cc
  void AnyIf();
  void AnyFunction();
  void AnyScanBackward();
  void AnyWhile();
  void AnyScan();
  // A value of this type: one there is, or a new leaf.
  Value ValueOf(const TensorType& type);
  // The same as what a body returns: one that it has made, if there is one.
  Value OutputOf(const TensorType& type);
  // A generator of a body of a node that is about to be made, after some steps of it. `inputs`: the types of its first
  // Inputs.
  std::unique_ptr<Generator> NewBody(const std::vector<TensorType>& inputs);
  // The graph with its Inputs in order: those given to NewBody with `cache`, then as many captures as `captures` has,
  // of which its own start at `own`.
  ir::Graph Body(const std::vector<Value>& captures, size_t own, Generator& outer, int cache = -1);
  void AddWithBodies(std::string_view op, std::vector<Value> inputs, Attributes attributes,
                     std::vector<ir::Graph> bodies);

  std::mt19937_64 random_;
  const RandomGraphOptions options_;
  RandomGraph made_;
  Generator* const outer_ = nullptr;  // null: no body
  const std::string prefix_;          // of the names of leaves
  std::vector<int> first_;            // Inputs of a body that stand for what its op gives it
  std::vector<int> captured_;         // its other Inputs, and
  std::vector<Value> captures_;       // what they stand for outside
  int bodies_ = 0;                    // that were made so far
  std::vector<Found> found_;          // which have their most as values while the graph is made
  std::vector<Value> pool_;
  std::map<std::pair<const ir::OpDef*, DType>, bool> tame_;  // StaysWithin, as it is found
};

}  // namespace quern::testing
