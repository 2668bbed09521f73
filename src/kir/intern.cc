#include "kir/intern.h"

#include <type_traits>

#include "kir/parts.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// The bytes of all that makes a node but its operands and bodies. Floats count bit for bit.
struct Recorder : NoParts {
  std::string text;

  void Name(const std::string& name) { Plain(name.size()), text += name; }
  void Use(const std::string& name) { Name(name); }
  void Write(const std::string& name) { Name(name); }
  void Declare(const std::string& name, Role) { Name(name); }
  void Type(const BufferType& type) { Plain(type.dtype, type.layout), Name(Print(type)); }
  template <typename... Value>
  void Plain(const Value&... values) {
    (One(values), ...);
  }

 private:
  void One(const std::string& value) { Name(value); }
  template <typename Value>
    requires std::is_scalar_v<Value>
  void One(const Value& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
};

// With the numbers of expressions.
struct StmtRecorder : Recorder {
  Interner& nodes;
  explicit StmtRecorder(Interner& nodes) : nodes(nodes) {}
  void Expr(const ExprRef& expr) { Plain(nodes.Number(expr)); }
};

}  // namespace

int Interner::Number(const ExprRef& expr) {
  if (expr == nullptr) return -1;
  std::vector<ExprRef> pending = {expr};
  while (!pending.empty()) {
    const ExprRef at = pending.back();
    if (known_.contains(at.get())) {
      pending.pop_back();
      continue;
    }
    std::vector<ExprRef> operands = Operands(*at);
    const size_t before = pending.size();
    for (const ExprRef& operand : operands) {
      if (operand != nullptr && !known_.contains(operand.get())) pending.push_back(operand);
    }
    if (pending.size() > before) continue;
    pending.pop_back();

    Recorder bytes;
    bytes.Plain(at->node.index(), at->dtype);
    Parts(*at, bytes);
    std::vector<int> numbers;
    bool interned = true;
    for (ExprRef& operand : operands) {
      numbers.push_back(operand == nullptr ? -1 : known_.at(operand.get()));
      bytes.Plain(numbers.back());
      if (operand == nullptr) continue;
      interned = interned && operand == nodes_[numbers.back()];
      operand = nodes_[numbers.back()];
    }
    const auto [number, added] = numbers_.emplace(std::move(bytes.text), size());
    if (added) {
      nodes_.push_back(interned ? at : WithOperands(*at, operands));
      operands_.push_back(std::move(numbers));
    }
    known_.emplace(at.get(), number->second);
    seen_.push_back(at);
  }
  return known_.at(expr.get());
}

std::string Interner::Bytes(const Stmt& stmt) {
  StmtRecorder bytes(*this);
  bytes.Plain(stmt.node.index());
  Parts(stmt, bytes);
  return std::move(bytes.text);
}

}  // namespace quern::kir
