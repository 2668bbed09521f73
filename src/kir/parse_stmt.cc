// Statements of KIR text; see docs/kir.md for the grammar.
#include <algorithm>
#include <variant>

#include "kir/build.h"
#include "kir/parser.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

constexpr int64_t kMaxStages = 8;

static_assert(std::variant_size_v<Stmt::Node> == 16, "a kind of statement that ReadStatement should read, too");

class StatementParser : public Parser {
 public:
  using Parser::Parser;

  StatusOr<Block> Statements() override {
    Block block;
    while (!Is("}") && !AtEnd()) {
      if (Accept(";")) continue;
      int origin = -1;
      QUERN_ASSIGN(Nodes nodes, ReadStatement(&origin));
      if (origin < 0) {
        QUERN_ASSIGN(origin, ReadOrigin());
      }
      for (Stmt::Node& node : nodes) block.push_back(std::make_shared<const Stmt>(Stmt{std::move(node), origin}));
    }
    return block;
  }

 private:
  // Each Read function gives the nodes of one statement (`tile a, b : ...` gives two).
  using Nodes = std::vector<Stmt::Node>;

  StatusOr<Nodes> ReadStatement(int* origin) {
    if (Is("for") || Is("unroll") || Is("vec")) return ReadLoop(origin);
    // These words are free as names, which are followed by a mark.
    const bool word = Peek(1).kind == TokenKind::kName;
    if (Is("thread") && word) return ReadLoop(origin);
    if (Is("copy") && word) return ReadCopy();
    if (Is("pipeline") && word) return ReadPipeline(origin);
    if (Is("barrier") && !Is("[", 1) && !Is(":=", 1)) return ReadBarrier();
    if (Is("if")) return ReadIf(origin);
    if (Is("map")) return ReadMap(origin);
    if (Is("let")) return ReadLet();
    if (Is("var")) return ReadVar();
    if (Is("alloc")) return ReadAlloc();
    if (Is("tile")) return ReadTile();
    if (Is("pack")) return ReadPack();
    if (Is("prefetch")) return ReadPrefetch();
    if (Peek().kind != TokenKind::kName) return Expected("a statement");
    if (Is("[", 1)) return ReadStore();
    if (Is(":=", 1)) return ReadAssign();
    return ReadTileCall();
  }

  StatusOr<Nodes> ReadLoop(int* origin) {
    Loop loop;
    loop.kind = Is("for")      ? LoopKind::kFor
                : Is("unroll") ? LoopKind::kUnroll
                : Is("vec")    ? LoopKind::kVec
                               : LoopKind::kThread;
    Next();
    QUERN_ASSIGN(const Token* index, Name("an index"));
    loop.index = index->text;
    QUERN_RETURN_IF_ERROR(Expect("in"));
    QUERN_ASSIGN(loop.low, ReadAs(DType::kI64));
    QUERN_RETURN_IF_ERROR(Expect(".."));
    QUERN_ASSIGN(loop.high, ReadAs(DType::kI64));
    if (Accept("by")) {
      QUERN_ASSIGN(loop.step, Integer("a step", 1, INT64_MAX));
    }
    if (loop.kind == LoopKind::kVec && Accept("tail")) {
      if (!Is("mask") && !Is("peel") && !Is("pad")) return Expected("mask, peel or pad");
      const std::string_view tail = Next().text;
      loop.tail = tail == "mask" ? VecTail::kMask : tail == "peel" ? VecTail::kPeel : VecTail::kPad;
    }
    if (loop.kind == LoopKind::kThread) {
      QUERN_RETURN_IF_ERROR(Expect("@"));
      constexpr ThreadLevel kLevels[] = {ThreadLevel::kBlock, ThreadLevel::kWarp, ThreadLevel::kGroup,
                                         ThreadLevel::kLane};
      const auto* const level =
          std::find_if(std::begin(kLevels), std::end(kLevels), [&](ThreadLevel each) { return Is(Row(each).name); });
      if (level == std::end(kLevels)) return Expected("block, warp, group or lane");
      Next();
      loop.level = *level;
    }
    const size_t mark = declared_.size();
    QUERN_RETURN_IF_ERROR(DeclareName(*index, Scalar(DType::kI64)));
    QUERN_ASSIGN(loop.body, Braced(origin));
    LeaveScope(mark);
    return Nodes{std::move(loop)};
  }

  StatusOr<Nodes> ReadIf(int* origin) {
    Next();
    If branch;
    QUERN_ASSIGN(branch.condition, ReadAs(DType::kBool));
    QUERN_ASSIGN(branch.then_body, Braced(origin));
    if (Accept("else")) {
      QUERN_ASSIGN(branch.else_body, Braced(nullptr));
    }
    return Nodes{std::move(branch)};
  }

