#include "kir/block_fields.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "kir/parse.h"
#include "kir/parts.h"

namespace quern::kir {
namespace {

std::vector<int> OverNeighbours(const std::vector<int32_t>& values, size_t neighbours) {
  std::vector<int> over;
  for (size_t i = 0; i < values.size(); ++i) {
    const int above = values[i] - values[i / neighbours * neighbours];
    if (i < neighbours)
      over.push_back(above);
    else if (over[i % neighbours] != above)
      return {};
  }
  return over;
}

int NeighboursAlike(const std::vector<int32_t>& values) {
  int alike = 16;
  for (size_t i = 0; i < values.size(); ++i) {
    while (values[i] != values[i - i % alike]) alike /= 2;
  }
  return alike;
}

class Reader {
 public:
  Reader(const BlockFormat& format, BlockFields& fields) : format_(format), steps_(fields.steps) {}

  int Read(const char* text, DType dtype) {
    if (text == nullptr) return -1;
    auto words = [](DType type, size_t count) { return BufferType{type, {Extent(static_cast<int64_t>(count))}}; };
    auto bytes = [&](DType type) { return words(type, format_.bytes); };
    const StatusOr<ExprRef> expr = ParseExpr(text, {.scalars = {{"i", DType::kI64}},
                                                    .buffers = {{"u8", bytes(DType::kI64)},
                                                                {"i8", bytes(DType::kI64)},
                                                                {"f16", bytes(DType::kF32)},
                                                                {"f32", bytes(DType::kF32)},
                                                                {"e8", bytes(DType::kF32)},
                                                                {"half", words(DType::kF32, 65536)},
                                                                {"grid", words(DType::kI64, format_.grid.size())}}});
    QUERN_CHECK(expr.ok() && (*expr)->dtype == dtype);
    return StepOf(**expr);
  }
  // Loads from here on are not those of before, which are made once a group.
  void EndGroup() { own_ = steps_.size(); }

 private:
  int StepOf(const Expr& expr) {
    return std::visit(
        Overloaded{[&](const Const& node) { return Add({.kind = BlockStep::Kind::kConst, .constant = node.integer}); },
                   [&](const NameRef&) { return Add({}); },
                   [&](const Load& load) {
                     if (load.buffer == "half" || load.buffer == "grid") {
                       const auto kind = load.buffer == "half" ? BlockStep::Kind::kHalf : BlockStep::Kind::kGrid;
                       return Add({.kind = kind, .args = {StepOf(*load.index[0]), -1, -1}});
                     }
                     const bool power = load.buffer == "e8";
                     const DType dtype = power ? DType::kU8 : *DTypeFromName(load.buffer);
                     const ExprRef& index = load.index[0];
                     const auto* constant = std::get_if<Const>(&index->node);
                     QUERN_CHECK(constant != nullptr || ScalarBytes(dtype) == 1);
                     const int at = constant == nullptr ? StepOf(*index)
                                                        : Add({.kind = BlockStep::Kind::kConst,
                                                               .constant = constant->integer * ScalarBytes(dtype)});
                     QUERN_CHECK(!steps_[at].values.empty());  // the place follows from i
                     const int byte = Add({.kind = BlockStep::Kind::kLoad, .dtype = dtype, .args = {at, -1, -1}});
                     return power ? Add({.kind = BlockStep::Kind::kPower, .args = {byte, -1, -1}}) : byte;
                   },
                   [&](const Apply& apply) {
                     if (IsFloat(expr.dtype)) {
                       const auto* factor = std::get_if<Const>(&apply.args[1]->node);
                       QUERN_CHECK(apply.op == Op::kMul && factor != nullptr);
                       return Add({.kind = BlockStep::Kind::kTimes,
                                   .factor = static_cast<float>(factor->real),
                                   .args = {StepOf(*apply.args[0]), -1, -1}});
                     }
                     BlockStep step{.kind = BlockStep::Kind::kApply, .op = apply.op};
                     for (size_t a = 0; a < apply.args.size(); ++a) step.args[a] = StepOf(*apply.args[a]);
                     return Add(std::move(step));
                   },
                   [&](const auto&) -> int {
                     QUERN_CHECK(false && "no part of a field");
                     return -1;
                   }},
        expr.node);
  }

