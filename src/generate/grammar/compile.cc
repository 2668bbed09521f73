// A grammar's tree as automata, and what is wrong with it as a whole: left recursion, rules without end.
#include "generate/grammar/grammar.h"
#include "generate/grammar/syntax.h"

namespace quern::grammar {

class Compiler {
 public:
  explicit Compiler(const Syntax& syntax) : syntax_(syntax) {}

  StatusOr<Grammar> Run() {
    QUERN_ASSIGN(const int32_t end, Add(Node::Kind::kEnd, 0, 0));
    const int32_t rules = static_cast<int32_t>(syntax_.rules.size());
    grammar_.begins_.resize(syntax_.rules.size());
    for (owner_ = 0; owner_ < rules; ++owner_) {
      owners_.push_back(owner_);
    }
    for (owner_ = 0; owner_ < rules; ++owner_) {
      const auto rule = static_cast<size_t>(owner_);
      QUERN_ASSIGN(grammar_.begins_[rule], Compile(syntax_.rules[rule].body, end));
    }
    grammar_.root_ = syntax_.root;
    QUERN_RETURN_IF_ERROR(CheckEnds());
    QUERN_RETURN_IF_ERROR(CheckLeftRecursion());
    return std::move(grammar_);
  }

 private:
  using Kind = Expression::Kind;

  StatusOr<int32_t> Add(Node::Kind kind, int32_t value, int32_t next) {
    if (grammar_.nodes_.size() == kMostNodes)
      return absl::ResourceExhaustedError(
          absl::StrFormat("the grammar has more than %d steps; repetitions count as often as they may be", kMostNodes));
    grammar_.nodes_.push_back({kind, value, next});
    return static_cast<int32_t>(grammar_.nodes_.size() - 1);
  }

  StatusOr<int32_t> AddChars(uint16_t state, int32_t next) {
    if (state == ByteStates::kDead)
      return absl::ResourceExhaustedError("the grammar's classes have too many different characters");
    return Add(Node::Kind::kChars, state, next);
  }

  // The node from which what `expression` stands for leads to `next`.
  StatusOr<int32_t> Compile(const Expression& expression, int32_t next) {
    switch (expression.kind) {
      case Kind::kLiteral:
        for (size_t i = expression.literal.size(); i-- > 0;) {
          QUERN_ASSIGN(next, AddChars(grammar_.bytes_.OfByte(static_cast<uint8_t>(expression.literal[i])), next));
        }
        return next;
      case Kind::kChars: return AddChars(grammar_.bytes_.Of(expression.chars), next);
      case Kind::kRule: return Add(Node::Kind::kCall, expression.rule, next);
      case Kind::kSequence:
        for (size_t i = expression.parts.size(); i-- > 0;) {
          QUERN_ASSIGN(next, Compile(expression.parts[i], next));
        }
        return next;
      case Kind::kAlternatives: {
        QUERN_ASSIGN(int32_t first, Compile(expression.parts.back(), next));
        for (size_t i = expression.parts.size() - 1; i-- > 0;) {
          QUERN_ASSIGN(const int32_t other, Compile(expression.parts[i], next));
          QUERN_ASSIGN(first, Add(Node::Kind::kFork, other, first));
        }
        return first;
      }
      case Kind::kRepeat: return Repeat(expression, next);
    }
    return next;
  }

  static const Expression& Single(const Expression& expression) {
    const Expression* single = &expression;
    while (single->kind == Kind::kSequence && single->parts.size() == 1) single = single->parts.data();
    return *single;
  }

  StatusOr<int32_t> Repeat(const Expression& repeat, int32_t next) {
    const Expression& part = Single(repeat.parts[0]);
    // What is repeated by a count stands there as often, as one node: a longer part is a rule of its own.
    Expression call = {.kind = Kind::kRule};
    const bool small = part.kind == Kind::kChars || part.kind == Kind::kRule || part.literal.size() == 1;
    const bool counted = repeat.least > 1 || repeat.most > 1;
    if (counted && !small) {
      QUERN_ASSIGN(const int32_t begin, Compile(part, 0));
      if (grammar_.begins_.size() >= syntax_.rules.size() + kMostRules)
        return absl::ResourceExhaustedError(
            absl::StrFormat("a grammar has at most %d groups that are repeated", kMostRules));
      call.rule = static_cast<int>(grammar_.begins_.size());
      grammar_.begins_.push_back(begin);
      owners_.push_back(owner_);
    }
    const Expression& one = counted && !small ? call : part;
    int32_t first = next;
    int copies = repeat.least;
    if (repeat.most < 0) {
      QUERN_ASSIGN(const int32_t fork, Add(Node::Kind::kFork, 0, next));
      QUERN_ASSIGN(const int32_t body, Compile(one, fork));
      grammar_.nodes_[static_cast<size_t>(fork)].value = body;
      first = copies > 0 ? body : fork;
      copies -= copies > 0;
    }
    for (int i = repeat.least; i < repeat.most; ++i) {
      QUERN_ASSIGN(const int32_t body, Compile(one, first));
      QUERN_ASSIGN(first, Add(Node::Kind::kFork, body, next));
    }
    for (; copies > 0; --copies) {
      QUERN_ASSIGN(first, Compile(one, first));
    }
    return first;
  }