  StatusOr<Nodes> ReadLet() {
    Next();
    QUERN_ASSIGN(const Token* name, Name("a name"));
    QUERN_RETURN_IF_ERROR(Expect("="));
    if ((Is("shuffle") || Is("shuffle_xor") || Is("shuffle_down")) && Is("(", 1)) return ReadShuffle(*name);
    QUERN_ASSIGN(ExprRef value, AnyExpr());
    QUERN_RETURN_IF_ERROR(DeclareName(*name, Scalar(value->dtype)));
    return Nodes{Let{std::string(name->text), std::move(value)}};
  }

  StatusOr<Nodes> ReadVar() {
    Next();
    QUERN_ASSIGN(const Token* name, Name("a name"));
    QUERN_RETURN_IF_ERROR(Expect(":"));
    const std::optional<DType> dtype = DTypeFromName(Peek().text);
    if (!dtype || IsBlock(*dtype)) return Expected("a scalar dtype");
    Next();
    QUERN_RETURN_IF_ERROR(Expect("="));
    QUERN_ASSIGN(ExprRef value, ReadAs(*dtype));
    QUERN_RETURN_IF_ERROR(DeclareName(*name, Scalar(*dtype, EntityKind::kVar)));
    return Nodes{Var{std::string(name->text), std::move(value)}};
  }

  StatusOr<Nodes> ReadAssign() {
    const Token& name = Next();
    const Entity* entity = Find(name.text);
    if (entity == nullptr || entity->kind != EntityKind::kVar) return Fail(name, "expected a var to assign to");
    Next();
    QUERN_ASSIGN(ExprRef value, ReadAs(entity->type.dtype));
    return Nodes{Assign{std::string(name.text), std::move(value)}};
  }

  StatusOr<Nodes> ReadStore() {
    const Token& name = Next();
    const Entity* entity = Find(name.text);
    if (entity == nullptr || (entity->kind != EntityKind::kBuffer && entity->kind != EntityKind::kTile)) {
      return Fail(name, "expected a buffer to store to");
    }
    const BufferType type = entity->type;
    if (IsBlock(type.dtype)) return Fail(name, "a block format is written by pack");
    QUERN_ASSIGN(auto index, ReadIndex(type.dims.size()));
    QUERN_RETURN_IF_ERROR(Expect("="));
    QUERN_ASSIGN(ExprRef value, ReadAs(type.dtype));
    return Nodes{Store{std::string(name.text), std::move(index.first), std::move(value)}};
  }

  StatusOr<Nodes> ReadAlloc() {
    Next();
    QUERN_ASSIGN(const auto names, ReadNames("a name"));
    QUERN_RETURN_IF_ERROR(Expect(":"));
    QUERN_ASSIGN(const BufferType type, ReadType());
    if (!Is("scratch") && !Is("shared")) return Expected("scratch or shared");
    const Space space = Next().text == "shared" ? Space::kShared : Space::kScratch;
    Nodes nodes;
    for (const Token* name : names) {
      QUERN_RETURN_IF_ERROR(DeclareName(*name, {.kind = EntityKind::kBuffer, .type = type}));
      nodes.push_back(Alloc{std::string(name->text), type, space});
    }
    return nodes;
  }

  // tile a, b : f32[m, n] = e        one value for all, or one each
  StatusOr<Nodes> ReadTile() {
    Next();
    QUERN_ASSIGN(const auto names, ReadNames("a name"));
    QUERN_RETURN_IF_ERROR(Expect(":"));
    const Token& at = Peek();
    QUERN_ASSIGN(const BufferType type, ReadType());
    for (const Extent& dim : type.dims) {
      if (!dim.is_constant() || dim.constant() == 0) return Fail(at, "a tile has constant extents above 0");
    }
    if (IsBlock(type.dtype) || type.layout != Layout::kRow) return Fail(at, "a tile has a scalar dtype");
    QUERN_RETURN_IF_ERROR(Expect("="));
    std::vector<ExprRef> values;
    do {
      QUERN_ASSIGN(ExprRef value, ReadAs(type.dtype));
      values.push_back(std::move(value));
    } while (values.size() < names.size() && Accept(","));
    if (values.size() != 1 && values.size() != names.size()) return Expected("a value for each tile");
    Nodes nodes;
    for (size_t i = 0; i < names.size(); ++i) {
      QUERN_RETURN_IF_ERROR(DeclareName(*names[i], {.kind = EntityKind::kTile, .type = type}));
      nodes.push_back(Tile{std::string(names[i]->text), type, values[values.size() == 1 ? 0 : i]});
    }
    return nodes;
  }

