// Resolves a kernel's names, sizes and tile ops for the interpreter.
#include <algorithm>
#include <map>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "kir/describe.h"
#include "kir/interpret_program.h"
#include "kir/symbols.h"
#include "kir/tile_op.h"

namespace quern::kir::interpret {
namespace {

class Resolver {
 public:
  Resolver(const Kernel& kernel, Program& program) : kernel_(kernel), program_(program) {}

  Status Run(const Binding& binding) {
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

 private:
  struct Entry {
    int slot = -1;  // a scalar
    DType dtype = DType::kI64;
    int view = -1;             // a buffer
    std::vector<int> element;  // inside map: slots of the indices of a tile's current element
  };
  using Saved = std::vector<std::pair<std::string, std::optional<Entry>>>;

  Status Fail(const std::string& message) const {
    const std::string where = statement_ == nullptr ? "" : Describe(*statement_) + ": ";
    return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s%s", kernel_.name, where, message));
  }

  void Define(const std::string& name, Entry entry) {
    auto it = names_.find(name);
    saved_.emplace_back(name, it == names_.end() ? std::nullopt : std::optional<Entry>(it->second));
    names_[name] = std::move(entry);
  }
  void Leave(size_t mark) {
    while (saved_.size() > mark) {
      auto& [name, entry] = saved_.back();
      if (entry)
        names_[name] = *std::move(entry);
      else
        names_.erase(name);
      saved_.pop_back();
    }
  }
  int DefineSlot(const std::string& name, DType dtype) {
    Entry entry;
    entry.slot = program_.slot_count++;
    entry.dtype = dtype;
    const int slot = entry.slot;
    Define(name, std::move(entry));
    return slot;
  }
  int DefineView(const std::string& name, View view) {
    Entry entry;
    entry.view = static_cast<int>(program_.views.size());
    entry.dtype = view.dtype;
    program_.views.push_back(view);
    const int id = entry.view;
    Define(name, std::move(entry));
    return id;
  }

  StatusOr<int> DefineBuffer(const std::string& name, const BufferType& type, bool writable) {
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
    if (type.layout == Layout::kPanel16 || type.layout == Layout::kKn32) {
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

  Status ReadGrid() {
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

  StatusOr<const Entry*> Find(const std::string& name) const {
    auto it = names_.find(name);
    if (it == names_.end()) return Fail(absl::StrFormat("%s is not defined", name));
    return &it->second;
  }

  StatusOr<int> FindView(const std::string& name, size_t rank) const {
    QUERN_ASSIGN(const Entry* entry, Find(name));
    if (entry->view < 0) return Fail(absl::StrFormat("%s is not a buffer", name));
    const View& view = program_.views[entry->view];
    if (static_cast<size_t>(view.rank) != rank) {
      return Fail(absl::StrFormat("%s has %d dimensions, not %d", name, view.rank, rank));
    }
    return entry->view;
  }

  StatusOr<NodeRef> Read(const ExprRef& expr) {
    auto node = std::make_unique<Node>();
    node->dtype = expr->dtype;
    if (const auto* constant = std::get_if<Const>(&expr->node)) {
      if (IsFloat(expr->dtype))
        node->constant.real = RoundReal(expr->dtype, constant->real);
      else
        node->constant.integer = WrapInteger(expr->dtype, constant->integer);
      return node;
    }
    if (const auto* name = std::get_if<NameRef>(&expr->node)) {
      QUERN_ASSIGN(const Entry* entry, Find(name->name));
      if (entry->slot >= 0) {
        if (entry->dtype != expr->dtype) return WrongDtype(name->name, entry->dtype, expr->dtype);
        node->kind = NodeKind::kSlot;
        node->slot = entry->slot;
        return node;
      }
      if (entry->element.empty()) return Fail(absl::StrFormat("%s is not a scalar", name->name));
      node->kind = NodeKind::kLoad;
      node->view = entry->view;
      for (int slot : entry->element) node->args.push_back(SlotNode(slot));
      return node;
    }
    if (const auto* load = std::get_if<Load>(&expr->node)) {
      node->kind = NodeKind::kLoad;
      QUERN_ASSIGN(node->view, FindView(load->buffer, load->index.size()));
      if (program_.views[node->view].dtype != expr->dtype) {
        return WrongDtype(load->buffer, program_.views[node->view].dtype, expr->dtype);
      }
      if (IsBlock(expr->dtype)) return Fail(absl::StrFormat("%s must be read by decode", load->buffer));
      QUERN_RETURN_IF_ERROR(ReadAll(load->index, node->args));
      if (load->otherwise != nullptr) {
        QUERN_ASSIGN(node->otherwise, Read(load->otherwise));
      }
      return node;
    }
    if (const auto* decode = std::get_if<Decode>(&expr->node)) {
      node->kind = NodeKind::kDecode;
      QUERN_ASSIGN(node->view, FindView(decode->buffer, decode->index.size()));
      if (!IsBlock(program_.views[node->view].dtype)) {
        return Fail(absl::StrFormat("decode of %s, which is no block format", decode->buffer));
      }
      QUERN_RETURN_IF_ERROR(ReadAll(decode->index, node->args));
      return node;
    }
    if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) {
      node->kind = NodeKind::kApply;
      node->op = apply->op;
      if (static_cast<int>(apply->args.size()) != Row(apply->op).arity) {
        return Fail(absl::StrFormat("%s takes %d operands", Row(apply->op).name, Row(apply->op).arity));
      }
      const DType operands = apply->args.back()->dtype;
      const OpDomain domain = Row(apply->op).domain;
      if (IsBlock(operands) || (IsFloat(operands) ? domain == OpDomain::kInteger || domain == OpDomain::kBitwise
                                                  : domain == OpDomain::kFloat)) {
        return Fail(absl::StrFormat("%s does not apply to %s", Row(apply->op).name, std::string(Name(operands))));
      }
      QUERN_RETURN_IF_ERROR(ReadAll(apply->args, node->args));
      return node;
    }
    if (const auto* cast = std::get_if<Cast>(&expr->node)) {
      node->kind = NodeKind::kCast;
      return WithArg(std::move(node), cast->value);
    }
    if (const auto* bits = std::get_if<Bits>(&expr->node)) {
      node->kind = NodeKind::kBits;
      return WithArg(std::move(node), bits->value);
    }
    const auto& reduce = std::get<Reduce>(expr->node);
    node->kind = NodeKind::kReduce;
    node->op = CombineOp(reduce.op);
    node->reduce = reduce.op;
    QUERN_RETURN_IF_ERROR(ReadAll({reduce.low, reduce.high}, node->args));
    const size_t mark = saved_.size();
    node->slot = DefineSlot(reduce.index, DType::kI64);
    for (const auto& [name, value] : reduce.lets) {
      QUERN_ASSIGN(NodeRef read, Read(value));
      node->lets.emplace_back(DefineSlot(name, value->dtype), std::move(read));
    }
    QUERN_RETURN_IF_ERROR(ReadAll({reduce.body}, node->args));
    Leave(mark);
    return node;
  }

  Status WrongDtype(const std::string& name, DType is, DType wanted) const {
    return Fail(absl::StrFormat("%s is %s, not %s", name, std::string(Name(is)), std::string(Name(wanted))));
  }
  NodeRef SlotNode(int slot) const {
    auto node = std::make_unique<Node>();
    node->kind = NodeKind::kSlot;
    node->dtype = DType::kI64;
    node->slot = slot;
    return node;
  }
  StatusOr<NodeRef> WithArg(NodeRef node, const ExprRef& value) {
    QUERN_RETURN_IF_ERROR(ReadAll({value}, node->args));
    return node;
  }
  Status ReadAll(const std::vector<ExprRef>& exprs, std::vector<NodeRef>& nodes) {
    for (const ExprRef& expr : exprs) {
      QUERN_ASSIGN(NodeRef node, Read(expr));
      nodes.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  StatusOr<SliceNode> ReadSlice(const Slice& slice) {
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

  // Statements

  static bool IsCollective(const Step& step) {
    auto any = [](const Steps& steps) {
      return std::any_of(steps.begin(), steps.end(), [](const auto& inner) { return inner->collective; });
    };
    return step.kind >= StepKind::kThread || any(step.body) || any(step.else_body);
  }

  Status ReadBlock(const Block& block, Steps& steps) {
    const size_t mark = saved_.size();
    const Stmt* outer = statement_;
    for (const StmtRef& stmt : block) {
      statement_ = stmt.get();
      auto step = std::make_unique<Step>();
      step->source = stmt.get();
      const bool hint = std::holds_alternative<Prefetch>(stmt->node);
      QUERN_RETURN_IF_ERROR(std::visit([&](const auto& node) { return ReadNode(node, *step); }, stmt->node));
      step->collective = IsCollective(*step);
      if (!hint) steps.push_back(std::move(step));
    }
    statement_ = outer;
    Leave(mark);
    return absl::OkStatus();
  }

  Status ReadNode(const Loop& loop, Step& step) {
    step.kind = loop.kind == LoopKind::kThread ? StepKind::kThread : StepKind::kLoop;
    step.level = loop.level;
    const size_t outer_memories = program_.memories.size();
    if (loop.step <= 0) return Fail(absl::StrFormat("step %d", loop.step));
    step.step = loop.step;
    QUERN_ASSIGN(step.low, Read(loop.low));
    QUERN_ASSIGN(step.high, Read(loop.high));
    const size_t mark = saved_.size();
    step.slot = DefineSlot(loop.index, DType::kI64);
    QUERN_RETURN_IF_ERROR(ReadBlock(loop.body, step.body));
    Leave(mark);
    if (loop.kind == LoopKind::kThread) {
      for (size_t v = 0; v < program_.views.size(); ++v) {
        for (size_t m = outer_memories; m < program_.memories.size(); ++m) {
          if (program_.views[v].memory == &program_.memories[m]) step.privates.push_back(static_cast<int>(v));
        }
      }
    }
    return absl::OkStatus();
  }

  Status ReadNode(const If& branch, Step& step) {
    step.kind = StepKind::kIf;
    QUERN_ASSIGN(step.value, Read(branch.condition));
    QUERN_RETURN_IF_ERROR(ReadBlock(branch.then_body, step.body));
    return ReadBlock(branch.else_body, step.else_body);
  }

  Status ReadNode(const Let& let, Step& step) {
    QUERN_ASSIGN(step.value, Read(let.value));
    step.slot = DefineSlot(let.name, let.value->dtype);
    return absl::OkStatus();
  }
  Status ReadNode(const Var& var, Step& step) {
    QUERN_ASSIGN(step.value, Read(var.value));
    step.slot = DefineSlot(var.name, var.value->dtype);
    return absl::OkStatus();
  }
  Status ReadNode(const Assign& assign, Step& step) {
    QUERN_ASSIGN(step.value, Read(assign.value));
    QUERN_ASSIGN(const Entry* entry, Find(assign.name));
    if (entry->slot < 0) return Fail(absl::StrFormat("%s is not a var", assign.name));
    if (entry->dtype != assign.value->dtype) return WrongDtype(assign.name, entry->dtype, assign.value->dtype);
    step.slot = entry->slot;
    return absl::OkStatus();
  }

  Status ReadNode(const Store& store, Step& step) {
    step.kind = StepKind::kStore;
    QUERN_ASSIGN(step.view, FindView(store.buffer, store.index.size()));
    const DType dtype = program_.views[step.view].dtype;
    if (IsBlock(dtype)) return Fail(absl::StrFormat("%s can only be written by pack", store.buffer));
    if (dtype != store.value->dtype) return WrongDtype(store.buffer, dtype, store.value->dtype);
    QUERN_RETURN_IF_ERROR(ReadAll(store.index, step.index));
    QUERN_ASSIGN(step.value, Read(store.value));
    return absl::OkStatus();
  }

  Status ReadNode(const Alloc& alloc, Step& step) {
    step.kind = StepKind::kAlloc;
    QUERN_ASSIGN(step.view, DefineBuffer(alloc.name, alloc.type, true));
    return WithinMemory();
  }
  // Scratch is allocated, not given: a text must not be able to ask for more than a machine has.
  Status WithinMemory() const {
    if (program_.memories.back().bytes <= int64_t{1} << 30) return absl::OkStatus();
    return Fail(absl::StrFormat("%d bytes of scratch", program_.memories.back().bytes));
  }

  Status ReadNode(const Tile& tile, Step& step) {
    step.kind = StepKind::kTile;
    QUERN_ASSIGN(step.value, Read(tile.init));
    if (tile.type.layout != Layout::kRow || tile.type.dtype != tile.init->dtype) {
      return Fail("a tile is dense and its initial value has its dtype");
    }
    QUERN_ASSIGN(step.view, DefineBuffer(tile.name, tile.type, true));
    return WithinMemory();
  }

  Status ReadNode(const Map& map, Step& step) {
    step.kind = StepKind::kMap;
    if (map.extents.size() != map.indices.size()) return Fail("one extent for each index");
    QUERN_RETURN_IF_ERROR(ReadAll(map.extents, step.index));
    const size_t mark = saved_.size();
    for (const std::string& index : map.indices) step.slots.push_back(DefineSlot(index, DType::kI64));
    for (const std::string& tile : map.tiles) {
      QUERN_ASSIGN(const int view, FindView(tile, map.indices.size()));
      step.views.push_back(view);
      Entry entry;
      entry.view = view;
      entry.dtype = program_.views[view].dtype;
      entry.element = step.slots;
      Define(tile, std::move(entry));
    }
    QUERN_RETURN_IF_ERROR(ReadBlock(map.body, step.body));
    Leave(mark);
    return absl::OkStatus();
  }

  Status ReadNode(const Pack& pack, Step& step) {
    step.kind = StepKind::kPack;
    QUERN_ASSIGN(step.dst, ReadSlice(pack.dst));
    QUERN_ASSIGN(step.src, ReadSlice(pack.src));
    return absl::OkStatus();
  }

  Status ReadNode(const Prefetch&, Step&) { return absl::OkStatus(); }

  Status ReadNode(const Barrier&, Step& step) {
    step.kind = StepKind::kBarrier;
    return absl::OkStatus();
  }
  Status ReadNode(const Copy& copy, Step& step) {
    step.kind = StepKind::kCopy;
    QUERN_ASSIGN(step.dst, ReadSlice(copy.dst));
    QUERN_ASSIGN(step.src, ReadSlice(copy.src));
    const View& dst = program_.views[step.dst.view];
    const View& src = program_.views[step.src.view];
    if (CanCopy(src.dtype, src.layout, dst.dtype, dst.layout)) return absl::OkStatus();
    return Fail("no copy joins the two types");
  }
  Status ReadNode(const Pipeline& pipeline, Step& step) {
    step.kind = StepKind::kPipeline;
    step.step = pipeline.step;
    QUERN_ASSIGN(step.low, Read(pipeline.low));
    QUERN_ASSIGN(step.high, Read(pipeline.high));
    const size_t mark = saved_.size();
    step.slot = DefineSlot(pipeline.index, DType::kI64);
    QUERN_RETURN_IF_ERROR(ReadBlock(pipeline.fetch, step.body));
    QUERN_RETURN_IF_ERROR(ReadBlock(pipeline.use, step.else_body));
    Leave(mark);
    return absl::OkStatus();
  }
  Status ReadNode(const Shuffle& shuffle, Step& step) {
    step.kind = StepKind::kShuffle;
    step.shuffle = shuffle.kind;
    QUERN_ASSIGN(step.value, Read(shuffle.value));
    QUERN_ASSIGN(step.low, Read(shuffle.lane));
    step.slot = DefineSlot(shuffle.name, shuffle.value->dtype);
    return absl::OkStatus();
  }

  // Where a dimension of that name is kept in the sizes of `op`.
  static int SizeNumber(const TileOp& op, std::string_view name) {
    for (size_t i = 0; i < op.sizes.size(); ++i) {
      if (name == op.sizes[i]) return static_cast<int>(i);
    }
    return -1;
  }

  Status ReadNode(const TileCall& call, Step& step) {
    step.kind = StepKind::kCall;
    const TileOp* op = FindTileOp(call.op);
    if (op == nullptr) return Fail(absl::StrFormat("no tile op is named %s", call.op));
    if (call.tiles.size() != op->tiles.size() || call.operands.size() > op->operands.size()) {
      return Fail(
          absl::StrFormat("%s takes %d tiles and %d operands", op->name, op->tiles.size(), op->operands.size()));
    }
    // What the caller's names mean is read before the meaning's own names hide them.
    for (size_t t = 0; t < call.tiles.size(); ++t) {
      QUERN_ASSIGN(const int view, FindView(call.tiles[t], op->tiles[t].dims.size()));
      step.tiles.push_back({view, -1, {}});
    }
    std::vector<NodeRef> attributes(op->attributes.size());
    for (const auto& [name, value] : call.attributes) {
      size_t number = 0;
      while (number < op->attributes.size() && op->attributes[number].name != name) ++number;
      if (number == op->attributes.size()) return Fail(absl::StrFormat("%s has no attribute %s", op->name, name));
      QUERN_ASSIGN(attributes[number], Read(value));
      if (value->dtype != op->attributes[number].dtype) {
        return WrongDtype(name, op->attributes[number].dtype, value->dtype);
      }
    }
    for (const Slice& slice : call.operands) {
      step.operands.emplace_back();
      QUERN_ASSIGN(step.operands.back().slice, ReadSlice(slice));
    }

    // A scope of its own: the meaning sees its operands and nothing of the kernel.
    std::map<std::string, Entry, std::less<>> outer_names;
    outer_names.swap(names_);
    Saved outer_saved;
    outer_saved.swap(saved_);
    std::vector<int> sizes;
    for (const char* size : op->sizes) sizes.push_back(DefineSlot(size, DType::kI64));
    step.slots = sizes;
    auto buffer = [&](const TileOperand& operand, std::vector<int>& size_slots) {
      View view;
      view.dtype = operand.dtype;
      view.layout = operand.layout;
      for (const char* dim : operand.dims) {
        if (*dim == '\0') continue;  // a point of the slice
        size_slots.push_back(sizes[SizeNumber(*op, dim)]);
        ++view.rank;
      }
      return DefineView(operand.name, view);
    };
    for (size_t t = 0; t < op->tiles.size(); ++t) step.tiles[t].inner = buffer(op->tiles[t], step.tiles[t].sizes);
    for (size_t o = 0; o < op->operands.size(); ++o) {
      if (o >= step.operands.size()) {
        if (!op->operands[o].optional)
          return Fail(absl::StrFormat("%s needs the operand %s", op->name, op->operands[o].name));
        std::vector<int> unused;
        buffer(op->operands[o], unused);  // a view without memory: reads as 0
        continue;
      }
      const View& given = program_.views[step.operands[o].slice.view];
      if (given.dtype != op->operands[o].dtype || given.layout != op->operands[o].layout) {
        return Fail(
            absl::StrFormat("%s is not of the type of the operand %s", call.operands[o].buffer, op->operands[o].name));
      }
      step.operands[o].view = buffer(op->operands[o], step.operands[o].sizes);
    }
    for (size_t a = 0; a < op->attributes.size(); ++a) {
      const TileAttribute& attribute = op->attributes[a];
      if (attributes[a] == nullptr) {
        attributes[a] = std::make_unique<Node>();
        attributes[a]->dtype = attribute.dtype;
        if (IsFloat(attribute.dtype))
          attributes[a]->constant.real = attribute.default_value;
        else
          attributes[a]->constant.integer = static_cast<int64_t>(attribute.default_value);
      }
      step.attributes.emplace_back(DefineSlot(attribute.name, attribute.dtype), std::move(attributes[a]));
    }
    program_.meanings.push_back(Meaning(*op));
    QUERN_RETURN_IF_ERROR(ReadBlock(Block(program_.meanings.back()), step.body));
    names_.swap(outer_names);
    saved_.swap(outer_saved);
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  Program& program_;
  Binding binding_;
  std::map<std::string, Entry, std::less<>> names_;
  Saved saved_;
  const Stmt* statement_ = nullptr;
};

}  // namespace

StatusOr<Program> Resolve(const Kernel& kernel, const Binding& binding) {
  Program program;
  QUERN_RETURN_IF_ERROR(Resolver(kernel, program).Run(binding));
  return program;
}

}  // namespace quern::kir::interpret
