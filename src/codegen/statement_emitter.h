// What all emitters begin with: a statement goes to the function for its kind. What a target has no function for is
// refused; a kind that is missing here does not compile.
//
//   class Emitter : public StatementEmitter {
//     using StatementEmitter::Emit;
//     void Emit(const kir::Store& store) override;      // and so on; a Barrier is refused
//     void Refuse(const kir::Stmt& stmt) override { Fail(kir::Describe(stmt)); }
//   };
#pragma once

#include <utility>
#include <variant>

#include "kir/kir.h"

namespace quern::codegen {

class StatementEmitter {
 public:
  virtual ~StatementEmitter() = default;

 protected:
  void EmitStatement(const kir::Stmt& stmt) {
    const kir::Stmt* const around = std::exchange(statement_, &stmt);
    std::visit([this](const auto& node) { Emit(node); }, stmt.node);
    statement_ = around;
  }
  virtual void Refuse(const kir::Stmt& stmt) = 0;

  virtual void Emit(const kir::Loop&) { Refuse(*statement_); }
  virtual void Emit(const kir::If&) { Refuse(*statement_); }
  virtual void Emit(const kir::Let&) { Refuse(*statement_); }
  virtual void Emit(const kir::Var&) { Refuse(*statement_); }
  virtual void Emit(const kir::Assign&) { Refuse(*statement_); }
  virtual void Emit(const kir::Store&) { Refuse(*statement_); }
  virtual void Emit(const kir::Alloc&) { Refuse(*statement_); }
  virtual void Emit(const kir::Tile&) { Refuse(*statement_); }
  virtual void Emit(const kir::TileCall&) { Refuse(*statement_); }
  virtual void Emit(const kir::Map&) { Refuse(*statement_); }
  virtual void Emit(const kir::Pack&) { Refuse(*statement_); }
  virtual void Emit(const kir::Prefetch&) {}  // a hint
  virtual void Emit(const kir::Barrier&) { Refuse(*statement_); }
  virtual void Emit(const kir::Copy&) { Refuse(*statement_); }
  virtual void Emit(const kir::Pipeline&) { Refuse(*statement_); }
  virtual void Emit(const kir::Shuffle&) { Refuse(*statement_); }

 private:
  const kir::Stmt* statement_ = nullptr;
};

}  // namespace quern::codegen
