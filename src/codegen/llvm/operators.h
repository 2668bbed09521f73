// KIR's operators as LLVM instructions, on scalars and vectors alike, with the exact meaning of kir/operators.h at the
// edges: zero divisors, wide shifts, NaN. Values of f16 and bf16 are f32 here, those of bool i1.
//
//   llvm::Value* sum = codegen::FloatOperator(builder, kir::Op::kAdd, {{a, b}});
//
// What is no instruction everywhere (functions, f64 and f32 conversions that saturate, 16 bits in memory) is each
// target's own.
#pragma once

#include <span>

#include "base/dtype.h"
#include "kir/operators.h"
#include "llvm/IR/IRBuilder.h"

namespace quern::codegen {

// `element`, or as many of it as `like` has.
llvm::Type* WithLanesOf(llvm::Type* element, const llvm::Value* like);

// ==, !=, < or <= of operands of `dtype`, as i1.
llvm::Value* Compare(llvm::IRBuilder<>& b, kir::Op op, DType dtype, llvm::Value* x, llvm::Value* y);
// On integers and bool; null for operators that they do not have.
llvm::Value* IntegerOperator(llvm::IRBuilder<>& b, kir::Op op, DType dtype, std::span<llvm::Value* const> args);
// On floats, with the builder's fast-math flags; null for what has no instruction: functions, %, fma.
llvm::Value* FloatOperator(llvm::IRBuilder<>& b, kir::Op op, std::span<llvm::Value* const> args);

// What a reduction starts from, and a step of it.
llvm::Constant* Identity(kir::ReduceOp op, DType dtype, llvm::Type* type);
llvm::Value* Combine(llvm::IRBuilder<>& b, kir::ReduceOp op, DType dtype, llvm::Value* x, llvm::Value* y);

// An integer as another: extended by its sign where `from` has one.
llvm::Value* ConvertInteger(llvm::IRBuilder<>& b, llvm::Value* value, DType from, llvm::Type* type);
// An integer as the nearest value of a float type of 32 or 64 bits.
llvm::Value* FloatOfInteger(llvm::IRBuilder<>& b, llvm::Value* value, DType from, llvm::Type* type);
// The f32 which, rounded to 16 bits, gives what `value` rounds to at once. Of f64 and of integers that f32 does not
// hold that is the neighbour with an odd last bit.
llvm::Value* FloatBeforeHalf(llvm::IRBuilder<>& b, llvm::Value* value, DType from);

}  // namespace quern::codegen
