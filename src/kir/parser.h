// The recursive-descent parser of KIR text; private to parse.cc (kernels), parse_stmt.cc and parse_expr.cc.
//
// It resolves every name as it reads, so that each expression gets its dtype at once. A literal without a suffix takes
// the dtype that its place asks for (`h * 2`: that of h), and is i64 or f32 where the place does not say. Depth is
// limited, so no input can exhaust the stack.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kir/kir.h"
#include "kir/lexer.h"

namespace quern::kir {

struct Scope;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  virtual ~Parser() = default;

  StatusOr<Kernel> OneKernel();
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  Status ExpectEnd() { return AtEnd() ? absl::OkStatus() : Expected("the end of the text"); }

  void Declare(const Scope& scope);
  StatusOr<ExprRef> AnyExpr();
  virtual StatusOr<Block> Statements() = 0;  // up to `}` or the end

 protected:
  static constexpr int kMaxDepth = 256;  // of nested expressions, and of nested blocks
  static constexpr int kMaxRank = 8;

  enum class EntityKind : uint8_t { kScalar, kSymbol, kVar, kBuffer, kTile };
  struct Entity {
    EntityKind kind = EntityKind::kScalar;
    BufferType type;    // a scalar: only dtype
    int live_maps = 0;  // a tile: enclosing maps in which its name is an element
  };
  static Entity Scalar(DType dtype, EntityKind kind = EntityKind::kScalar) {
    return {kind, BufferType{dtype, {}, Layout::kRow}};
  }

  // An expression on its way to a dtype. Flexible: made of literals without suffix alone, with placeholder dtypes.
  struct Typed {
    ExprRef expr;
    bool flexible = false;
    bool real = false;  // flexible, and must become a float
    int depth = 1;
  };

  // Tokens
  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& Next();
  bool Is(std::string_view text, size_t ahead = 0) const;
  bool Accept(std::string_view text);
  Status Expect(std::string_view text);
  StatusOr<const Token*> Name(std::string_view what);
  StatusOr<int64_t> Integer(std::string_view what, int64_t low, int64_t high);
  StatusOr<std::vector<const Token*>> ReadNames(std::string_view what);
  Status Expected(std::string_view what) const;
  static Status Fail(const Token& token, std::string_view message);

  // Names
  Status DeclareName(const Token& token, Entity entity);
  Entity* Find(std::string_view name);
  void LeaveScope(size_t mark);

  // Types and kernels
  StatusOr<Extent> ReadExtent();
  StatusOr<BufferType> ReadType();
  Status ReadParams(Kernel& kernel);
  Status ReadSymbols(Kernel& kernel);
  Status ReadGrid(Kernel& kernel);

  // Blocks, whose statements are read in parse_stmt.cc
  StatusOr<Block> Braced(int* origin);
  StatusOr<int> ReadOrigin();

  // Expressions
  StatusOr<Typed> Binary(int min_precedence);
  StatusOr<Typed> Unary();
  StatusOr<Typed> Primary();
  StatusOr<Typed> Literal(bool negative);
  StatusOr<Typed> ReadConversion(bool bits);
  StatusOr<Typed> ReadMarked(bool contract);
  StatusOr<Typed> ReadReduce(ReduceOp op);
  StatusOr<Typed> ReadCall(Op op);
  StatusOr<Typed> ReadLoad(const Token& name, const BufferType& type);
  StatusOr<std::pair<Index, int>> ReadIndex(size_t rank);  // and its depth
  StatusOr<Typed> Apply(Op op, std::vector<Typed> args, const Token& at);
  StatusOr<Typed> Convert(Typed value, DType dtype, const Token& at);
  StatusOr<ExprRef> Retype(const ExprRef& expr, DType dtype, const Token& at);
  StatusOr<Typed> Made(ExprRef expr, int depth, const Token& at);
  StatusOr<Typed> ReadTyped(std::optional<DType> dtype);  // none: what a literal is where its place does not say
  StatusOr<ExprRef> ReadAs(DType dtype);
  bool AtLiteral(size_t ahead) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool contract_ = false;
  bool symbols_known_ = true;  // parameters stand before the symbols that their extents use
  std::vector<std::pair<std::string, const Token*>> symbol_uses_;
  std::map<std::string, Entity, std::less<>> names_;
  std::vector<std::string> declared_;  // in order; a scope ends by forgetting down to its mark
  std::vector<std::string> origins_;

  struct Nesting {
    explicit Nesting(int& depth) : depth(depth) { ++depth; }
    ~Nesting() { --depth; }
    int& depth;
  };
};

// One that reads every kind of statement (parse_stmt.cc).
std::unique_ptr<Parser> MakeParser(std::vector<Token> tokens);

}  // namespace quern::kir
