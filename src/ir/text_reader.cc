#include "ir/text_reader.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"

namespace quern::ir {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string TextReader::Place() const {
  int line = 1, column = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
    if (text_[i] == '\n')
      ++line, column = 1;
    else
      ++column;
  }
  return absl::StrCat(line, ":", column);
}

Status TextReader::Expected(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(Place(), ": expected ", std::string(what)));
}

Status TextReader::Here(const Status& status) const {
  return WithMessage(status, absl::StrCat(Place(), ": ", status.message()));
}

Status TextReader::At(Status status) const {
  if (status.ok()) return status;
  int line = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
  // What passes get wrong is a bug of ours; what a text gets wrong is not.
  const std::string message = absl::StrFormat("line %d: %s", line, std::string(status.message()));
  return absl::IsInternal(status) ? absl::InvalidArgumentError(message) : WithMessage(status, message);
}

void TextReader::Skip() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    else if (text_[at_] == '#')
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    else
      break;
  }
}

bool TextReader::Accept(std::string_view token) {
  const size_t before = at_;
  Skip();
  const size_t end = at_ + token.size();
  // A word must end where it ends.
  const bool inside_word =
      std::isalnum(static_cast<unsigned char>(token.back())) && end < text_.size() && IsWordCharacter(text_[end]);
  if (!text_.substr(at_).starts_with(token) || inside_word) {
    at_ = before;
    return false;
  }
  at_ = end;
  return true;
}

Status TextReader::Need(std::string_view token) {
  if (Accept(token)) return absl::OkStatus();
  return Expected(absl::StrCat("\"", std::string(token), "\""));
}

bool TextReader::Next(char c) {
  Skip();
  return at_ < text_.size() && text_[at_] == c;
}

bool TextReader::AtEnd() {
  Skip();
  return at_ == text_.size();
}

StatusOr<std::string> TextReader::Word(std::string_view what) {
  Skip();
  const size_t start = at_;
  while (at_ < text_.size() &&
         (IsWordCharacter(text_[at_]) || text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '/')) {
    ++at_;
  }
  if (at_ == start) return Expected(what);
  return std::string(text_.substr(start, at_ - start));
}

StatusOr<std::string> TextReader::Name(std::string_view what) { return Next('"') ? String() : Word(what); }

StatusOr<int64_t> TextReader::Integer() {
  Skip();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) return Expected("an integer");
  at_ = end - text_.data();
  return value;
}

StatusOr<std::string> TextReader::String() {
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

StatusOr<std::string_view> TextReader::Until(char close) {
  const size_t start = at_;
  while (at_ < text_.size() && text_[at_] != close && text_[at_] != '\n') ++at_;
  if (at_ >= text_.size() || text_[at_] != close) return Expected(absl::StrCat("\"", std::string(1, close), "\""));
  return text_.substr(start, at_ - start);
}

StatusOr<TensorType> TextReader::Type() {
  Skip();
  const size_t start = at_;
  QUERN_RETURN_IF_ERROR(Until(']').status());
  ++at_;
  StatusOr<TensorType> type = TensorType::Parse(text_.substr(start, at_ - start));
  if (!type.ok()) return At(type.status());
  return type;
}

StatusOr<SymbolRanges> TextReader::Symbols() {
  SymbolRanges symbols;
  if (!Accept("sym")) return symbols;
  do {
    QUERN_ASSIGN(const std::string symbol, Word("a symbol"));
    SymbolRange range;
    QUERN_RETURN_IF_ERROR(Need("in"));
    QUERN_ASSIGN(range.low, Integer());
    QUERN_RETURN_IF_ERROR(Need(".."));
    Skip();
    if (at_ < text_.size() && IsDigit(text_[at_])) {
      QUERN_ASSIGN(range.high, Integer());
    }
    if (range.low < 0 || range.high < range.low) return Expected("a range of sizes before here");
    if (!symbols.emplace(symbol, range).second) return Expected("a new symbol before here");
  } while (Accept(","));
  return symbols;
}

StatusOr<TextReader::Ref> TextReader::Reference() {
  QUERN_RETURN_IF_ERROR(Need("%"));
  Ref reference;
  QUERN_ASSIGN(reference.first, Integer());
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    QUERN_ASSIGN(reference.second, Integer());
  }
  return reference;
}

StatusOr<int64_t> TextReader::ResultCount() {
  if (!Accept(":")) return 1;
  return Integer();
}

StatusOr<AttrValue> TextReader::Value() {
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
  if (IsLetter(c)) {
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

StatusOr<Attributes> TextReader::AttributeList() {
  Attributes attributes;
  if (!Accept("{")) return attributes;
  while (!Accept("}")) {
    if (!attributes.values().empty()) QUERN_RETURN_IF_ERROR(Need(","));
    QUERN_ASSIGN(std::string name, Word("an attribute"));
    QUERN_RETURN_IF_ERROR(Need("="));
    QUERN_ASSIGN(AttrValue value, Value());
    attributes.Set(std::move(name), std::move(value));
  }
  return attributes;
}

StatusOr<std::optional<std::vector<uint8_t>>> TextReader::Data() {
  std::optional<std::vector<uint8_t>> data;
  if (!Accept("hex")) return data;
  data.emplace();
  QUERN_ASSIGN(const std::string digits, Word("hex digits"));
  if (digits == "-") return data;
  if (digits.size() % 2 != 0) return Expected("an even number of hex digits before here");
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    if (error != std::errc() || end != digits.data() + i + 2) return Expected("hex digits before here");
    data->push_back(byte);
  }
  return data;
}

StatusOr<std::vector<TensorType>> TextReader::Types(int64_t count) {
  QUERN_RETURN_IF_ERROR(Need(":"));
  std::vector<TensorType> types;
  do {
    QUERN_ASSIGN(TensorType type, Type());
    types.push_back(std::move(type));
  } while (Accept(","));
  if (count != static_cast<int64_t>(types.size())) return Expected("as many types as results before here");
  return types;
}

StatusOr<ExtentConstraint> TextReader::Constraint() {
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

Status TextReader::ReadOutputName(std::vector<std::string>& names) {
  std::string name = absl::StrCat(names.size());
  if (Accept("as")) {
    QUERN_ASSIGN(name, String());
  }
  names.push_back(std::move(name));
  return absl::OkStatus();
}

StatusOr<Donation> TextReader::ReadDonation(size_t outputs) {
  Donation donation;
  QUERN_ASSIGN(donation.input, String());
  QUERN_RETURN_IF_ERROR(Need("->"));
  QUERN_ASSIGN(const int64_t output, Integer());
  if (output < 0 || output >= static_cast<int64_t>(outputs)) return Expected("an output before here");
  donation.output = static_cast<int>(output);
  return donation;
}

StatusOr<QuantisationMap> TextReader::ReadQuantisation() {
  QuantisationMap map;
  while (Accept("quantise")) {
    QUERN_ASSIGN(const std::string name, String());
    QUERN_ASSIGN(const Attributes attributes, AttributeList());
    const StatusOr<Scheme> scheme = SchemeOf(name, attributes);
    if (!scheme.ok()) return At(scheme.status());
    if (!map.emplace(name, *scheme).second) return Expected(absl::StrCat("one scheme of ", name, " before here"));
  }
  return map;
}

}  // namespace quern::ir
