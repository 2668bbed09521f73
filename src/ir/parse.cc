// Reads the text that print.cc writes. Errors carry line and column and what was expected. The text is not trusted:
// nodes are built through the checking Graph::Add, nesting is limited, and a result type that differs from the inferred
// one is an error.

#include <cctype>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/written.h"

namespace quern::ir {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Graph> ParseAll() {
    QUERN_ASSIGN(Graph graph, ParseGraph(0));
    Skip();
    if (at_ != text_.size()) return Expected("the end of the text");
    return graph;
  }

 private:
  // "3:24", of what comes next.
  std::string Place() const {
    int line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n')
        ++line, column = 1;
      else
        ++column;
    }
    return absl::StrCat(line, ":", column);
  }
  Status Expected(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(), ": expected ", std::string(what)));
  }
  Status At(Status status) const {
    if (status.ok()) return status;
    int line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    // What passes get wrong is a bug of ours; what a text gets wrong is not.
    const std::string message = absl::StrFormat("line %d: %s", line, std::string(status.message()));
    return absl::IsInternal(status) ? absl::InvalidArgumentError(message) : WithMessage(status, message);
  }

  void Skip() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else
        break;
    }
  }
  // Steps over `token` if it comes next; else stays where the last one ended, so that errors point there.
  bool Accept(std::string_view token) {
    const size_t before = at_;
    Skip();
    const size_t end = at_ + token.size();
    // A word must end where it ends.
    const bool inside_word = std::isalnum(static_cast<unsigned char>(token.back())) && end < text_.size() &&
                             (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_');
    if (!text_.substr(at_).starts_with(token) || inside_word) {
      at_ = before;
      return false;
    }
    at_ = end;
    return true;
  }
  Status Need(std::string_view token) {
    if (Accept(token)) return absl::OkStatus();
    return Expected(absl::StrCat("\"", std::string(token), "\""));
  }
  StatusOr<std::string> Word(std::string_view what) {
    Skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '/')) {
      ++at_;
    }
    if (at_ == start) return Expected(what);
    return std::string(text_.substr(start, at_ - start));
  }
  StatusOr<int64_t> Integer() {
    Skip();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Expected("an integer");
    at_ = end - text_.data();
    return value;
  }
  StatusOr<std::string> String() {
    QUERN_RETURN_IF_ERROR(Need("\""));
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = text_.size();
      return Expected("a closing quote");
    }
    std::string value;
    const std::string raw(text_.substr(start, at_ - start));
    if (!absl::CUnescape(raw, &value)) return Expected("a valid escape in the string before here");
    ++at_;
    return value;
  }
  // The text up to `close` (not included), which must come before the end of the line.
  StatusOr<std::string_view> Until(char close) {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != close && text_[at_] != '\n') ++at_;
    if (at_ >= text_.size() || text_[at_] != close) return Expected(absl::StrCat("\"", std::string(1, close), "\""));
    return text_.substr(start, at_ - start);
  }

  StatusOr<TensorType> Type() {
    Skip();
    const size_t start = at_;
    QUERN_RETURN_IF_ERROR(Until(']').status());
    ++at_;
    StatusOr<TensorType> type = TensorType::Parse(text_.substr(start, at_ - start));
    if (!type.ok()) return At(type.status());
    return type;
  }

  StatusOr<AttrValue> Attribute() {
    Skip();
    if (at_ >= text_.size()) return Expected("an attribute value");
    const char c = text_[at_];
    if (c == '"') {
      QUERN_ASSIGN(std::string value, String());
      return AttrValue(std::move(value));
    }
    if (c == '[') {
      ++at_;
      std::vector<int64_t> values;
      while (!Accept("]")) {
        if (!values.empty()) QUERN_RETURN_IF_ERROR(Need(","));
        QUERN_ASSIGN(const int64_t value, Integer());
        values.push_back(value);
      }
      return AttrValue(std::move(values));
    }
    if (c == '<') {
      ++at_;
      QUERN_ASSIGN(std::string_view list, Until('>'));
      ++at_;
      std::vector<Extent> values;
      while (!list.empty()) {
        const size_t comma = list.find(',');
        StatusOr<Extent> value = Extent::Parse(list.substr(0, comma));
        if (!value.ok()) return At(value.status());
        values.push_back(*std::move(value));
        if (comma == std::string_view::npos) break;
        list.remove_prefix(comma + 1);
      }
      return AttrValue(std::move(values));
    }
    if (Accept("true")) return AttrValue(true);
    if (Accept("false")) return AttrValue(false);
    if (Accept("inf")) return AttrValue(INFINITY);
    if (Accept("-inf")) return AttrValue(-INFINITY);
    if (Accept("nan")) return AttrValue(NAN);
    if (std::isalpha(static_cast<unsigned char>(c))) {
      QUERN_ASSIGN(const std::string word, Word("a dtype"));
      const std::optional<DType> dtype = DTypeFromName(word);
      if (!dtype) return Expected("a dtype before here");
      return AttrValue(*dtype);
    }
    // A number: a float when it has a point or an exponent.
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.' ||
                                  text_[end] == '-' || text_[end] == '+')) {
      ++end;
    }
    const std::string_view number = text_.substr(at_, end - at_);
    if (number.find_first_of(".e") == std::string_view::npos) {
      QUERN_ASSIGN(const int64_t value, Integer());
      return AttrValue(value);
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || stop != number.data() + number.size()) return Expected("a number");
    at_ = end;
    return AttrValue(value);
  }

  StatusOr<Value> Ref(const Graph& graph) {
    QUERN_RETURN_IF_ERROR(Need("%"));
    QUERN_ASSIGN(const int64_t node, Integer());
    int64_t result = 0;
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      QUERN_ASSIGN(result, Integer());
    }
    if (node < 0 || node >= static_cast<int64_t>(graph.nodes().size()) || result < 0 ||
        result >= static_cast<int64_t>(graph.node(static_cast<int>(node)).results.size())) {
      return Expected("an earlier value");
    }
    return Value{static_cast<int>(node), static_cast<int>(result)};
  }

  Status ParseNode(Graph& graph, int nesting) {
    QUERN_ASSIGN(const int64_t index, Integer());
    if (index != static_cast<int64_t>(graph.nodes().size())) {
      return Expected(absl::StrCat("node %", graph.nodes().size(), " before here"));
    }
    int64_t count = 1;
    if (Accept(":")) {
      QUERN_ASSIGN(count, Integer());
    }
    QUERN_RETURN_IF_ERROR(Need("="));
    QUERN_ASSIGN(const std::string op_name, Word("an op"));
    const OpDef* op = FindOp(op_name);
    if (op == nullptr) {
      const Status unknown = UnknownOp(op_name);
      return WithMessage(unknown, absl::StrCat(Place(), ": ", unknown.message()));
    }
    QUERN_RETURN_IF_ERROR(Need("("));
    std::vector<Value> inputs;
    while (!Accept(")")) {
      if (!inputs.empty()) QUERN_RETURN_IF_ERROR(Need(","));
      QUERN_ASSIGN(const Value input, Ref(graph));
      inputs.push_back(input);
    }
    Attributes attributes;
    if (Accept("{")) {
      while (!Accept("}")) {
        if (!attributes.values().empty()) QUERN_RETURN_IF_ERROR(Need(","));
        QUERN_ASSIGN(std::string name, Word("an attribute"));
        QUERN_RETURN_IF_ERROR(Need("="));
        QUERN_ASSIGN(AttrValue value, Attribute());
        attributes.Set(std::move(name), std::move(value));
      }
    }
    std::optional<std::vector<uint8_t>> data;
    if (Accept("hex")) {
      data.emplace();
      QUERN_ASSIGN(const std::string digits, Word("hex digits"));
      if (digits != "-") {
        if (digits.size() % 2 != 0) return Expected("an even number of hex digits before here");
        for (size_t i = 0; i < digits.size(); i += 2) {
          uint8_t byte = 0;
          const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
          if (error != std::errc() || end != digits.data() + i + 2) return Expected("hex digits before here");
          data->push_back(byte);
        }
      }
    }
    QUERN_RETURN_IF_ERROR(Need(":"));
    std::vector<TensorType> types;
    do {
      QUERN_ASSIGN(TensorType type, Type());
      types.push_back(std::move(type));
    } while (Accept(","));
    if (count != static_cast<int64_t>(types.size())) return Expected("as many types as results before here");
    int origin = -1;
    if (Accept("@")) {
      Origin where;
      QUERN_ASSIGN(where.label, String());
      if (Accept("by")) {
        QUERN_ASSIGN(where.pass, String());
      }
      origin = graph.AddOrigin(std::move(where));
    }
    std::vector<std::shared_ptr<const Graph>> bodies;
    for (const char* body : op->bodies) {
      QUERN_RETURN_IF_ERROR(Need(body));
      QUERN_ASSIGN(Graph parsed, ParseGraph(nesting + 1));
      bodies.push_back(std::make_shared<const Graph>(std::move(parsed)));
    }
    return At(AddWritten(graph, {op, std::move(inputs), std::move(attributes), std::move(data), std::move(types),
                                 origin, std::move(bodies)}));
  }

  // S == T, 64 >= PAST_SEQ + SEQ
  StatusOr<ExtentConstraint> ParseConstraint() {
    Skip();
    const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
    size_t relation = line.find("==");
    ExtentConstraint constraint;
    if (relation == std::string_view::npos) {
      relation = line.find(">=");
      constraint.relation = SizeRelation::kAtLeast;
    }
    if (relation == std::string_view::npos) return Expected("== or >= between two extents");
    StatusOr<Extent> left = Extent::Parse(line.substr(0, relation)), right = Extent::Parse(line.substr(relation + 2));
    for (StatusOr<Extent>* side : {&left, &right}) {
      if (!side->ok()) return At(side->status());
    }
    constraint.left = *std::move(left);
    constraint.right = *std::move(right);
    at_ += line.size();
    return constraint;
  }

  StatusOr<Graph> ParseGraph(int nesting) {
    if (nesting > kMaxNesting) return Expected("less deeply nested graphs");
    Graph graph;
    QUERN_RETURN_IF_ERROR(Need("graph"));
    QUERN_ASSIGN(graph.name, Word("a graph name"));
    if (Accept("sym")) {
      do {
        QUERN_ASSIGN(const std::string symbol, Word("a symbol"));
        SymbolRange range;
        QUERN_RETURN_IF_ERROR(Need("in"));
        QUERN_ASSIGN(range.low, Integer());
        QUERN_RETURN_IF_ERROR(Need(".."));
        Skip();
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
          QUERN_ASSIGN(range.high, Integer());
        }
        if (range.low < 0 || range.high < range.low) return Expected("a range of sizes before here");
        if (!graph.symbols.emplace(symbol, range).second) return Expected("a new symbol before here");
      } while (Accept(","));
    }
    QUERN_RETURN_IF_ERROR(Need("{"));
    while (true) {
      Skip();
      if (Accept("%")) {
        QUERN_RETURN_IF_ERROR(ParseNode(graph, nesting));
      } else if (Accept("require")) {
        QUERN_ASSIGN(const ExtentConstraint constraint, ParseConstraint());
        AddConstraints(graph.constraints, {constraint});
      } else {
        break;
      }
    }
    QUERN_RETURN_IF_ERROR(Need("return"));
    while (true) {
      Skip();
      if (at_ < text_.size() && text_[at_] == '%') {
        QUERN_ASSIGN(const Value output, Ref(graph));
        graph.outputs.push_back(output);
        if (Accept(",")) continue;
      }
      break;
    }
    while (Accept("donate")) {
      Donation donation;
      QUERN_ASSIGN(donation.input, String());
      QUERN_RETURN_IF_ERROR(Need("->"));
      QUERN_ASSIGN(const int64_t output, Integer());
      if (output < 0 || output >= static_cast<int64_t>(graph.outputs.size())) return Expected("an output before here");
      donation.output = static_cast<int>(output);
      graph.donations.push_back(std::move(donation));
    }
    QUERN_RETURN_IF_ERROR(Need("}"));
    const Status verified = Verify(graph);
    if (!verified.ok()) return At(verified);
    return graph;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<Graph> Parse(std::string_view text) { return Parser(text).ParseAll(); }

bool SameGraph(const Graph& a, const Graph& b) {
  if (a.name != b.name || a.symbols != b.symbols || a.outputs != b.outputs || a.donations != b.donations ||
      a.constraints != b.constraints || a.nodes().size() != b.nodes().size()) {
    return false;
  }
  for (size_t n = 0; n < a.nodes().size(); ++n) {
    const Node &x = a.nodes()[n], &y = b.nodes()[n];
    if (x.op != y.op || x.inputs != y.inputs || x.attributes != y.attributes || x.results != y.results) return false;
    if ((x.data == nullptr) != (y.data == nullptr) || (x.data != nullptr && *x.data != *y.data)) return false;
    if (x.bodies.size() != y.bodies.size()) return false;
    for (size_t b = 0; b < x.bodies.size(); ++b) {
      if (x.bodies[b] != y.bodies[b] && !SameGraph(*x.bodies[b], *y.bodies[b])) return false;
    }
  }
  return true;
}

}  // namespace quern::ir