  // map (i, j) in t, u [m, n] { body }; without [m, n]: the whole tiles
  StatusOr<Nodes> ReadMap(int* origin) {
    Next();
    Map map;
    QUERN_RETURN_IF_ERROR(Expect("("));
    std::vector<const Token*> indices;
    if (!Is(")")) {
      QUERN_ASSIGN(indices, ReadNames("an index"));
    }
    QUERN_RETURN_IF_ERROR(Expect(")"));
    QUERN_RETURN_IF_ERROR(Expect("in"));
    QUERN_ASSIGN(const auto tiles, ReadNames("a tile"));
    const std::vector<Extent>* dims = nullptr;
    for (const Token* name : tiles) {
      const Entity* entity = Find(name->text);
      if (entity == nullptr || entity->kind != EntityKind::kTile) return Fail(*name, "expected a tile");
      if (entity->type.dims.size() != indices.size()) return Fail(*name, "the rank of the tile is not that of the map");
      dims = dims == nullptr ? &entity->type.dims : dims;
      map.tiles.emplace_back(name->text);
    }
    if (Is("[")) {
      QUERN_ASSIGN(auto extents, ReadIndex(indices.size()));
      map.extents = std::move(extents.first);
    } else {
      for (const Extent& dim : *dims) map.extents.push_back(build::Int(dim.constant()));
    }
    const size_t mark = declared_.size();
    for (const Token* index : indices) {
      QUERN_RETURN_IF_ERROR(DeclareName(*index, Scalar(DType::kI64)));
      map.indices.emplace_back(index->text);
    }
    for (const std::string& tile : map.tiles) ++Find(tile)->live_maps;
    QUERN_ASSIGN(map.body, Braced(origin));
    for (const std::string& tile : map.tiles) --Find(tile)->live_maps;
    LeaveScope(mark);
    return Nodes{std::move(map)};
  }

  // b, or b[point, start : +extent, :]
  StatusOr<Slice> ReadSlice() {
    QUERN_ASSIGN(const Token* name, Name("a buffer"));
    const Entity* entity = Find(name->text);
    if (entity == nullptr || (entity->kind != EntityKind::kBuffer && entity->kind != EntityKind::kTile)) {
      return Fail(*name, "expected a buffer");
    }
    const size_t rank = entity->type.dims.size();
    Slice slice = build::Whole(std::string(name->text), static_cast<int>(rank));
    if (!Accept("[")) return slice;
    for (size_t i = 0; i < rank; ++i) {
      if (i > 0) QUERN_RETURN_IF_ERROR(Expect(","));
      if (Accept(":")) continue;
      QUERN_ASSIGN(slice.dims[i].start, ReadAs(DType::kI64));
      if (!Accept(":")) continue;
      QUERN_RETURN_IF_ERROR(Expect("+"));
      QUERN_ASSIGN(slice.dims[i].extent, ReadAs(DType::kI64));
    }
    if (!Is("]")) return Expected(absl::StrFormat("%d dimensions of the slice", rank));
    Next();
    return slice;
  }

  StatusOr<Nodes> ReadPack() {
    Next();
    Pack pack;
    QUERN_ASSIGN(pack.dst, ReadSlice());
    QUERN_RETURN_IF_ERROR(Expect("="));
    QUERN_ASSIGN(pack.src, ReadSlice());
    return Nodes{std::move(pack)};
  }

  StatusOr<Nodes> ReadPrefetch() {
    Next();
    QUERN_ASSIGN(Slice slice, ReadSlice());
    return Nodes{Prefetch{std::move(slice)}};
  }

  StatusOr<Nodes> ReadBarrier() {
    Next();
    return Nodes{Barrier{}};
  }

  StatusOr<Nodes> ReadCopy() {
    Next();
    Copy copy;
    QUERN_ASSIGN(copy.dst, ReadSlice());
    QUERN_RETURN_IF_ERROR(Expect("="));
    QUERN_ASSIGN(copy.src, ReadSlice());
    return Nodes{std::move(copy)};
  }

