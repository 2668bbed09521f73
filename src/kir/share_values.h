// The values of the expressions of one block, for ShareValues: which of them are the same, how often each is written,
// which get a name, and where. Private to share*.cc.
//
// A value is an expression where its names mean one thing: equal expressions are one value when nothing that they read
// has changed in between, and when those of their names that a reduction declares are of one and the same reduction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kir/intern.h"
#include "kir/kir.h"

namespace quern::kir {

// What all blocks of a kernel have in common.
struct ShareState {
  // When the buffer or scalar of a name was last changed or declared; and when any buffer may have been.
  struct Moment {
    std::map<std::string, int64_t> changed;
    int64_t memory_changed = 0;
  };
  struct Named {
    std::string name;
    int branches;  // of `if`s around it
  };

  Interner nodes;
  std::set<std::string> reduced;                // names that reductions declare
  std::vector<std::set<std::string>> captured;  // by number: those of them that an expression mentions
  std::set<std::string> taken;                  // names that are not free
  std::map<std::string, std::string> partners;  // parameters that may be the same memory
  bool threads = false;                         // others may change memory between two statements
  int64_t clock = 0;
  Moment now;
  std::map<std::pair<int, int64_t>, Named> visible;  // by expression and when something it reads last changed
  int branches = 0;
  int next_name = 0;

  int Number(const ExprRef& expr);
  int64_t Changed(const std::string& name) const;
  void Change(const std::string& name);
  std::string FreshName();
};

class BlockValues {
 public:
  struct Value {
    int number = -1;                 // of its expression
    int64_t changed = 0;             // when something that it reads last was
    std::vector<int> operands = {};  // values; of a reduction: low, high and body
    int body = -1;                   // of a reduction: the scope inside
    int weight = 1;                  // its nodes, written out as a tree
    bool cheap = false;              // arithmetic on indices, without division or load
    bool stays = false;              // must not get a name
    bool named = false;
    bool outside = false;  // ... by a let outside of the block
    std::string name = {};
    int64_t uses = 0;         // as often as it is written
    int scope = -1;           // the innermost around all of its uses; 0 is the block
    size_t first = SIZE_MAX;  // statement that uses it
  };

  explicit BlockValues(ShareState& state) : state_(state) {}

  // The value of an expression of the statement, -1 for null. Statements come in order.
  int Root(const ExprRef& expr, size_t statement);
  // The comparisons of a condition must not get names; nor any part of an index.
  void KeepCondition(int value);
  void KeepWhole(int value);
  // The statement is `let name = value`.
  void NameRoot(int value, size_t statement, const std::string& name) {
    let_roots_.emplace_back(value, statement, name);
  }

  // Once all roots are known: which values get a name, and where.
  void Decide();
  // Those to be let in front of the statement.
  const std::vector<int>& LetsBefore(size_t statement) const;
  // As it is used: by its name, if it has one; and in full.
  ExprRef Used(int value) const;
  const ExprRef& InFull(int value) const { return written_[value]; }
  // Whether this let statement is what names the value.
  bool IsOwnLet(int value, size_t statement) const { return own_lets_.contains({value, statement}); }
  const Value& operator[](int value) const { return values_[value]; }

 private:
  struct Scope {
    int parent = 0, depth = 0;
    const Reduce* reduce = nullptr;        // null: the block
    std::map<std::string, int> lets = {};  // of the reduction as it was
  };
  struct Visit;

  bool Declares(const Scope& scope, const std::string& name) const;
  std::optional<int> Known(int number, int scope, int& around) const;
  int ValueOf(int number, int scope);
  void Take(Visit& visit, int operand);
  int Finish(Visit& visit);
  bool IsShort(const Value& value) const;
  int Common(int scope, int other) const;
  void CountUses();
  void CutDeep();
  void GiveNames();
  void Write();

  ShareState& state_;
  std::vector<Value> values_;
  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  std::map<std::tuple<int, int, int64_t>, int> asked_;   // expression, scope and when it was asked for
  std::map<std::tuple<int, int, int64_t>, int> unique_;  // expression, scope and when it was last changed
  std::map<int, std::pair<int, std::string>> hints_;     // values that a reduction had let: its scope, their name
  std::vector<std::pair<int, size_t>> roots_;
  std::vector<std::tuple<int, size_t, std::string>> let_roots_;
  std::set<std::pair<int, size_t>> own_lets_;
  std::map<size_t, std::vector<int>> before_;
  const std::vector<int> none_ = {};
  std::vector<std::vector<int>> inside_;  // by scope: lets of its reduction
  std::vector<ExprRef> written_;
};

// Whether the expression of that number may be known by a name: from the name of a condition, or of
// select(x == 0, n, x), the verifier learns nothing.
bool MayBeNamed(const Interner& nodes, int number);

}  // namespace quern::kir
