// Statements of the interpreter: how each kind is read, and what it does for one agent.
#include <algorithm>
#include <map>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "kir/describe.h"
#include "kir/interpret_machine.h"
#include "kir/interpret_resolve.h"
#include "kir/parts.h"
#include "kir/tile_op.h"

namespace quern::kir::interpret {
namespace {

class StatementResolver : public Resolver {
 public:
  using Resolver::Resolver;

 private:
  Status ReadBlock(const Block& block, Steps& steps) override {
    const size_t mark = saved_.size();
    const Stmt* outer = statement_;
    for (const StmtRef& stmt : block) {
      statement_ = stmt.get();
      auto step = std::make_unique<Step>();
      step->source = stmt.get();
      QUERN_RETURN_IF_ERROR(std::visit([&](const auto& node) { return ReadStmt(node, *step); }, stmt->node));
      auto any = [](const Steps& inner) {
        return std::any_of(inner.begin(), inner.end(), [](const auto& each) { return each->collective; });
      };
      step->collective = step->collective || any(step->body) || any(step->else_body);
      steps.push_back(std::move(step));
    }
    statement_ = outer;
    Leave(mark);
    return absl::OkStatus();
  }

  Status ReadStmt(const Loop& loop, Step& step) {
    step.collective = loop.kind == LoopKind::kThread;
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

  Status ReadStmt(const If& branch, Step& step) {
    QUERN_ASSIGN(step.value, Read(branch.condition));
    QUERN_RETURN_IF_ERROR(ReadBlock(branch.then_body, step.body));
    return ReadBlock(branch.else_body, step.else_body);
  }

  Status ReadStmt(const Let& let, Step& step) {
    QUERN_ASSIGN(step.value, Read(let.value));
    step.slot = DefineSlot(let.name, let.value->dtype);
    return absl::OkStatus();
  }
  Status ReadStmt(const Var& var, Step& step) {
    QUERN_ASSIGN(step.value, Read(var.value));
    step.slot = DefineSlot(var.name, var.value->dtype);
    return absl::OkStatus();
  }
  Status ReadStmt(const Assign& assign, Step& step) {
    QUERN_ASSIGN(step.value, Read(assign.value));
    QUERN_ASSIGN(const Entry* entry, Find(assign.name));
    if (entry->slot < 0) return Fail(absl::StrFormat("%s is not a var", assign.name));
    if (entry->dtype != assign.value->dtype) return WrongDtype(assign.name, entry->dtype, assign.value->dtype);
    step.slot = entry->slot;
    return absl::OkStatus();
  }

  Status ReadStmt(const Store& store, Step& step) {
    QUERN_ASSIGN(step.view, FindView(store.buffer, store.index.size()));
    const DType dtype = program_.views[step.view].dtype;
    if (IsBlock(dtype)) return Fail(absl::StrFormat("%s can only be written by pack", store.buffer));
    if (dtype != store.value->dtype) return WrongDtype(store.buffer, dtype, store.value->dtype);
    QUERN_RETURN_IF_ERROR(ReadAll(store.index, step.index));
    QUERN_ASSIGN(step.value, Read(store.value));
    return absl::OkStatus();
  }

  Status ReadStmt(const Alloc& alloc, Step& step) {
    QUERN_ASSIGN(step.view, DefineBuffer(alloc.name, alloc.type, true));
    return WithinMemory();
  }
  // Scratch is allocated, not given: a text must not be able to ask for more than a machine has.
  Status WithinMemory() const {
    if (program_.memories.back().bytes <= int64_t{1} << 30) return absl::OkStatus();
    return Fail(absl::StrFormat("%d bytes of scratch", program_.memories.back().bytes));
  }

  Status ReadStmt(const Tile& tile, Step& step) {
    QUERN_ASSIGN(step.value, Read(tile.init));
    if (tile.type.layout != Layout::kRow || tile.type.dtype != tile.init->dtype) {
      return Fail("a tile is dense and its initial value has its dtype");
    }
    QUERN_ASSIGN(step.view, DefineBuffer(tile.name, tile.type, true));
    return WithinMemory();
  }

  Status ReadStmt(const Map& map, Step& step) {
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

  Status ReadStmt(const Pack& pack, Step& step) {
    QUERN_ASSIGN(step.dst, ReadSlice(pack.dst));
    QUERN_ASSIGN(step.src, ReadSlice(pack.src));
    return absl::OkStatus();
  }

  Status ReadStmt(const Prefetch&, Step&) { return absl::OkStatus(); }

  Status ReadStmt(const Barrier&, Step& step) {
    step.collective = true;
    return absl::OkStatus();
  }
  Status ReadStmt(const Copy& copy, Step& step) {
    step.collective = true;
    QUERN_ASSIGN(step.dst, ReadSlice(copy.dst));
    QUERN_ASSIGN(step.src, ReadSlice(copy.src));
    const View& dst = program_.views[step.dst.view];
    const View& src = program_.views[step.src.view];
    if (CanCopy(src.dtype, src.layout, dst.dtype, dst.layout)) return absl::OkStatus();
    return Fail("no copy joins the two types");
  }
  Status ReadStmt(const Pipeline& pipeline, Step& step) {
    step.collective = true;
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
  Status ReadStmt(const Shuffle& shuffle, Step& step) {
    step.collective = true;
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

  Status ReadStmt(const TileCall& call, Step& step) {
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
};

}  // namespace

StatusOr<Program> Resolve(const Kernel& kernel, const Binding& binding) {
  Program program;
  QUERN_RETURN_IF_ERROR(StatementResolver(kernel, program).Run(binding));
  return program;
}

void Machine::ExecuteOne(const Step& step) {
  const auto iterate = [&] {
    const int64_t low = Integer(*step.low), high = Integer(*step.high);
    for (int64_t i = low; i < high && !failed_; i += step.step) {
      slots_[step.slot].integer = i;
      Execute(step.body);
    }
  };
  const auto set = [&] { slots_[step.slot] = Evaluate(*step.value); };
  // Inside a map, or in a kernel without a thread loop.
  const auto misplaced = [&] { FailWith("has no meaning here"); };
  std::visit(Overloaded{
                 [&](const kir::Loop& loop) { loop.kind == LoopKind::kThread ? misplaced() : iterate(); },
                 [&](const kir::If&) { Execute(Integer(*step.value) != 0 ? step.body : step.else_body); },
                 [&](const kir::Let&) { set(); },
                 [&](const kir::Var&) { set(); },
                 [&](const kir::Assign&) { set(); },
                 [&](const kir::Store&) { RunStore(step); },
                 [&](const kir::Alloc&) { views_[step.view].memory->Undefine(); },
                 [&](const kir::Tile&) { FillTile(step); },
                 [&](const kir::TileCall&) { Call(step); },
                 [&](const kir::Map&) { MapOver(step, 0); },
                 [&](const kir::Pack&) { RunPack(step); },
                 [](const kir::Prefetch&) {},
                 [&](const kir::Barrier&) { misplaced(); },
                 [&](const kir::Copy&) { misplaced(); },
                 [&](const kir::Pipeline&) { misplaced(); },
                 [&](const kir::Shuffle&) { misplaced(); },
             },
             step.source->node);
}

void Machine::RunStore(const Step& step) {
  const View& view = views_[step.view];
  // Lanes beside those that are used may hold anything: what nobody has written makes nothing of its own lane.
  forgives_ = !calls_.empty(), vague_ = false;
  const Value value = Evaluate(*step.value);
  forgives_ = false;
  int64_t index[kMaxRank];
  const bool inside = Inside(view, step.index, index);
  if (failed_) return;
  if (!inside)
    OutOfRange(view, index);
  else
    Check(vague_ ? ForgetElement(view, index) : WriteElement(view, index, value), view, index);
}

void Machine::FillTile(const Step& step) {
  const View& view = views_[step.view];
  const Value value = Evaluate(*step.value);
  int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= view.size[d];
  View flat = view;
  flat.rank = 1;
  flat.stride[0] = 1;
  for (int64_t i = 0; i < count; ++i) WriteElement(flat, &i, value);
}

// Loops over dimension `dim` and those below it.
void Machine::MapOver(const Step& step, size_t dim) {
  if (dim == step.slots.size()) {
    Execute(step.body);
    return;
  }
  const int64_t live = Integer(*step.index[dim]);
  for (int view : step.views) {
    if (live > views_[view].size[dim]) {
      FailWith(
          absl::StrFormat("extent %d of %s, which has %d", live, views_[view].memory->name, views_[view].size[dim]));
    }
  }
  for (int64_t i = 0; i < live && !failed_; ++i) {
    slots_[step.slots[dim]].integer = i;
    MapOver(step, dim + 1);
  }
}

void Machine::Call(const Step& step) {
  for (int slot : step.slots) slots_[slot].integer = -1;  // not known yet
  for (const Step::Operand& operand : step.operands) {
    View cut;
    if (!Cut(operand.slice, cut)) return;
    if (static_cast<size_t>(cut.rank) != operand.sizes.size()) {
      FailWith(
          absl::StrFormat("%s has %d ranged dimensions, not %d", cut.memory->name, cut.rank, operand.sizes.size()));
      return;
    }
    for (int d = 0; d < cut.rank; ++d) {
      int64_t& size = slots_[operand.sizes[d]].integer;
      if (size >= 0 && size != cut.size[d]) {
        FailWith(absl::StrFormat("%s has %d where an earlier operand has %d", cut.memory->name, cut.size[d], size));
        return;
      }
      size = cut.size[d];
    }
    views_[operand.view] = cut;
  }
  for (const Step::TileArgument& tile : step.tiles) {
    View view = views_[tile.outer];
    for (int d = 0; d < view.rank; ++d) {
      int64_t& size = slots_[tile.sizes[d]].integer;
      if (size < 0) size = view.size[d];
      if (size > view.size[d]) {
        FailWith(absl::StrFormat("tile %s has %d where the operands have %d", view.memory->name, view.size[d], size));
        return;
      }
      view.size[d] = size;
    }
    views_[tile.inner] = view;
  }
  for (const auto& [slot, value] : step.attributes) slots_[slot] = Evaluate(*value);
  calls_.push_back(&step);
  Execute(step.body);
  calls_.pop_back();
}

void Machine::RunPack(const Step& step) {
  View dst, src;
  if (!Cut(step.dst, dst) || !Cut(step.src, src)) return;
  if (dst.rank < 1 || dst.rank > 2 || src.rank < 1 || src.rank > 2) {
    FailWith("packs rows or a rectangle");
    return;
  }
  if (Turns(src.layout, dst.layout)) {
    if (dst.rank != 2 || src.rank != 2) {
      FailWith("turns a rectangle");
      return;
    }
    std::swap(dst.size[0], dst.size[1]);
    std::swap(dst.stride[0], dst.stride[1]);
  }
  const int64_t dst_rows = dst.rank == 2 ? dst.size[0] : 1, src_rows = src.rank == 2 ? src.size[0] : 1;
  const bool panel = IsPanel(dst.layout);
  const PackRow* row = FindPack(src.dtype, src.layout, dst.dtype, dst.layout);
  const int64_t merges = row == nullptr ? 1 : row->merges, columns = src.size[src.rank - 1],
                room = dst.size[dst.rank - 1] * merges;
  if ((merges == 1 ? columns != room : columns > room) || (panel ? src_rows > dst_rows : src_rows != dst_rows)) {
    FailWith(absl::StrFormat("%d x %d to %d x %d", src_rows, src.size[src.rank - 1], dst_rows, dst.size[dst.rank - 1]));
    return;
  }
  for (const View& view : {dst, src}) {
    const int64_t block = Row(view.dtype).block_elements;
    if (view.column % block != 0 || view.size[view.rank - 1] % block != 0) {
      FailWith(absl::StrFormat("%s is cut inside a block", view.memory->name));
      return;
    }
  }
  Fault fault = Fault::kNone;
  if (!PackViews(dst, src, fault)) {
    FailWith("no pack joins these types");
  } else if (fault == Fault::kUndefined) {
    FailWith(src.memory->name + " is read before it is written");
  } else if (fault == Fault::kReadOnly) {
    FailWith(dst.memory->name + " is written, but it is an input");
  }
}

}  // namespace quern::kir::interpret
