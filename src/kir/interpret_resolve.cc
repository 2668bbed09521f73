#include "kir/interpret_resolve.h"

#include <variant>

#include "base/check.h"
#include "kir/describe.h"
#include "kir/symbols.h"

namespace quern::kir::interpret {

Status Resolver::Run(const Binding& binding) {
  program_.kernel = kernel_.name;
  QUERN_ASSIGN(binding_, BindSymbols(kernel_, binding));
  for (const SymbolDecl& symbol : kernel_.symbols) {
    program_.symbols.emplace_back(DefineSlot(symbol.name, DType::kI64), binding_[symbol.name]);
  }
  for (const Param& param : kernel_.params) {
    QUERN_RETURN_IF_ERROR(DefineBuffer(param.name, param.type, param.mode != Mode::kIn).status());
    program_.undefined_param.push_back(param.mode == Mode::kOut);
  }
  QUERN_RETURN_IF_ERROR(ReadGrid());
  QUERN_ASSIGN(const BlockShape shape, ShapeOfBlock(kernel_));
  program_.watch.threads = static_cast<int>(shape.threads);
  return ReadBlock(kernel_.body, program_.body);
}

Status Resolver::Fail(const std::string& message) const {
  const std::string where = statement_ == nullptr ? "" : Describe(*statement_) + ": ";
  return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s%s", kernel_.name, where, message));
}

void Resolver::Define(const std::string& name, Entry entry) {
  auto it = names_.find(name);
  saved_.emplace_back(name, it == names_.end() ? std::nullopt : std::optional<Entry>(it->second));
  names_[name] = std::move(entry);
}

void Resolver::Leave(size_t mark) {
  while (saved_.size() > mark) {
    auto& [name, entry] = saved_.back();
    if (entry)
      names_[name] = *std::move(entry);
    else
      names_.erase(name);
    saved_.pop_back();
  }
}

int Resolver::DefineSlot(const std::string& name, DType dtype) {
  Entry entry;
  entry.slot = program_.slot_count++;
  entry.dtype = dtype;
  const int slot = entry.slot;
  Define(name, std::move(entry));
  return slot;
}

int Resolver::DefineView(const std::string& name, View view) {
  Entry entry;
  entry.view = static_cast<int>(program_.views.size());
  entry.dtype = view.dtype;
  program_.views.push_back(view);
  const int id = entry.view;
  Define(name, std::move(entry));
  return id;
}

StatusOr<int> Resolver::DefineBuffer(const std::string& name, const BufferType& type, bool writable) {
  if (type.dims.size() > kMaxRank) return Fail(absl::StrFormat("%s has more than %d dimensions", name, kMaxRank));
  std::vector<int64_t> dims;
  int64_t total = 1;
  for (const Extent& dim : type.dims) {
    QUERN_ASSIGN(const int64_t size, dim.Evaluate(binding_));
    if (size < 0) return Fail(absl::StrFormat("%s has the extent %s = %d", name, dim.ToString(), size));
    if (__builtin_mul_overflow(total, size, &total) || total > int64_t{1} << 48) {
      return Fail(absl::StrFormat("%s is too large", name));
    }
    dims.push_back(size);
  }
  if (!LayoutAllows(type.layout, type.dtype)) {
    return Fail(absl::StrFormat("%s cannot have the type %s", name, Print(type)));
  }
  if (type.layout != Layout::kRow &&
      (dims.empty() || !type.dims.back().is_constant() || dims.back() % Row(type.dtype).block_elements != 0)) {
    return Fail(absl::StrFormat("%s : %s must have rows of a constant number of whole blocks", name, Print(type)));
  }
  if (IsPanel(type.layout)) {
    const int64_t rows = type.layout == Layout::kPanel16 ? 16 : 32;
    if (dims.size() != 2 || dims[0] != rows) {
      return Fail(absl::StrFormat("%s : %s must have %d rows", name, Print(type), rows));
    }
  }
  Memory& memory = program_.memories.emplace_back();
  memory.name = name;
  memory.writable = writable;
  QUERN_ASSIGN(memory.bytes, LayoutBytes(type.layout, type.dtype, type.dims).Evaluate(binding_));
  return DefineView(name, WholeView(&memory, type.dtype, type.layout, dims));
}

Status Resolver::ReadGrid() {
  program_.chunks = 1;
  for (const GridDim& dim : kernel_.grid) {
    QUERN_ASSIGN(const int64_t low, EvaluateIndex(dim.low, binding_));
    QUERN_ASSIGN(const int64_t high, EvaluateIndex(dim.high, binding_));
    if (dim.step <= 0) return Fail(absl::StrFormat("grid %s has step %d", dim.index, dim.step));
    const int64_t count = high <= low ? 0 : (high - low + dim.step - 1) / dim.step;
    program_.grid.push_back({DefineSlot(dim.index, DType::kI64), low, dim.step, count});
  }
  QUERN_ASSIGN(program_.chunks, GridChunks(kernel_, binding_));
  return absl::OkStatus();
}

// Expressions

StatusOr<const Resolver::Entry*> Resolver::Find(const std::string& name) const {
  auto it = names_.find(name);
  if (it == names_.end()) return Fail(absl::StrFormat("%s is not defined", name));
  return &it->second;
}

StatusOr<int> Resolver::FindView(const std::string& name, size_t rank) const {
  QUERN_ASSIGN(const Entry* entry, Find(name));
  if (entry->view < 0) return Fail(absl::StrFormat("%s is not a buffer", name));
  const View& view = program_.views[entry->view];
  if (static_cast<size_t>(view.rank) != rank) {
    return Fail(absl::StrFormat("%s has %d dimensions, not %d", name, view.rank, rank));
  }
  return entry->view;
}

StatusOr<NodeRef> Resolver::Read(const ExprRef& expr) {
  auto node = std::make_unique<Node>();
  node->dtype = expr->dtype;
  QUERN_RETURN_IF_ERROR(std::visit([&](const auto& kind) { return ReadNode(kind, *node); }, expr->node));
  return node;
}

Status Resolver::ReadNode(const Const& constant, Node& node) {
  if (IsFloat(node.dtype))
    node.constant.real = RoundReal(node.dtype, constant.real);
  else
    node.constant.integer = WrapInteger(node.dtype, constant.integer);
  return absl::OkStatus();
}

Status Resolver::ReadNode(const NameRef& name, Node& node) {
  QUERN_ASSIGN(const Entry* entry, Find(name.name));
  if (entry->slot >= 0) {
    if (entry->dtype != node.dtype) return WrongDtype(name.name, entry->dtype, node.dtype);
    node.kind = NodeKind::kSlot;
    node.slot = entry->slot;
    return absl::OkStatus();
  }
  if (entry->element.empty()) return Fail(absl::StrFormat("%s is not a scalar", name.name));
  node.kind = NodeKind::kLoad;
  node.view = entry->view;
  for (int slot : entry->element) {
    auto at = std::make_unique<Node>();
    at->kind = NodeKind::kSlot;
    at->dtype = DType::kI64;
    at->slot = slot;
    node.args.push_back(std::move(at));
  }
  return absl::OkStatus();
}

Status Resolver::ReadNode(const Load& load, Node& node) {
  node.kind = NodeKind::kLoad;
  QUERN_ASSIGN(node.view, FindView(load.buffer, load.index.size()));
  const DType dtype = program_.views[node.view].dtype;
  if (dtype != node.dtype) return WrongDtype(load.buffer, dtype, node.dtype);
  if (IsBlock(dtype)) return Fail(absl::StrFormat("%s must be read by decode", load.buffer));
  QUERN_RETURN_IF_ERROR(ReadAll(load.index, node.args));
  if (load.otherwise != nullptr) {
    QUERN_ASSIGN(node.otherwise, Read(load.otherwise));
  }
  return absl::OkStatus();
}

Status Resolver::ReadNode(const Apply& apply, Node& node) {
  node.kind = NodeKind::kApply;
  node.op = apply.op;
  if (static_cast<int>(apply.args.size()) != Row(apply.op).arity) {
    return Fail(absl::StrFormat("%s takes %d operands", Row(apply.op).name, Row(apply.op).arity));
  }
  const DType operands = apply.args.back()->dtype;
  const OpDomain domain = Row(apply.op).domain;
  if (IsBlock(operands) ||
      (IsFloat(operands) ? domain == OpDomain::kInteger || domain == OpDomain::kBitwise : domain == OpDomain::kFloat)) {
    return Fail(absl::StrFormat("%s does not apply to %s", Row(apply.op).name, std::string(Name(operands))));
  }
  return ReadAll(apply.args, node.args);
}

Status Resolver::ReadNode(const Cast& cast, Node& node) {
  node.kind = NodeKind::kCast;
  return ReadAll({cast.value}, node.args);
}

Status Resolver::ReadNode(const Bits& bits, Node& node) {
  node.kind = NodeKind::kBits;
  return ReadAll({bits.value}, node.args);
}

Status Resolver::ReadNode(const Reduce& reduce, Node& node) {
  node.kind = NodeKind::kReduce;
  node.op = CombineOp(reduce.op);
  node.reduce = reduce.op;
  QUERN_RETURN_IF_ERROR(ReadAll({reduce.low, reduce.high}, node.args));
  const size_t mark = saved_.size();
  node.slot = DefineSlot(reduce.index, DType::kI64);
  for (const auto& [name, value] : reduce.lets) {
    QUERN_ASSIGN(NodeRef read, Read(value));
    node.lets.emplace_back(DefineSlot(name, value->dtype), std::move(read));
  }
  QUERN_RETURN_IF_ERROR(ReadAll({reduce.body}, node.args));
  Leave(mark);
  return absl::OkStatus();
}

Status Resolver::ReadNode(const Decode& decode, Node& node) {
  node.kind = NodeKind::kDecode;
  QUERN_ASSIGN(node.view, FindView(decode.buffer, decode.index.size()));
  if (!IsBlock(program_.views[node.view].dtype)) {
    return Fail(absl::StrFormat("decode of %s, which is no block format", decode.buffer));
  }
  return ReadAll(decode.index, node.args);
}

Status Resolver::WrongDtype(const std::string& name, DType is, DType wanted) const {
  return Fail(absl::StrFormat("%s is %s, not %s", name, std::string(Name(is)), std::string(Name(wanted))));
}

Status Resolver::ReadAll(const std::vector<ExprRef>& exprs, std::vector<NodeRef>& nodes) {
  for (const ExprRef& expr : exprs) {
    QUERN_ASSIGN(NodeRef node, Read(expr));
    nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

StatusOr<SliceNode> Resolver::ReadSlice(const Slice& slice) {
  SliceNode node;
  QUERN_ASSIGN(const Entry* entry, Find(slice.buffer));
  const size_t rank = entry->view < 0 ? 0 : static_cast<size_t>(program_.views[entry->view].rank);
  QUERN_ASSIGN(node.view, FindView(slice.buffer, slice.dims.empty() ? rank : slice.dims.size()));
  for (const SliceDim& dim : slice.dims) {
    RangeNode range;
    if (dim.start != nullptr) {
      QUERN_ASSIGN(range.start, Read(dim.start));
    }
    if (dim.extent != nullptr) {
      QUERN_ASSIGN(range.extent, Read(dim.extent));
    }
    node.dims.push_back(std::move(range));
  }
  if (slice.dims.empty()) node.dims.resize(rank);
  return node;
}

}  // namespace quern::kir::interpret
