// Parts of values, and what calls have in common.
#include <algorithm>

#include "chat/calls.h"

namespace quern::chat {

Status Budget::Take(int64_t units) {
  left_ -= std::min(units, left_ + 1);
  return left_ < 0 ? absl::ResourceExhaustedError("the template makes too much work") : absl::OkStatus();
}

Status Budget::Take(const Value& value) {
  if (value.text() != nullptr) return Take(static_cast<int64_t>(value.text()->size()) + 1);
  QUERN_RETURN_IF_ERROR(Take(16));
  if (value.list() != nullptr) {
    for (const Value& item : *value.list()) QUERN_RETURN_IF_ERROR(Take(item));
  } else if (const auto* dict = value.As<std::shared_ptr<const Dict>>()) {
    for (const auto& [key, item] : **dict) {
      QUERN_RETURN_IF_ERROR(Take(static_cast<int64_t>(key.size())));
      QUERN_RETURN_IF_ERROR(Take(item));
    }
  }
  return absl::OkStatus();
}

Value Arguments::Get(size_t place, std::string_view name) const {
  if (place < plain.size()) return plain[place];
  for (const auto& [own, value] : named) {
    if (own == name) return value;
  }
  return Undefined{std::string(name)};
}

Status Arguments::Check(std::string_view call, std::initializer_list<std::string_view> names) const {
  if (plain.size() > names.size())
    return absl::InvalidArgumentError(
        absl::StrFormat("%s takes at most %u arguments, not %u", std::string(call), names.size(), plain.size()));
  for (const auto& [name, value] : named) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return absl::InvalidArgumentError(absl::StrFormat("%s has no argument \"%s\"", std::string(call), name));
  }
  return absl::OkStatus();
}

StatusOr<Value> Attribute(const Value& object, const std::string& name) {
  if (const Undefined* missing = object.As<Undefined>())
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is undefined, so it has no \"%s\"", missing->name, name));
  if (const Loop* loop = object.As<Loop>()) {
    const auto size = static_cast<int64_t>(loop->items->size());
    const int64_t at = loop->index0;
    if (name == "index") return Value(at + 1);
    if (name == "index0") return Value(at);
    if (name == "revindex") return Value(size - at);
    if (name == "revindex0") return Value(size - at - 1);
    if (name == "first") return Value(at == 0);
    if (name == "last") return Value(at + 1 == size);
    if (name == "length") return Value(size);
    if (name == "depth") return Value(loop->depth);
    if (name == "depth0") return Value(loop->depth - 1);
    if (name == "previtem" && at > 0) return (*loop->items)[at - 1];
    if (name == "nextitem" && at + 1 < size) return (*loop->items)[at + 1];
  }
  const bool space = object.As<std::shared_ptr<Namespace>>() != nullptr;
  if (!space && HasMethod(object, name)) return Value(Bound{std::make_shared<const Value>(object), name});
  if (object.dict() != nullptr) {
    if (const Value* found = Find(*object.dict(), name)) return *found;
  }
  return Value(Undefined{name});
}

StatusOr<Value> Item(const Value& object, const Value& key) {
  if (const Undefined* missing = object.As<Undefined>())
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is undefined, so it has no items", missing->name));
  if (key.text() != nullptr) {
    if (object.dict() != nullptr) {
      if (const Value* found = Find(*object.dict(), *key.text())) return *found;
    }
    return Attribute(object, *key.text());
  }
  if (const int64_t* index = key.integer()) {
    const auto at = [&](size_t size) { return *index < 0 ? *index + static_cast<int64_t>(size) : *index; };
    if (object.list() != nullptr) {
      const int64_t place = at(object.list()->size());
      if (place >= 0 && place < static_cast<int64_t>(object.list()->size())) return (*object.list())[place];
    }
    if (object.text() != nullptr) {
      const std::u32string characters = Characters(*object.text());
      const int64_t place = at(characters.size());
      if (place >= 0 && place < static_cast<int64_t>(characters.size()))
        return Value(FromCharacters({&characters[place], 1}));
    }
  }
  return Value(Undefined{key.ToText()});
}

StatusOr<List> Items(const Value& value) {
  List items;
  if (value.list() != nullptr) return *value.list();
  if (value.dict() != nullptr) {
    for (const auto& [key, item] : *value.dict()) items.emplace_back(key);
    return items;
  }
  if (value.text() != nullptr) {
    for (const char32_t c : Characters(*value.text())) items.emplace_back(FromCharacters({&c, 1}));
    return items;
  }
  if (value.undefined()) return items;
  return absl::InvalidArgumentError(absl::StrFormat("%s has no items to go over", value.Name()));
}

namespace {

// Python's rules for slice bounds.
StatusOr<std::vector<int64_t>> Places(int64_t size, const Value& from, const Value& to, const Value& step) {
  const auto given = [](const Value& value) { return !value.undefined() && !value.none(); };
  for (const Value* value : {&from, &to, &step}) {
    if (given(*value) && !value->integer()) return absl::InvalidArgumentError("a slice has bounds that are integers");
  }
  const int64_t by = given(step) ? *step.integer() : 1;
  if (by == 0) return absl::InvalidArgumentError("a slice has a step that is not 0");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (!given(value)) return otherwise;
    const int64_t at = *value.integer();
    return at < 0 ? (at < -size ? low : std::max(at + size, low)) : std::min(at, high);
  };
  std::vector<int64_t> places;
  const int64_t begin = bound(from, by > 0 ? low : high), end = bound(to, by > 0 ? high : low);
  for (int64_t at = begin; by > 0 ? at < end : at > end;) {
    places.push_back(at);
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return places;
}

}  // namespace

StatusOr<Value> Slice(const Value& object, const Value& from, const Value& to, const Value& step) {
  if (object.list() != nullptr) {
    QUERN_ASSIGN(const auto places, Places(static_cast<int64_t>(object.list()->size()), from, to, step));
    List result;
    for (const int64_t place : places) result.push_back((*object.list())[place]);
    return Value(std::move(result));
  }
  if (object.text() != nullptr) {
    const std::u32string characters = Characters(*object.text());
    QUERN_ASSIGN(const auto places, Places(static_cast<int64_t>(characters.size()), from, to, step));
    std::u32string result;
    for (const int64_t place : places) result += characters[place];
    return Value(FromCharacters(result));
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s cannot be sliced", object.Name()));
}

StatusOr<bool> Contains(const Value& container, const Value& item) {
  if (container.text() != nullptr && item.text() != nullptr)
    return container.text()->find(*item.text()) != std::string::npos;
  if (container.list() != nullptr)
    return std::any_of(container.list()->begin(), container.list()->end(),
                       [&](const Value& own) { return Equal(own, item); });
  if (container.dict() != nullptr) return item.text() != nullptr && Find(*container.dict(), *item.text()) != nullptr;
  if (container.undefined()) return false;
  return absl::InvalidArgumentError(absl::StrFormat("%s in %s makes no sense", item.Name(), container.Name()));
}

}  // namespace quern::chat
