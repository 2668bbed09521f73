// Expressions: the dtype of every node, the bounds of every load, no divisor of zero.
#include <optional>
#include <variant>

#include "base/check.h"
#include "kir/build.h"
#include "kir/parts.h"
#include "kir/verify_state.h"

namespace quern::kir {
namespace {

std::string Named(DType dtype) { return std::string(Name(dtype)); }

std::optional<int64_t> IntegerOf(const ExprRef& expr) {
  const auto* constant = std::get_if<Const>(&expr->node);
  return constant == nullptr ? std::nullopt : std::optional<int64_t>(constant->integer);
}

// select(x == 0, 1, x), with any number in place of 1 that is not 0.
bool IsGuardedDivisor(const ExprRef& expr) {
  const auto* select = std::get_if<Apply>(&expr->node);
  if (select == nullptr || select->op != Op::kSelect || IntegerOf(select->args[1]).value_or(0) == 0) return false;
  const auto* equal = std::get_if<Apply>(&select->args[0]->node);
  if (equal == nullptr || equal->op != Op::kEq || IntegerOf(equal->args[1]) != 0) return false;
  return equal->args[0] == select->args[2] || Print(equal->args[0]) == Print(select->args[2]);
}

}  // namespace

Status Verifier::CheckExprOf(const ExprRef& expr, DType dtype, const char* what) {
  QUERN_RETURN_IF_ERROR(CheckExpr(expr));
  if (expr->dtype == dtype) return absl::OkStatus();
  return Fail(absl::StrFormat("%s %s is %s, not %s", what, Print(expr), Named(expr->dtype), Named(dtype)));
}

Status Verifier::CheckExpr(const ExprRef& expr) {
  if (expr == nullptr) return Fail("an expression is missing");
  const DType dtype = expr->dtype;
  if (IsBlock(dtype)) return Fail(absl::StrFormat("an expression of dtype %s", Named(dtype)));
  return std::visit(
      Overloaded{
          [&](const Const& constant) {
            if (IsFloat(dtype) || IntegerFits(dtype, constant.integer)) return absl::OkStatus();
            return Fail(absl::StrFormat("%d is no %s", constant.integer, Named(dtype)));
          },
          [&](const NameRef& name) { return CheckReference(name, dtype); },
          [&](const Load& load) { return CheckLoad(load, dtype); },
          [&](const Apply& apply) { return CheckApply(apply, dtype); },
          [&](const Cast& cast) { return CheckExpr(cast.value); },
          [&](const Bits& bits) {
            QUERN_RETURN_IF_ERROR(CheckExpr(bits.value));
            const DType from = bits.value->dtype;
            if (ScalarBytes(from) == ScalarBytes(dtype)) return absl::OkStatus();
            return Fail(absl::StrFormat("bits<%s> of %s, which has another size", Named(dtype), Named(from)));
          },
          [&](const Reduce& reduce) { return CheckReduce(reduce, dtype); },
          [&](const Decode& decode) { return CheckDecode(decode, dtype); },
      },
      expr->node);
}

Status Verifier::CheckReference(const NameRef& name, DType dtype) {
  QUERN_ASSIGN(Entity * entity, Find(name.name));
  if (entity->is_buffer()) {
    if (entity->elements.empty()) return Fail(absl::StrFormat("%s is not a scalar", name.name));
    Record(name.name, /*write=*/false, entity->elements.back());
  }
  if (entity->type.dtype == dtype) return absl::OkStatus();
  return Fail(absl::StrFormat("%s is %s, used as %s", name.name, Named(entity->type.dtype), Named(dtype)));
}

Status Verifier::CheckInside(const ExprRef& at, const Extent& value, const Extent& dim, const std::string& buffer) {
  if (!prover_.NonNegative(value)) {
    return Fail(absl::StrFormat("index %s of %s is not proved to be at least 0", Print(at), buffer));
  }
  if (!prover_.AtMost(value, dim - 1) && !IsQuotientBelow(value, dim)) {
    return Fail(absl::StrFormat("index %s of %s is not proved to be below %s", Print(at), buffer, dim.ToString()));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<Extent>> Verifier::CheckIndex(const std::string& buffer, const Entity& entity, const Index& index,
                                                   bool anywhere) {
  const std::vector<Extent>& dims = entity.type.dims;
  if (index.size() != dims.size()) {
    return Fail(absl::StrFormat("%s has %d dimensions, indexed by %d", buffer, dims.size(), index.size()));
  }
  std::vector<Extent> position;
  for (size_t d = 0; d < dims.size(); ++d) {
    QUERN_RETURN_IF_ERROR(CheckExprOf(index[d], DType::kI64, "index"));
    position.push_back(ValueOf(index[d]));
    if (!anywhere) {
      QUERN_RETURN_IF_ERROR(CheckInside(index[d], position.back(), dims[d], buffer));
    }
  }
  return position;
}

Status Verifier::CheckReadable(const std::string& buffer, const Entity& entity) {
  const bool undefined =
      entity.kind == EntityKind::kAlloc || (entity.kind == EntityKind::kParam && entity.mode == Mode::kOut);
  if (!undefined || written_.contains(buffer)) return absl::OkStatus();
  return Fail(absl::StrFormat("%s is read before anything is written to it", buffer));
}

Status Verifier::CheckLoad(const Load& load, DType dtype) {
  QUERN_ASSIGN(const Entity* entity, FindBuffer(load.buffer));
  if (IsBlock(entity->type.dtype)) {
    return Fail(absl::StrFormat("%s has the format %s and is read by decode", load.buffer, Named(entity->type.dtype)));
  }
  if (entity->type.dtype != dtype) {
    return Fail(absl::StrFormat("%s is %s, used as %s", load.buffer, Named(entity->type.dtype), Named(dtype)));
  }
  QUERN_RETURN_IF_ERROR(CheckReadable(load.buffer, *entity));
  QUERN_ASSIGN(const std::vector<Extent> position,
               CheckIndex(load.buffer, *entity, load.index, load.otherwise != nullptr));
  if (load.otherwise != nullptr) {
    QUERN_RETURN_IF_ERROR(CheckExprOf(load.otherwise, dtype, "value after else"));
  }
  QUERN_RETURN_IF_ERROR(
      NoteShared(load.buffer, /*write=*/false, Print(std::make_shared<const Expr>(Expr{load, dtype}))));
  Record(load.buffer, /*write=*/false, position);
  if (entity->kind == EntityKind::kAlloc && load.otherwise == nullptr) NoteScratchRead(load.buffer, position, position);
  return absl::OkStatus();
}

Status Verifier::CheckDecode(const Decode& decode, DType dtype) {
  QUERN_ASSIGN(const Entity* entity, FindBuffer(decode.buffer));
  if (!IsBlock(entity->type.dtype)) {
    return Fail(absl::StrFormat("decode of %s, which is %s", decode.buffer, Named(entity->type.dtype)));
  }
  if (dtype != DType::kF32) return Fail(absl::StrFormat("decode gives f32, not %s", Named(dtype)));
  QUERN_RETURN_IF_ERROR(CheckReadable(decode.buffer, *entity));
  QUERN_ASSIGN(const std::vector<Extent> position,
               CheckIndex(decode.buffer, *entity, decode.index, /*anywhere=*/false));
  Record(decode.buffer, /*write=*/false, position);
  return absl::OkStatus();
}

Status Verifier::CheckApply(const Apply& apply, DType dtype) {
  std::vector<DType> operands;
  for (const ExprRef& arg : apply.args) {
    QUERN_RETURN_IF_ERROR(CheckExpr(arg));
    operands.push_back(arg->dtype);
  }
  const StatusOr<DType> result = ResultType(apply.op, operands);
  if (!result.ok()) return Fail(std::string(result.status().message()));
  if (*result != dtype) {
    return Fail(absl::StrFormat("%s gives %s, not %s", Row(apply.op).name, Named(*result), Named(dtype)));
  }
  if ((apply.op != Op::kDiv && apply.op != Op::kMod) || !IsInteger(dtype)) return absl::OkStatus();
  if (IsGuardedDivisor(apply.args[1])) return absl::OkStatus();
  const Extent divisor = ValueOf(apply.args[1]);
  if (prover_.AtMost(1, divisor) || prover_.AtMost(divisor, -1)) return absl::OkStatus();
  return Fail(absl::StrFormat("divisor %s is not proved to differ from 0", Print(apply.args[1])));
}

Status Verifier::CheckReduce(const Reduce& reduce, DType dtype) {
  QUERN_RETURN_IF_ERROR(CheckExprOf(reduce.low, DType::kI64, "bound"));
  QUERN_RETURN_IF_ERROR(CheckExprOf(reduce.high, DType::kI64, "bound"));
  if (reduce.accs < 1 || reduce.accs > kMaxAccs) {
    return Fail(absl::StrFormat("%d accumulators, of 1 to %d", reduce.accs, kMaxAccs));
  }
  if (dtype == DType::kBool) return Fail("a reduction of bool");
  if (reduce.vec) QUERN_RETURN_IF_ERROR(NotForThreads("a vec reduction"));
  for (const Parallel& scope : parallel_) {
    if (reduce.vec && scope.vec) return Fail(absl::StrFormat("a vec reduction inside %s", scope.text));
  }
  const size_t mark = declared_.size();
  Entity index{.kind = EntityKind::kIndex, .type = {DType::kI64, {}, Layout::kRow}};
  index.value = NewIndex(reduce.index, ValueOf(reduce.low), ValueOf(reduce.high), 1).first;
  QUERN_RETURN_IF_ERROR(Declare(reduce.index, std::move(index)));
  for (const auto& [name, value] : reduce.lets) QUERN_RETURN_IF_ERROR(CheckLet(name, value));
  QUERN_RETURN_IF_ERROR(CheckExprOf(reduce.body, dtype, "reduced value"));
  Leave(mark);
  return absl::OkStatus();
}

}  // namespace quern::kir
