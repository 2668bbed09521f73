// Tests (`value is name`), a row each.
#include "chat/calls.h"

namespace quern::chat {
namespace {

Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

using TestCall = StatusOr<bool> (*)(const Value& value, const Value& other);
struct TestRow {
  std::string_view name;
  bool argument;
  TestCall call;
};

template <int kLow, int kHigh>
StatusOr<bool> Ordered(const Value& value, const Value& other) {
  QUERN_ASSIGN(const int order, Compare(value, other));
  return order >= kLow && order <= kHigh;
}
StatusOr<bool> Same(const Value& value, const Value& other) { return Equal(value, other); }
StatusOr<bool> Differ(const Value& value, const Value& other) { return !Equal(value, other); }
StatusOr<bool> SameThing(const Value& value, const Value& other) {
  if (value.As<bool>() || other.As<bool>())
    return value.As<bool>() && other.As<bool>() && *value.As<bool>() == *other.As<bool>();
  return Equal(value, other);
}
bool IsSequence(const Value& v) { return v.text() || v.list() || v.dict(); }
StatusOr<bool> Remainder(const Value& value, int64_t by, int64_t want) {
  if (!value.integer() || by == 0) return Wrong("this test takes integers");
  return by == -1 ? want == 0 : ((*value.integer() % by) + by) % by == want;
}

constexpr TestRow kTests[] = {
    {"defined", false, [](const Value& v, const Value&) -> StatusOr<bool> { return !v.undefined(); }},
    {"undefined", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.undefined(); }},
    {"none", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.none(); }},
    {"string", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.text() != nullptr; }},
    {"mapping", false,
     [](const Value& v, const Value&) -> StatusOr<bool> { return v.As<std::shared_ptr<const Dict>>() != nullptr; }},
    {"iterable", false, [](const Value& v, const Value&) -> StatusOr<bool> { return IsSequence(v) || v.undefined(); }},
    {"sequence", false, [](const Value& v, const Value&) -> StatusOr<bool> { return IsSequence(v) || v.undefined(); }},
    {"number", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.number(); }},
    {"integer", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.integer() != nullptr; }},
    {"float", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.As<double>() != nullptr; }},
    {"boolean", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.As<bool>() != nullptr; }},
    {"true", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.As<bool>() && *v.As<bool>(); }},
    {"false", false, [](const Value& v, const Value&) -> StatusOr<bool> { return v.As<bool>() && !*v.As<bool>(); }},
    {"callable", false,
     [](const Value& v, const Value&) -> StatusOr<bool> {
       return v.As<Bound>() || v.As<std::shared_ptr<const Macro>>();
     }},
    {"odd", false, [](const Value& v, const Value&) { return Remainder(v, 2, 1); }},
    {"even", false, [](const Value& v, const Value&) { return Remainder(v, 2, 0); }},
    {"lower", false,
     [](const Value& v, const Value&) -> StatusOr<bool> {
       return Lower(v.ToText()) == v.ToText() && Upper(v.ToText()) != v.ToText();
     }},
    {"upper", false,
     [](const Value& v, const Value&) -> StatusOr<bool> {
       return Upper(v.ToText()) == v.ToText() && Lower(v.ToText()) != v.ToText();
     }},
    {"divisibleby", true,
     [](const Value& v, const Value& o) { return Remainder(v, o.integer() ? *o.integer() : 0, 0); }},
    {"sameas", true, SameThing},
    {"in", true, [](const Value& v, const Value& o) { return Contains(o, v); }},
    {"equalto", true, Same},
    {"eq", true, Same},
    {"==", true, Same},
    {"ne", true, Differ},
    {"lt", true, Ordered<-1, -1>},
    {"lessthan", true, Ordered<-1, -1>},
    {"le", true, Ordered<-1, 0>},
    {"gt", true, Ordered<1, 1>},
    {"greaterthan", true, Ordered<1, 1>},
    {"ge", true, Ordered<0, 1>},
};

}  // namespace

StatusOr<bool> CallTest(const std::string& name, const Value& value, const Arguments& arguments) {
  for (const TestRow& row : kTests) {
    if (row.name != name) continue;
    if (arguments.plain.size() != (row.argument ? 1 : 0) || !arguments.named.empty())
      return Wrong("the test \"" + name + "\" takes " + (row.argument ? "one argument" : "no argument"));
    return row.call(value, row.argument ? arguments.plain[0] : Value());
  }
  return Wrong("there is no test \"" + name + "\"");
}

}  // namespace quern::chat