  // Nodes from which the end of their rule can be reached, with `chars` over characters too, else without.
  std::vector<bool> Reaching(bool chars) const {
    const std::vector<Node>& nodes = grammar_.nodes_;
    std::vector<std::vector<int32_t>> before(nodes.size()), callers(grammar_.begins_.size());
    std::vector<std::vector<int32_t>> begun(nodes.size());  // the rules that begin at a node
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      if (nodes[i].kind == Node::Kind::kEnd) continue;
      before[static_cast<size_t>(nodes[i].next)].push_back(at);
      if (nodes[i].kind == Node::Kind::kFork) before[static_cast<size_t>(nodes[i].value)].push_back(at);
      if (nodes[i].kind == Node::Kind::kCall) callers[static_cast<size_t>(nodes[i].value)].push_back(at);
    }
    for (size_t rule = 0; rule < grammar_.begins_.size(); ++rule)
      begun[static_cast<size_t>(grammar_.begins_[rule])].push_back(static_cast<int32_t>(rule));
    std::vector<bool> reaching(nodes.size());
    std::vector<int32_t> work = {0};  // the end
    const auto test = [&](int32_t index) {
      const Node& node = nodes[static_cast<size_t>(index)];
      const bool next = reaching[static_cast<size_t>(node.next)];
      switch (node.kind) {
        case Node::Kind::kEnd: return true;
        case Node::Kind::kChars: return chars && next;
        case Node::Kind::kCall:
          return next && reaching[static_cast<size_t>(grammar_.begins_[static_cast<size_t>(node.value)])];
        case Node::Kind::kFork: return next || reaching[static_cast<size_t>(node.value)];
      }
      return false;
    };
    while (!work.empty()) {
      const auto at = static_cast<size_t>(work.back());
      work.pop_back();
      if (reaching[at] || !test(static_cast<int32_t>(at))) continue;
      reaching[at] = true;
      work.insert(work.end(), before[at].begin(), before[at].end());
      for (const int32_t rule : begun[at]) {
        const std::vector<int32_t>& all = callers[static_cast<size_t>(rule)];
        work.insert(work.end(), all.begin(), all.end());
      }
    }
    return reaching;
  }

  Status Wrong(size_t rule, const char* what) const {
    const Rule& owner = syntax_.rules[static_cast<size_t>(owners_[rule])];
    return ErrorAt(owner.place, absl::StrFormat("the rule %s %s", owner.name, what));
  }

  // Each rule has an end; then so has each beginning that a matcher lets through.
  Status CheckEnds() const {
    const std::vector<bool> reaching = Reaching(true);
    for (size_t rule = 0; rule < grammar_.begins_.size(); ++rule) {
      if (!reaching[static_cast<size_t>(grammar_.begins_[rule])]) return Wrong(rule, "never ends");
    }
    return absl::OkStatus();
  }

  // The rules that `rule` may begin with.
  std::vector<int32_t> Firsts(size_t rule, const std::vector<bool>& empty, std::vector<int32_t>& seen) const {
    std::vector<int32_t> firsts, work = {grammar_.begins_[rule]};
    while (!work.empty()) {
      const auto at = static_cast<size_t>(work.back());
      work.pop_back();
      if (seen[at] == static_cast<int32_t>(rule)) continue;
      seen[at] = static_cast<int32_t>(rule);
      const Node& node = grammar_.nodes_[at];
      if (node.kind == Node::Kind::kFork) work.insert(work.end(), {node.next, node.value});
      if (node.kind != Node::Kind::kCall) continue;
      firsts.push_back(node.value);
      if (empty[static_cast<size_t>(grammar_.begins_[static_cast<size_t>(node.value)])]) work.push_back(node.next);
    }
    return firsts;
  }

  Status CheckLeftRecursion() const {
    const std::vector<bool> empty = Reaching(false);
    const size_t rules = grammar_.begins_.size();
    std::vector<int32_t> seen(grammar_.nodes_.size(), -1);
    std::vector<std::vector<int32_t>> firsts(rules);
    for (size_t rule = 0; rule < rules; ++rule) firsts[rule] = Firsts(rule, empty, seen);
    enum class Mark : uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(rules, Mark::kNew);
    std::vector<size_t> next(rules), path;
    for (size_t from = 0; from < rules; ++from) {
      if (marks[from] == Mark::kNew) path.push_back(from), marks[from] = Mark::kOpen;
      while (!path.empty()) {
        const size_t rule = path.back();
        if (next[rule] == firsts[rule].size()) {
          marks[rule] = Mark::kDone;
          path.pop_back();
          continue;
        }
        const auto to = static_cast<size_t>(firsts[rule][next[rule]++]);
        if (marks[to] == Mark::kOpen) return Wrong(to, "may begin with itself: left recursion is not taken");
        if (marks[to] == Mark::kNew) path.push_back(to), marks[to] = Mark::kOpen;
      }
    }
    return absl::OkStatus();
  }

  const Syntax& syntax_;
  Grammar grammar_;
  int32_t owner_ = 0;            // the rule that is being compiled
  std::vector<int32_t> owners_;  // of each rule and group, the rule that has a name
};

StatusOr<Grammar> Grammar::Parse(std::string_view text) {
  QUERN_ASSIGN(const Syntax syntax, ParseSyntax(text));
  return Compiler(syntax).Run();
}

}  // namespace quern::grammar
