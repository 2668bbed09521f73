// RegisterCustomOp of the public interface: names, text and plain functions as ir/custom.h has them.

#include "quern/custom.h"

#include <algorithm>
#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/public_error.h"
#include "ir/custom.h"

namespace quern {
namespace {

constexpr int64_t kMostParts = 4096, kMostAlignment = 64;

bool IsIdentifier(std::string_view text) {
  const auto fits = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), fits);
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/';
  });
}

Status Check(const CustomOp& op) {
  const auto no = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("Custom ", op.name, ": ", why));
  };
  if (!IsName(op.name)) return no("letters, digits, _, . and / make a name");
  if (op.kernel == nullptr) return no("there is no function");
  if (op.infer == nullptr) return no("there is no infer");
  if (!IsIdentifier(op.symbol)) return no(absl::StrCat("\"", op.symbol, "\" is not a C identifier: give a symbol"));
  if (op.parts < 1 || op.parts > kMostParts) return no(absl::StrCat("parts are 1 to ", kMostParts));
  if (op.alignment < 1 || op.alignment > kMostAlignment || !std::has_single_bit(static_cast<uint64_t>(op.alignment)))
    return no(absl::StrCat("an alignment is a power of two, at most ", kMostAlignment));
  if (!(op.rtol >= 0) || !(op.atol >= 0)) return no("rtol and atol are not negative");
  return absl::OkStatus();
}

// What the caller's own function says.
Status FromError(const std::string& name, const Error& error) {
  return absl::InvalidArgumentError(absl::StrCat("Custom ", name, ": ", error.message));
}

StatusOr<std::vector<ir::TensorType>> Infer(const CustomOp& op, std::span<const ir::TensorType> operands,
                                            std::string_view attrs) {
  std::vector<std::string> types;
  for (const ir::TensorType& type : operands) types.push_back(type.ToString());
  Result<std::vector<std::string>> made = op.infer(types, attrs);
  if (!made.ok()) return FromError(op.name, made.details());
  std::vector<ir::TensorType> results;
  for (const std::string& text : *made) {
    StatusOr<ir::TensorType> type = ir::TensorType::Parse(text);
    if (!type.ok() || IsBlock(type->dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("Custom ", op.name, ": \"", text, "\" is no type of a result"));
    }
    results.push_back(*std::move(type));
  }
  if (results.empty()) return absl::InvalidArgumentError(absl::StrCat("Custom ", op.name, ": there are no results"));
  return results;
}

CustomTensor Tensor(const ir::RefTensor& tensor) {
  return {std::string(Name(tensor.dtype)), tensor.dims, tensor.data, tensor.integers};
}

Status Reference(const CustomOp& op, ir::RefContext& context) {
  std::vector<CustomTensor> operands, results;
  for (const ir::RefTensor* operand : context.operands) operands.push_back(Tensor(*operand));
  for (const ir::RefTensor& result : context.results) results.push_back(Tensor(result));
  const Result<void> ran = op.reference(operands, context.node.attributes.String("attrs"), results);
  if (!ran.ok()) return FromError(op.name, ran.details());
  if (results.size() != context.results.size())
    return absl::InvalidArgumentError(absl::StrCat("Custom ", op.name, ": its reference drops results"));
  for (size_t r = 0; r < results.size(); ++r) {
    ir::RefTensor& result = context.results[r];
    if (results[r].elements.size() != result.data.size() || results[r].integers.size() != result.integers.size())
      return absl::InvalidArgumentError(absl::StrCat("Custom ", op.name, ": its reference fills other sizes"));
    result.data = std::move(results[r].elements);
    for (size_t i = 0; i < result.integers.size(); ++i)
      result.SetInteger(static_cast<int64_t>(i), results[r].integers[i]);
  }
  return absl::OkStatus();
}

}  // namespace

Result<void> RegisterCustomOp(CustomOp op) {
  if (op.symbol.empty()) op.symbol = op.name;
  if (const Status status = Check(op); !status.ok()) return compiler::ToResult(status);
  ir::CustomDef def{.name = op.name,
                    .version = op.version,
                    .kernel = op.kernel,
                    .symbol = op.symbol,
                    .parts = op.parts,
                    .alignment = op.alignment,
                    .infer = {},
                    .reference = {},
                    .rtol = op.rtol,
                    .atol = op.atol};
  const bool meaning = op.reference != nullptr;
  const auto shared = std::make_shared<const CustomOp>(std::move(op));
  def.infer = [shared](std::span<const ir::TensorType> operands, std::string_view attrs) {
    return Infer(*shared, operands, attrs);
  };
  if (meaning) def.reference = [shared](ir::RefContext& context) { return Reference(*shared, context); };
  return compiler::ToResult(ir::RegisterCustom(std::move(def)));
}

}  // namespace quern
