// Resolves a kernel's names, sizes and expressions for the interpreter; statements are read where they are run, in
// interpret_stmt.cc. Private to the interpreter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kir/interpret_program.h"

namespace quern::kir::interpret {

class Resolver {
 public:
  Resolver(const Kernel& kernel, Program& program) : kernel_(kernel), program_(program) {}
  virtual ~Resolver() = default;
  Status Run(const Binding& binding);

 protected:
  struct Entry {
    int slot = -1;  // a scalar
    DType dtype = DType::kI64;
    int view = -1;             // a buffer
    std::vector<int> element;  // inside map: slots of the indices of a tile's current element
  };
  using Saved = std::vector<std::pair<std::string, std::optional<Entry>>>;

  virtual Status ReadBlock(const Block& block, Steps& steps) = 0;

  Status Fail(const std::string& message) const;
  Status WrongDtype(const std::string& name, DType is, DType wanted) const;

  // Names
  void Define(const std::string& name, Entry entry);
  void Leave(size_t mark);
  int DefineSlot(const std::string& name, DType dtype);
  int DefineView(const std::string& name, View view);
  StatusOr<int> DefineBuffer(const std::string& name, const BufferType& type, bool writable);
  StatusOr<const Entry*> Find(const std::string& name) const;
  StatusOr<int> FindView(const std::string& name, size_t rank) const;

  // Expressions
  StatusOr<NodeRef> Read(const ExprRef& expr);
  Status ReadAll(const std::vector<ExprRef>& exprs, std::vector<NodeRef>& nodes);
  StatusOr<SliceNode> ReadSlice(const Slice& slice);

  const Kernel& kernel_;
  Program& program_;
  Binding binding_;
  std::map<std::string, Entry, std::less<>> names_;
  Saved saved_;
  const Stmt* statement_ = nullptr;

 private:
  Status ReadGrid();
  Status ReadNode(const Const& constant, Node& node);
  Status ReadNode(const NameRef& name, Node& node);
  Status ReadNode(const Load& load, Node& node);
  Status ReadNode(const Apply& apply, Node& node);
  Status ReadNode(const Cast& cast, Node& node);
  Status ReadNode(const Bits& bits, Node& node);
  Status ReadNode(const Reduce& reduce, Node& node);
  Status ReadNode(const Decode& decode, Node& node);
};

}  // namespace quern::kir::interpret
