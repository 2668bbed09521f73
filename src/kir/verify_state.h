// The verifier's state while it walks a kernel; private to verify*.cc.
//
//   verify.cc         names, grid, statements
//   verify_params.cc  symbols, parameters, types
//   verify_expr.cc    dtypes of expressions, bounds of loads
//   verify_index.cc   integer expressions as polynomials for the prover
//   verify_slice.cc   slices, tile calls, packs
//   verify_race.cc    one writer for each element in grid, vec, thread and map
//   verify_written.cc scratch that nothing writes
//   verify_block.cc   blocks of threads: barriers, copies, pipelines, shuffles
//
// Integers of 64 bits are taken not to wrap: a buffer that an index near 2^63 could reach does not exist. Narrower ones
// count as unknown wherever they might.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kir/affine.h"
#include "kir/kir.h"

namespace quern::kir {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}
  virtual ~Verifier() = default;
  Status Run();

 protected:
  enum class EntityKind : uint8_t { kSymbol, kIndex, kLet, kVar, kParam, kAlloc, kTile };
  struct Entity {
    EntityKind kind = EntityKind::kSymbol;
    BufferType type = {};                            // a scalar: only dtype
    std::optional<Extent> value = {};                // an integer that is known as a polynomial
    Mode mode = Mode::kInOut;                        // of a parameter
    size_t depth = 0;                                // parallel scopes around the declaration
    std::vector<std::vector<Extent>> elements = {};  // a tile: the index in each enclosing map that names it
    bool uniform = false;                            // a scalar inside a thread loop that all threads have alike
    bool is_buffer() const { return kind >= EntityKind::kParam; }
  };

  // A read or write of one position, or of a rectangle (through variables over its extents).
  struct Access {
    const Stmt* stmt;
    std::string buffer;
    bool write;
    std::vector<Extent> position;
    std::vector<Extent> facts;  // guards inside the parallel scope
    int phase = 0;              // what barriers it lies between
    int scope = 0;              // kernels of threads: the thread loop, or a number of its own
  };
  // A grid, vec or map: its iterations may run in any order or at once.
  struct Parallel {
    std::string text;
    bool vec = false, map = false, thread = false;
    ThreadLevel level = ThreadLevel::kBlock;
    std::vector<IndexProver::Id> variables = {};
    IndexProver::Id first = 0;  // this and later variables belong to one iteration
    size_t facts = 0;
    std::vector<Access> accesses = {};
  };
  // Sizes and literals above this are refused or unknown, so that polynomials of them cannot overflow.
  static constexpr int64_t kLargest = int64_t{1} << 48;

  // What a slice covers.
  struct Rectangle {
    const Entity* entity = nullptr;
    std::vector<Extent> sizes;        // of the ranged dimensions
    std::vector<std::string> texts;   // how messages name these sizes
    std::vector<Extent> position;     // of any element, for Access
    std::vector<Extent> first, last;  // elements, by dimension
    Extent column;                    // where the last dimension starts
    bool whole_last = false;          // all of the last dimension
    bool whole = false;               // all of the buffer
  };

  Status Fail(const std::string& message) const;

  // Names
  Status Declare(const std::string& name, Entity entity);
  StatusOr<Entity*> Find(const std::string& name);
  StatusOr<Entity*> FindBuffer(const std::string& name);
  void Leave(size_t mark);

  // Parameters and types
  Status CheckSymbols();
  Status CheckParams();
  Status CheckType(const std::string& name, const BufferType& type);
  Status CheckInplace();
  Status CheckScratch();
  Status CheckWritten();

  // Statements; other kinds are checked in verify.cc
  Status CheckGrid();
  virtual Status CheckBlock(const Block& block) = 0;
  Status CheckNode(const TileCall& call);
  Status CheckNode(const Pack& pack);
  Status CheckNode(const Prefetch& prefetch);
  Status CheckNode(const Barrier& barrier);
  Status CheckNode(const Copy& copy);
  Status CheckNode(const Pipeline& pipeline);
  Status CheckNode(const Shuffle& shuffle);
  Status CheckLet(const std::string& name, const ExprRef& value);
  Status NotInside(const char* what);
  Status CheckUniform(const ExprRef& expr, const char* what);
  bool Varies(const ExprRef& expr, bool between_threads = false) const;

  // Blocks of threads
  Status CheckShape();
  Status CheckThread(const Loop& loop);
  Status CheckLoopBody(const std::string& index, const Extent& value, const Block& body, const Block* second);
  bool InThread() const;
  Status OnlyOutsideThreads(const char* what);  // in a kernel of threads
  Status OnlyInsideThreads(const char* what);
  Status NotForThreads(const char* what);
  Status CheckTogether(const char* what);  // all threads of the block come here
  Status CheckBlockRaces();
  void NextPhase() { phases_.push_back(phase_ = static_cast<int>(phases_.size())); }
  int Phase(int phase) const;
  void JoinPhases(int a, int b) { phases_[Phase(a)] = Phase(b); }

  // Expressions
  Status CheckExpr(const ExprRef& expr);
  Status CheckExprOf(const ExprRef& expr, DType dtype, const char* what);
  Status CheckReference(const NameRef& name, DType dtype);
  Status CheckLoad(const Load& load, DType dtype);
  Status CheckDecode(const Decode& decode, DType dtype);
  Status CheckApply(const Apply& apply, DType dtype);
  Status CheckReduce(const Reduce& reduce, DType dtype);
  // Dtypes, rank and, unless `anywhere`, bounds of an index; its polynomials.
  StatusOr<std::vector<Extent>> CheckIndex(const std::string& buffer, const Entity& entity, const Index& index,
                                           bool anywhere);
  // Whether `value` is some a / b, and a is less than `limit` times b.
  bool IsQuotientBelow(const Extent& value, const Extent& limit) const;
  Status CheckInside(const ExprRef& at, const Extent& value, const Extent& dim, const std::string& buffer);
  Status CheckReadable(const std::string& buffer, const Entity& entity);
  Status CheckWritable(const std::string& buffer, const Entity& entity);

  // Indices
  Extent ValueOf(const ExprRef& expr);
  Extent ValueOfApply(const Apply& apply, DType dtype);
  Extent Unknown(DType dtype, std::string_view hint);
  // Whether nothing is known but what the kernel says of its symbols, which holds everywhere in it.
  bool OnlyLastingFacts() const { return prover_.fact_count() <= kernel_.facts.size(); }
  Extent InRange(const Extent& value, DType dtype);
  Extent Quotient(const Extent& value, int64_t divisor);  // floored
  Extent Smaller(const Extent& a, const Extent& b);       // min(a, b)
  Extent Larger(const Extent& a, const Extent& b);
  Extent OneOf(const Extent& a, const Extent& b);
  // The variable made earlier for the same key, or a new one that `define` gives its bounds.
  template <typename Define>
  Extent Memo(std::string_view function, const Extent& a, const Extent& b, std::string_view hint, Define define);
  // A new index low <= v < high in steps; its polynomial, and the variable that counts the steps.
  std::pair<Extent, IndexProver::Id> NewIndex(const std::string& name, const Extent& low, const Extent& high,
                                              int64_t step);
  // Assumes that a condition holds, or that it does not.
  void Assume(const ExprRef& condition, bool holds);

  // Slices
  StatusOr<Rectangle> CheckSlice(const Slice& slice, bool hint);
  Status CheckOperand(const Slice& slice, const Rectangle& rectangle, bool columns);

  // Scratch
  void NoteScratchWrite(const std::string& buffer, const std::vector<Extent>& position);
  // `apart`: dimensions along which what was never written reaches nothing but its own lanes.
  void NoteScratchRead(const std::string& buffer, const std::vector<Extent>& first, const std::vector<Extent>& last,
                       const std::vector<bool>& apart = {});

  // Races
  void Record(const std::string& buffer, bool write, const std::vector<Extent>& position, bool by_block = false);
  Status CheckRaces(const Parallel& scope);
  bool Separate(const Parallel& scope, const Access& a, const Access& b);
  bool SeparateInOrder(const Parallel& scope, const Access& a, const Access& b, std::vector<IndexProver::Id> shared);
  bool SeparateAlways(const Parallel& scope, const Access& a, const Access& b,
                      const std::vector<IndexProver::Id>& shared, IndexProver::Id pinned, int direction);

  const Kernel& kernel_;
  const Stmt* statement_ = nullptr;
  IndexProver prover_;
  std::map<std::string, Extent> memo_;
  // Of variables that are a / b for a b that is no number: a and b.
  std::map<std::string, std::pair<Extent, Extent>, std::less<>> quotients_;
  std::map<std::string, Entity, std::less<>> names_;
  std::vector<std::string> declared_;   // in order; a scope ends by forgetting down to its mark
  std::set<std::string> buffer_names_;  // of the whole kernel
  std::set<std::string> written_;       // allocs and out parameters that have been written
  // Of scratch: what is written of each buffer, and what is certainly read.
  struct Reach {
    int64_t low, high;
  };
  struct ScratchRead {
    std::string buffer;
    const Stmt* stmt;
    std::vector<Reach> dims;
  };
  std::map<std::string, std::vector<Reach>> scratch_writes_;
  std::vector<ScratchRead> scratch_reads_;
  std::vector<Parallel> parallel_;  // innermost last
  // Kernels of threads
  int64_t threads_ = 0;            // 0: another kernel
  std::vector<int> phases_ = {0};  // union-find: phases between which some path has no barrier
  int phase_ = 0;
  std::vector<std::string> divergent_;         // enclosing control that may differ between threads
  std::optional<IndexProver::Id> block_loop_;  // first variable of the outermost loop around thread loops
  int scopes_ = 0, scope_ = 0;                 // thread loops so far; the current one
  std::vector<Access> block_accesses_;
  // For parameters that share memory: how each is accessed, and whether the output has been written.
  struct Shared {
    std::set<std::string> indices;
    std::string out;
    const Stmt* first_write = nullptr;
  };
  std::map<std::string, Shared> shared_;  // by the name of the input
  Status NoteShared(const std::string& buffer, bool write, const std::string& index);
};

}  // namespace quern::kir
