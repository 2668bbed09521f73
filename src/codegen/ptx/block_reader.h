// Elements of block formats as f32, read from memory as the machine reads best.
#pragma once

#include "base/dtype.h"
#include "llvm/IR/IRBuilder.h"

namespace quern::ptx {

// Element `run + at` of the block at `block` (i8*, aligned to `align` bytes). `run` and `at` are i32, run a multiple of
// 8 and at below 8.
llvm::Value* DecodedElement(llvm::IRBuilder<>& b, DType format, llvm::Value* block, llvm::Value* run, llvm::Value* at,
                            int align);

}  // namespace quern::ptx
