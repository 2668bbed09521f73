#include "chat/template.h"

#include <cmath>
#include <map>

#include "chat/calls.h"

namespace quern::chat {
namespace {

enum class Flow { kNext, kBreak, kContinue };
using Scope = std::map<std::string, Value, std::less<>>;
constexpr int kDeepestCall = 40;
constexpr int64_t kStep = 16;  // what a node costs

class Renderer {
 public:
  Renderer(const Dict& variables, const RenderOptions& options) : options_(options), budget_(options.work) {
    scopes_.emplace_back(variables.begin(), variables.end());
    scopes_.emplace_back();
  }

  StatusOr<Flow> Run(const Block& block, std::string& out) {
    for (const Statement& statement : block) {
      QUERN_RETURN_IF_ERROR(In(statement.place, budget_.Take(kStep)));
      QUERN_ASSIGN(const Flow flow, One(statement, out));
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

 private:
  // The error with the place, unless it has one.
  static Status In(Place place, const Status& status) {
    if (status.ok() ||
        std::string_view(status.message().data(), status.message().size()).starts_with("chat template, "))
      return status;
    const Status at = ErrorAt(place, std::string(status.message()));
    return Status(status.code(), at.message());
  }
  template <typename T>
  static StatusOr<T> In(Place place, StatusOr<T> value) {
    if (!value.ok()) return In(place, value.status());
    return value;
  }

  StatusOr<Flow> One(const Statement& s, std::string& out) {
    switch (s.kind) {
      case StatementKind::kText: QUERN_RETURN_IF_ERROR(Put(s, s.text, out)); return Flow::kNext;
      case StatementKind::kPrint: {
        QUERN_ASSIGN(const Value value, Get(*s.expression));
        QUERN_RETURN_IF_ERROR(In(s.place, budget_.Take(value)));
        QUERN_RETURN_IF_ERROR(Put(s, value.ToText(), out));
        return Flow::kNext;
      }
      case StatementKind::kIf: {
        for (const auto& [condition, body] : s.branches) {
          QUERN_ASSIGN(const Value value, Get(*condition));
          if (value.Truth()) return Run(body, out);
        }
        return Run(s.otherwise, out);
      }
      case StatementKind::kFor: return For(s, out);
      case StatementKind::kSet: {
        QUERN_ASSIGN(Value value, Get(*s.expression));
        QUERN_RETURN_IF_ERROR(Set(s, std::move(value)));
        return Flow::kNext;
      }
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock: {
        std::string text;
        scopes_.emplace_back();
        QUERN_ASSIGN(const Flow flow, Run(s.body, text));
        scopes_.pop_back();
        Value value(std::move(text));
        if (s.expression != nullptr) {
          QUERN_ASSIGN(value, Chain(*s.expression, std::move(value)));
        }
        if (s.kind == StatementKind::kSetBlock) {
          QUERN_RETURN_IF_ERROR(Set(s, std::move(value)));
        } else {
          QUERN_RETURN_IF_ERROR(Put(s, value.ToText(), out));
        }
        return flow;
      }
      case StatementKind::kMacro:
        scopes_.back()[s.text] = Value(std::shared_ptr<const Macro>(std::make_shared<Macro>(Macro{&s})));
        return Flow::kNext;
      case StatementKind::kCallBlock: {
        // What caller() gives in the macro: the body, as it is where the macro is called.
        std::string text;
        scopes_.emplace_back();
        QUERN_RETURN_IF_ERROR(Run(s.body, text).status());
        scopes_.pop_back();
        const Value caller(Bound{std::make_shared<const Value>(std::move(text)), "caller"});
        QUERN_ASSIGN(const Value value, In(s.place, Made(Call(*s.expression, &caller))));
        QUERN_RETURN_IF_ERROR(Put(s, value.ToText(), out));
        return Flow::kNext;
      }
      case StatementKind::kBreak: return Flow::kBreak;
      case StatementKind::kContinue: return Flow::kContinue;
    }
    return Flow::kNext;
  }

  Status Put(const Statement& s, const std::string& text, std::string& out) {
    QUERN_RETURN_IF_ERROR(In(s.place, budget_.Take(static_cast<int64_t>(text.size()))));
    out += text;
    return absl::OkStatus();
  }

  Status Set(const Statement& s, Value value) {
    if (s.object == nullptr) return In(s.place, Bind(s.names, std::move(value)));
    QUERN_ASSIGN(const Value object, Get(*s.object));
    const auto* space = object.As<std::shared_ptr<Namespace>>();
    if (space == nullptr) return ErrorAt(s.place, "an attribute can be set of a namespace alone");
    // A namespace that holds itself would never be given back, and have no text.
    if (Holds(value, **space, 0)) return ErrorAt(s.place, "a namespace cannot hold a namespace");
    Dict& entries = (*space)->entries;
    std::erase_if(entries, [&](const auto& entry) { return entry.first == s.names[0]; });
    entries.emplace_back(s.names[0], std::move(value));
    return absl::OkStatus();
  }
  static bool Holds(const Value& value, const Namespace& space, int depth) {
    if (depth > 100 || value.As<std::shared_ptr<Namespace>>() || value.As<Bound>() || value.As<Loop>()) return true;
    if (value.list() != nullptr)
      return std::any_of(value.list()->begin(), value.list()->end(),
                         [&](const Value& item) { return Holds(item, space, depth + 1); });
    if (value.dict() != nullptr)
      return std::any_of(value.dict()->begin(), value.dict()->end(),
                         [&](const auto& entry) { return Holds(entry.second, space, depth + 1); });
    return false;
  }

  // One name, or as many as the value has items.
  Status Bind(const std::vector<std::string>& names, Value value) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = std::move(value);
      return absl::OkStatus();
    }
    QUERN_ASSIGN(const List items, Items(value));
    if (items.size() != names.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("%u values for %u names", items.size(), names.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = items[i];
    return absl::OkStatus();
  }

  StatusOr<Flow> For(const Statement& s, std::string& out) {
    QUERN_ASSIGN(const Value over, Get(*s.expression));
    QUERN_ASSIGN(List items, In(s.place, Items(over)));
    QUERN_RETURN_IF_ERROR(In(s.place, budget_.Take(kStep * static_cast<int64_t>(items.size()))));
    if (s.condition != nullptr) {
      List kept;
      scopes_.emplace_back();
      for (Value& item : items) {
        QUERN_RETURN_IF_ERROR(In(s.place, Bind(s.names, item)));
        QUERN_ASSIGN(const Value holds, Get(*s.condition));
        if (holds.Truth()) kept.push_back(std::move(item));
      }
      scopes_.pop_back();
      items = std::move(kept);
    }
    if (items.empty()) return Run(s.otherwise, out);
    Loop loop{.depth = ++loops_, .items = std::make_shared<const List>(std::move(items))};
    for (const Value& item : *loop.items) {
      scopes_.emplace_back();
      scopes_.back()["loop"] = Value(loop);
      QUERN_RETURN_IF_ERROR(In(s.place, Bind(s.names, item)));
      QUERN_ASSIGN(const Flow flow, Run(s.body, out));
      scopes_.pop_back();
      if (flow == Flow::kBreak) break;
      ++loop.index0;
    }
    --loops_;
    return Flow::kNext;
  }

  Value Look(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    if (HasFunction(name)) return Value(Bound{nullptr, name});
    return Value(Undefined{name});
  }

  StatusOr<Value> Get(const Expression& e) {
    QUERN_RETURN_IF_ERROR(In(e.place, budget_.Take(kStep)));
    return In(e.place, Evaluate(e));
  }
  StatusOr<Value> GetOrNone(const ExpressionPtr& e) {
    if (e == nullptr) return Value(None{});
    return Get(*e);
  }

  // What was made, paid for.
  StatusOr<Value> Made(StatusOr<Value> value) {
    if (value.ok()) QUERN_RETURN_IF_ERROR(budget_.Take(*value));
    return value;
  }

  StatusOr<Value> Evaluate(const Expression& e) {
    switch (e.kind) {
      case ExpressionKind::kLiteral: return e.value;
      case ExpressionKind::kName: return Look(e.text);
      case ExpressionKind::kList: {
        List list;
        for (const ExpressionPtr& item : e.operands) {
          QUERN_ASSIGN(Value value, Get(*item));
          list.push_back(std::move(value));
        }
        return Made(Value(std::move(list)));
      }
      case ExpressionKind::kDict: {
        Dict dict;
        for (size_t i = 0; i < e.operands.size(); i += 2) {
          QUERN_ASSIGN(const Value key, Get(*e.operands[i]));
          QUERN_ASSIGN(Value value, Get(*e.operands[i + 1]));
          if (key.text() == nullptr) return absl::InvalidArgumentError("keys of a dict are strings");
          std::erase_if(dict, [&](const auto& entry) { return entry.first == *key.text(); });
          dict.emplace_back(*key.text(), std::move(value));
        }
        return Made(Value(std::move(dict)));
      }
      case ExpressionKind::kAttribute: {
        QUERN_ASSIGN(const Value object, Get(*e.operands[0]));
        return Attribute(object, e.text);
      }
      case ExpressionKind::kItem: {
        QUERN_ASSIGN(const Value object, Get(*e.operands[0]));
        QUERN_ASSIGN(const Value key, Get(*e.operands[1]));
        if (object.text() != nullptr) QUERN_RETURN_IF_ERROR(budget_.Take(object));
        return Item(object, key);
      }
      case ExpressionKind::kSlice: {
        QUERN_ASSIGN(const Value object, Get(*e.operands[0]));
        QUERN_ASSIGN(const Value from, GetOrNone(e.operands[1]));
        QUERN_ASSIGN(const Value to, GetOrNone(e.operands[2]));
        QUERN_ASSIGN(const Value step, GetOrNone(e.operands[3]));
        QUERN_RETURN_IF_ERROR(budget_.Take(object));
        return Slice(object, from, to, step);
      }
      case ExpressionKind::kCall: return Made(Call(e, nullptr));
      case ExpressionKind::kFilter: {
        QUERN_ASSIGN(Value object, Get(*e.operands[0]));
        return Filtered(e, std::move(object));
      }
      case ExpressionKind::kTest: {
        QUERN_ASSIGN(const Value object, Get(*e.operands[0]));
        QUERN_ASSIGN(const Arguments arguments, ArgumentsOf(e));
        QUERN_RETURN_IF_ERROR(Weigh(object, arguments));
        QUERN_ASSIGN(const bool holds, CallTest(e.text, object, arguments));
        return Value(holds);
      }
      case ExpressionKind::kUnary: {
        QUERN_ASSIGN(const Value operand, Get(*e.operands[0]));
        if (e.text == "not") return Value(!operand.Truth());
        if (!operand.number())
          return absl::InvalidArgumentError(absl::StrFormat("%s%s makes no sense", e.text, operand.Name()));
        if (e.text == "+") return operand;
        if (operand.integer() && *operand.integer() != INT64_MIN) return Value(-*operand.integer());
        return operand.As<bool>() ? Value(-static_cast<int64_t>(operand.real())) : Value(-operand.real());
      }
      case ExpressionKind::kBinary: return Binary(e);
      case ExpressionKind::kChoice: {
        QUERN_ASSIGN(const Value condition, Get(*e.operands[0]));
        if (condition.Truth()) return Get(*e.operands[1]);
        if (e.operands[2] == nullptr) return Value(Undefined{"what an if without else leaves"});
        return Get(*e.operands[2]);
      }
    }
    return Value();
  }

  StatusOr<Value> Filtered(const Expression& e, Value object) {
    QUERN_ASSIGN(const Arguments arguments, ArgumentsOf(e));
    QUERN_RETURN_IF_ERROR(Weigh(object, arguments));
    return Made(CallFilter(e.text, object, arguments));
  }

  // The filters of a block, on its text.
  StatusOr<Value> Chain(const Expression& e, Value value) {
    if (e.operands[0] != nullptr) {
      QUERN_ASSIGN(value, Chain(*e.operands[0], std::move(value)));
    }
    return In(e.place, Filtered(e, std::move(value)));
  }

  StatusOr<Arguments> ArgumentsOf(const Expression& e) {
    Arguments arguments{.plain = {}, .named = {}, .budget = &budget_, .now = options_.now};
    for (size_t i = 1; i < e.operands.size(); ++i) {
      if (e.operands[i]->kind == ExpressionKind::kUnary && e.operands[i]->text == "*") {
        QUERN_ASSIGN(const Value several, Get(*e.operands[i]->operands[0]));
        QUERN_ASSIGN(const List items, Items(several));
        QUERN_RETURN_IF_ERROR(budget_.Take(several));
        arguments.plain.insert(arguments.plain.end(), items.begin(), items.end());
        continue;
      }
      QUERN_ASSIGN(Value value, Get(*e.operands[i]));
      arguments.plain.push_back(std::move(value));
    }
    for (const auto& [name, expression] : e.named) {
      QUERN_ASSIGN(Value value, Get(*expression));
      arguments.named.emplace_back(name, std::move(value));
    }
    return arguments;
  }

  Status Weigh(const Value& object, const Arguments& arguments) {
    QUERN_RETURN_IF_ERROR(budget_.Take(object));
    for (const Value& value : arguments.plain) QUERN_RETURN_IF_ERROR(budget_.Take(value));
    return absl::OkStatus();
  }

  // `caller`: of a call block, else null.
  StatusOr<Value> Call(const Expression& e, const Value* caller) {
    QUERN_ASSIGN(const Value callee, Get(*e.operands[0]));
    QUERN_ASSIGN(const Arguments arguments, ArgumentsOf(e));
    if (const Bound* bound = callee.As<Bound>()) {
      if (bound->self == nullptr) return CallFunction(bound->name, arguments);
      if (bound->name == "caller") return *bound->self;
      QUERN_RETURN_IF_ERROR(Weigh(*bound->self, arguments));
      return CallMethod(bound->name, *bound->self, arguments);
    }
    if (const auto* macro = callee.As<std::shared_ptr<const Macro>>())
      return CallMacro(*(*macro)->statement, arguments, caller);
    const Expression& name = *e.operands[0];
    if (name.kind == ExpressionKind::kAttribute)
      return absl::InvalidArgumentError("there is no method \"" + name.text + "\" here");
    if (callee.undefined()) return absl::InvalidArgumentError("there is no function or macro \"" + name.text + "\"");
    return absl::InvalidArgumentError(absl::StrFormat("%s cannot be called", callee.Name()));
  }

  // A macro sees what stands at the top of the template, not where it is called.
  StatusOr<Value> CallMacro(const Statement& macro, const Arguments& arguments, const Value* caller) {
    if (++calls_ > kDeepestCall) return absl::InvalidArgumentError("macros call each other too deeply");
    if (arguments.plain.size() > macro.names.size())
      return absl::InvalidArgumentError(
          absl::StrFormat("macro %s has only %u parameters", macro.text, macro.names.size()));
    for (const auto& [name, value] : arguments.named) {
      if (std::find(macro.names.begin(), macro.names.end(), name) == macro.names.end())
        return absl::InvalidArgumentError(absl::StrFormat("macro %s has no parameter \"%s\"", macro.text, name));
    }
    std::vector<Scope> callers(std::make_move_iterator(scopes_.begin() + 2), std::make_move_iterator(scopes_.end()));
    scopes_.resize(2);
    scopes_.emplace_back();
    const size_t required = macro.names.size() - macro.defaults.size();
    for (size_t i = 0; i < macro.names.size(); ++i) {
      Value value = arguments.Get(i, macro.names[i]);
      if (value.undefined() && i >= required) {
        QUERN_ASSIGN(value, Get(*macro.defaults[i - required]));
      }
      scopes_.back()[macro.names[i]] = std::move(value);
    }
    if (caller != nullptr) scopes_.back()["caller"] = *caller;
    std::string text;
    QUERN_RETURN_IF_ERROR(Run(macro.body, text).status());
    scopes_.resize(2);
    for (Scope& scope : callers) scopes_.push_back(std::move(scope));
    --calls_;
    return Value(std::move(text));
  }

  StatusOr<Value> Binary(const Expression& e) {
    QUERN_ASSIGN(const Value left, Get(*e.operands[0]));
    if (e.text == "and" || e.text == "or") return left.Truth() == (e.text == "or") ? left : Get(*e.operands[1]);
    QUERN_ASSIGN(const Value right, Get(*e.operands[1]));
    QUERN_RETURN_IF_ERROR(budget_.Take(left));
    QUERN_RETURN_IF_ERROR(budget_.Take(right));
    if (e.text == "==") return Value(Equal(left, right));
    if (e.text == "!=") return Value(!Equal(left, right));
    if (e.text == "~") return Value(left.ToText() + right.ToText());
    if (e.text == "in" || e.text == "not in") {
      QUERN_ASSIGN(const bool has, Contains(right, left));
      return Value(has == (e.text == "in"));
    }
    if (e.text[0] == '<' || e.text[0] == '>') {
      QUERN_ASSIGN(const int order, Compare(left, right));
      if (order == 0) return Value(e.text.size() == 2);
      return Value((order < 0) == (e.text[0] == '<'));
    }
    return Arithmetic(e.text, left, right);
  }

  StatusOr<Value> Arithmetic(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "+" && a.text() && b.text()) return Value(*a.text() + *b.text());
    if (sign == "+" && a.list() && b.list()) {
      List list = *a.list();
      list.insert(list.end(), b.list()->begin(), b.list()->end());
      return Value(std::move(list));
    }
    if (sign == "*" && (a.text() || a.list()) && b.integer()) return Repeat(a, *b.integer());
    if (sign == "*" && (b.text() || b.list()) && a.integer()) return Repeat(b, *a.integer());
    for (const Value* value : {&a, &b}) {
      if (const Undefined* missing = value->As<Undefined>())
        return absl::InvalidArgumentError("\"" + missing->name + "\" is undefined");
    }
    if (!a.number() || !b.number())
      return absl::InvalidArgumentError(absl::StrFormat("%s %s %s makes no sense", a.Name(), sign, b.Name()));
    const bool integers = !a.As<double>() && !b.As<double>();
    const double x = a.real(), y = b.real();
    if (sign == "/" || sign == "//" || sign == "%") {
      if (y == 0) return absl::InvalidArgumentError("a division by 0");
    }
    if (integers && sign != "/") {
      const int64_t i = a.integer() ? *a.integer() : static_cast<int64_t>(x);
      const int64_t j = b.integer() ? *b.integer() : static_cast<int64_t>(y);
      int64_t result = 0;
      bool over = false;
      if (sign == "+") over = __builtin_add_overflow(i, j, &result);
      if (sign == "-") over = __builtin_sub_overflow(i, j, &result);
      if (sign == "*") over = __builtin_mul_overflow(i, j, &result);
      if (sign == "//" || sign == "%") {
        over = j == -1 && i == INT64_MIN;
        if (!over) {
          int64_t quotient = i / j;
          if (i % j != 0 && (i % j < 0) != (j < 0)) --quotient;  // to the lower integer, as Python
          result = sign == "//" ? quotient : i - quotient * j;
        }
      }
      if (sign == "**") {
        if (j < 0) return Value(std::pow(x, y));
        result = 1;
        for (int64_t k = 0; k < j && !over && k < 4096; ++k) over = __builtin_mul_overflow(result, i, &result);
        over = over || (j >= 4096 && (i > 1 || i < -1));
        if (i == -1) result = j % 2 == 0 ? 1 : -1;
      }
      if (over) return absl::InvalidArgumentError("a number of more than 64 bits");
      return Value(result);
    }
    if (sign == "+") return Value(x + y);
    if (sign == "-") return Value(x - y);
    if (sign == "*") return Value(x * y);
    if (sign == "/") return Value(x / y);
    if (sign == "//") return Value(std::floor(x / y));
    if (sign == "**") return Value(std::pow(x, y));
    const double rest = std::fmod(x, y);
    return Value(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }

  StatusOr<Value> Repeat(const Value& value, int64_t times) {
    const int64_t size = static_cast<int64_t>(value.text() ? value.text()->size() : value.list()->size());
    times = size == 0 ? 0 : std::clamp<int64_t>(times, 0, (int64_t{1} << 40) / size);
    QUERN_RETURN_IF_ERROR(budget_.Take(kStep * size * times));
    std::string text;
    List list;
    for (int64_t i = 0; i < times; ++i) {
      if (value.text())
        text += *value.text();
      else
        list.insert(list.end(), value.list()->begin(), value.list()->end());
    }
    return value.text() ? Value(std::move(text)) : Value(std::move(list));
  }

  const RenderOptions& options_;
  Budget budget_;
  std::vector<Scope> scopes_;  // what was given, the top of the template, loops
  int64_t loops_ = 0;
  int calls_ = 0;
};

}  // namespace

StatusOr<Template> Template::Parse(std::string_view source) {
  QUERN_ASSIGN(Block block, chat::Parse(source));
  return Template(std::move(block));
}

StatusOr<std::string> Template::Render(const Dict& variables, const RenderOptions& options) const {
  std::string out;
  QUERN_RETURN_IF_ERROR(Renderer(variables, options).Run(*block_, out).status());
  return out;
}

}  // namespace quern::chat