  int Add(BlockStep step) {
    Fold(step);
    for (size_t s = 0; s < steps_.size(); ++s) {
      const BlockStep& other = steps_[s];
      if (s < own_ && other.values.empty()) continue;
      const bool same = other.kind == step.kind && other.dtype == step.dtype && other.constant == step.constant &&
                        other.factor == step.factor && other.op == step.op && other.args == step.args;
      if (same) return static_cast<int>(s);
    }
    steps_.push_back(std::move(step));
    return static_cast<int>(steps_.size()) - 1;
  }

  // The value for each i, where it follows from i.
  void Fold(BlockStep& step) const {
    for (const int arg : step.args) {
      if (arg >= 0) step.alike = std::min(step.alike, steps_[arg].alike);
    }
    const bool of_integers = step.kind == BlockStep::Kind::kIndex || step.kind == BlockStep::Kind::kConst ||
                             step.kind == BlockStep::Kind::kApply;
    if (!of_integers) return;
    std::vector<int32_t> values;
    for (int i = 0; i < format_.elements; ++i) {
      if (step.kind == BlockStep::Kind::kApply) {
        std::array<int64_t, 3> args{};
        for (size_t a = 0; a < args.size() && step.args[a] >= 0; ++a) {
          const BlockStep& arg = steps_[step.args[a]];
          if (arg.values.empty()) return;
          args[a] = arg.values[i];
        }
        values.push_back(static_cast<int32_t>(EvalInteger(step.op, DType::kI64, args[0], args[1], args[2])));
      } else {
        values.push_back(step.kind == BlockStep::Kind::kIndex ? i : static_cast<int32_t>(step.constant));
      }
    }
    step.alike = NeighboursAlike(values);
    step.over_run = {OverNeighbours(values, 4), OverNeighbours(values, 8), OverNeighbours(values, 16)};
    step.values = std::move(values);
  }

  const BlockFormat& format_;
  std::vector<BlockStep>& steps_;
  size_t own_ = 0;
};

BlockFields Parsed(const BlockFormat& format) {
  BlockFields fields;
  Reader reader(format, fields);
  fields.d = reader.Read(format.d, DType::kF32);
  fields.dmin = reader.Read(format.dmin, DType::kF32);
  fields.added = reader.Read(format.added, DType::kF32);
  fields.scale = reader.Read(format.scale, DType::kI64);
  fields.minimum = reader.Read(format.minimum, DType::kI64);
  reader.EndGroup();
  fields.first_of_code = static_cast<int>(fields.steps.size());
  fields.code = reader.Read(format.code, DType::kI64);
  return fields;
}

}  // namespace

const std::vector<int>& BlockStep::OverRun(int neighbours) const {
  QUERN_CHECK(neighbours == 4 || neighbours == 8 || neighbours == 16);
  return over_run[neighbours == 4 ? 0 : neighbours == 8 ? 1 : 2];
}

float PowerOfByte(int64_t byte) {
  return std::bit_cast<float>(static_cast<uint32_t>(byte < 2 ? 0x200000 << byte : (byte - 1) << 23));
}

const BlockFields& FieldsOf(DType format) {
  static const std::vector<BlockFields>* const all = [] {
    auto* fields = new std::vector<BlockFields>;
    for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) fields->push_back(Parsed(FormatOf(static_cast<DType>(d))));
    return fields;
  }();
  QUERN_CHECK(IsBlock(format));
  return (*all)[static_cast<int>(format) - kScalarDTypeCount];
}

}  // namespace quern::kir
