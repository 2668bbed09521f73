// Elements of block formats as LLVM instructions, from what base/block_format.h says of a format. How bytes are read is
// each target's own:
//
//   struct Reader : codegen::BlockReader { llvm::Value* Load(const kir::BlockStep& step) override; ... };
//   Reader reader(b, DType::kQ4_K, b.getInt32Ty());
//   llvm::Value* element = reader.Decoded(i);   // f32
#pragma once

#include <vector>

#include "kir/block_fields.h"
#include "llvm/IR/IRBuilder.h"

namespace quern::codegen {

class BlockReader {
 public:
  virtual ~BlockReader() = default;

  // Element i of the block.
  llvm::Value* Decoded(llvm::Value* i);

  // The fields of an element; null for what the format lacks, or what `d` and `minimum` already hold.
  struct Fields {
    llvm::Value *code, *d, *scale = nullptr, *dmin = nullptr, *minimum = nullptr, *added = nullptr;
  };
  llvm::Value* ValueOf(const Fields& fields);

 protected:
  // Integers are computed in `integer`: i32, i64 or lanes of one.
  BlockReader(llvm::IRBuilder<>& b, DType format, llvm::Type* integer)
      : b_(b), format_(FormatOf(format)), fields_(kir::FieldsOf(format)), integer_(integer) {}

  // The f16 whose bits are `bits`, i16 or lanes of it, as f32.
  virtual llvm::Value* Half(llvm::Value* bits);
  // Word `index` of the format's grid, an integer.
  virtual llvm::Value* Word(llvm::Value* index);
  // Where that word lies: in a table that all kernels of a module share, in `address_space`.
  llvm::Value* WordAddress(llvm::Value* index, unsigned address_space);
  // The value of a load, f32 or integer.
  virtual llvm::Value* Load(const kir::BlockStep& load) = 0;
  // Step `number`, which is not i itself, those before being made.
  virtual llvm::Value* Step(int number);
  // value - zero, the value being 0 or more, as f32.
  virtual llvm::Value* Natural(llvm::Value* value, int zero);

  llvm::Value* Apply(kir::Op op, const std::vector<llvm::Value*>& args);
  llvm::Value* C(int64_t value) { return llvm::ConstantInt::get(integer_, static_cast<uint64_t>(value)); }

  llvm::IRBuilder<>& b_;
  const BlockFormat& format_;
  const kir::BlockFields& fields_;
  llvm::Type* const integer_;
  std::vector<llvm::Value*> made_;  // by step

 private:
  llvm::Value* Level(llvm::Value* code);
  llvm::Value* Power(llvm::Value* byte);
  llvm::Value* Signed(llvm::Value* value);  // as f32
  bool IsSigned(int step) const;
};

}  // namespace quern::codegen