  // pipeline k in a..b [by c] stages s { fetch { } use { } }
  StatusOr<Nodes> ReadPipeline(int* origin) {
    Next();
    Pipeline pipeline;
    QUERN_ASSIGN(const Token* index, Name("an index"));
    pipeline.index = index->text;
    QUERN_RETURN_IF_ERROR(Expect("in"));
    QUERN_ASSIGN(pipeline.low, ReadAs(DType::kI64));
    QUERN_RETURN_IF_ERROR(Expect(".."));
    QUERN_ASSIGN(pipeline.high, ReadAs(DType::kI64));
    if (Accept("by")) {
      QUERN_ASSIGN(pipeline.step, Integer("a step", 1, INT64_MAX));
    }
    QUERN_RETURN_IF_ERROR(Expect("stages"));
    QUERN_ASSIGN(const int64_t stages, Integer("a number of stages", 1, kMaxStages));
    pipeline.stages = static_cast<int>(stages);
    const size_t mark = declared_.size();
    QUERN_RETURN_IF_ERROR(DeclareName(*index, Scalar(DType::kI64)));
    QUERN_RETURN_IF_ERROR(Expect("{"));
    QUERN_ASSIGN(*origin, ReadOrigin());
    QUERN_RETURN_IF_ERROR(Expect("fetch"));
    QUERN_ASSIGN(pipeline.fetch, Braced(nullptr));
    QUERN_RETURN_IF_ERROR(Expect("use"));
    QUERN_ASSIGN(pipeline.use, Braced(nullptr));
    QUERN_RETURN_IF_ERROR(Expect("}"));
    LeaveScope(mark);
    return Nodes{std::move(pipeline)};
  }

  // let NAME = shuffle_xor(value, mask), shuffle_down(value, distance) or shuffle(value, lane); up to `=` has been read
  StatusOr<Nodes> ReadShuffle(const Token& name) {
    const std::string_view word = Next().text;
    Shuffle shuffle;
    shuffle.name = name.text;
    shuffle.kind = word == "shuffle_xor"    ? ShuffleKind::kXor
                   : word == "shuffle_down" ? ShuffleKind::kDown
                                            : ShuffleKind::kAt;
    QUERN_RETURN_IF_ERROR(Expect("("));
    QUERN_ASSIGN(shuffle.value, AnyExpr());
    QUERN_RETURN_IF_ERROR(Expect(","));
    QUERN_ASSIGN(shuffle.lane, ReadAs(DType::kI64));
    QUERN_RETURN_IF_ERROR(Expect(")"));
    QUERN_RETURN_IF_ERROR(DeclareName(name, Scalar(shuffle.value->dtype)));
    return Nodes{std::move(shuffle)};
  }

  // op t, u += a, b[...] name value, name value
  StatusOr<Nodes> ReadTileCall() {
    const Token& name = Next();
    const TileOp* op = FindTileOp(name.text);
    if (op == nullptr) return Fail(name, absl::StrFormat("expected a statement, got \"%s\"", std::string(name.text)));
    TileCall call;
    call.op = op->name;
    QUERN_ASSIGN(const auto tiles, ReadNames("a tile"));
    for (const Token* tile : tiles) {
      const Entity* entity = Find(tile->text);
      if (entity == nullptr || entity->kind != EntityKind::kTile) return Fail(*tile, "expected a tile");
      call.tiles.emplace_back(tile->text);
    }
    if (tiles.size() != op->tiles.size()) {
      return Fail(name, absl::StrFormat("%s takes %d tiles, got %d", op->name, op->tiles.size(), tiles.size()));
    }
    QUERN_RETURN_IF_ERROR(Expect("+="));
    do {
      QUERN_ASSIGN(Slice operand, ReadSlice());
      call.operands.push_back(std::move(operand));
    } while (Accept(","));
    const size_t required = std::count_if(op->operands.begin(), op->operands.end(),
                                          [](const TileOperand& operand) { return !operand.optional; });
    if (call.operands.size() < required || call.operands.size() > op->operands.size()) {
      return Fail(name, absl::StrFormat("%s takes %d operands, got %d", op->name, required, call.operands.size()));
    }
    QUERN_RETURN_IF_ERROR(ReadAttributes(*op, call));
    return Nodes{std::move(call)};
  }

  Status ReadAttributes(const TileOp& op, TileCall& call) {
    bool more = Peek().kind == TokenKind::kName && !Peek().starts_line;
    while (more) {
      QUERN_ASSIGN(const Token* name, Name("an attribute"));
      const auto row = std::find_if(op.attributes.begin(), op.attributes.end(),
                                    [&](const TileAttribute& attribute) { return name->text == attribute.name; });
      if (row == op.attributes.end()) {
        return Fail(*name, absl::StrFormat("%s has no attribute \"%s\"", op.name, std::string(name->text)));
      }
      for (const auto& given : call.attributes) {
        if (given.first == name->text) return Fail(*name, "attribute given twice");
      }
      QUERN_ASSIGN(ExprRef value, ReadAs(row->dtype));
      call.attributes.emplace_back(std::string(name->text), std::move(value));
      more = Accept(",");
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Parser> MakeParser(std::vector<Token> tokens) {
  return std::make_unique<StatementParser>(std::move(tokens));
}

}  // namespace quern::kir
