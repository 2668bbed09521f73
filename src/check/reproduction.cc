#include "check/reproduction.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/diagnostic.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "check/value.h"
#include "import/safetensors.h"
#include "ir/counted.h"
#include "ir/op.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostText = 64 << 20;

Status Bad(std::string_view line, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("\"# %s\": %s", std::string(line.substr(0, 100)), std::string(why)));
}

bool ParseNumber(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "a=b c=d" entry by entry; `take` says what is wrong with one, or "".
template <typename Take>
Status ParseEntries(std::string_view line, std::string_view entries, const Take& take) {
  for (const absl::string_view entry :
       absl::StrSplit(absl::string_view(entries.data(), entries.size()), ' ', absl::SkipEmpty())) {
    const std::string_view text(entry.data(), entry.size());
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return Bad(line, absl::StrCat(std::string(text), " is not NAME=VALUE"));
    const std::string wrong = take(text.substr(0, equals), text.substr(equals + 1));
    if (!wrong.empty()) return Bad(line, wrong);
  }
  return absl::OkStatus();
}

std::string TakeOption(std::string_view name, std::string_view value, Settings& settings) {
  const bool on = value == "on", off = value == "off";
  bool* flag = name == "fuse"         ? &settings.fuse
               : name == "exact"      ? &settings.exact
               : name == "specialise" ? &settings.specialise
                                      : nullptr;
  if (flag != nullptr) {
    *flag = on;
    return on || off ? "" : absl::StrCat(std::string(name), " is on or off");
  }
  if (name == "cpu") {
    settings.cpu = value;
    return "";
  }
  if (name == "passes") {
    settings.passes = value == "all";
    return settings.passes || value == "none" ? "" : "passes is all or none";
  }
  int64_t threads = 0;
  if (name == "threads") {
    if (!ParseNumber(value, threads) || threads < 1 || threads > 256) return "threads is a number from 1 to 256";
    settings.threads = static_cast<int>(threads);
    return "";
  }
  return absl::StrCat("there is no option ", std::string(name),
                      "; there are cpu, threads, passes, fuse, exact and specialise");
}

Status ParseComment(std::string_view line, Reproduction& made, std::string* data) {
  const auto rest = [&](std::string_view key) -> std::optional<std::string_view> {
    if (!line.starts_with(key)) return std::nullopt;
    return line.substr(key.size());
  };
  if (const auto kind = rest("check: ")) {
    if (*kind != "ref" && *kind != "nan") return Bad(line, "there are ref and nan");
    made.kind = *kind == "ref" ? Kind::kRef : Kind::kNan;
  } else if (const auto options = rest("options: ")) {
    return ParseEntries(line, *options, [&](std::string_view name, std::string_view value) {
      return TakeOption(name, value, made.settings);
    });
  } else if (const auto sizes = rest("sizes: ")) {
    return ParseEntries(line, *sizes, [&](std::string_view name, std::string_view value) -> std::string {
      int64_t size = 0;
      if (!ParseNumber(value, size) || size < 0) return absl::StrCat(std::string(value), " is no size");
      made.sizes[std::string(name)] = size;
      return "";
    });
  } else if (const auto file = rest("data: ")) {
    if (file->empty() || file->find('/') != std::string_view::npos) return Bad(line, "the file lies beside this one");
    *data = *file;
  }
  return absl::OkStatus();
}

// A value for every symbol, in its range.
Status CheckSizes(const Reproduction& reproduction) {
  for (const auto& [symbol, range] : ir::GivenSymbols(reproduction.graph)) {
    const auto size = reproduction.sizes.find(symbol);
    if (size == reproduction.sizes.end())
      return absl::InvalidArgumentError(absl::StrFormat("\"# sizes:\" has no %s", symbol));
    if (size->second < range.low || size->second > range.high) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s=%d is outside of %d..%d", symbol, size->second, range.low, range.high));
    }
  }
  return absl::OkStatus();
}

Status Named(const std::string& path, const Status& status) {
  return Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

std::string PrintText(const Reproduction& reproduction, std::string_view name, std::string_view data) {
  const auto flag = [](bool on) { return on ? "on" : "off"; };
  const Settings& s = reproduction.settings;
  std::string text = absl::StrCat("# quern replay ", std::string(name), "\n");
  for (const std::string& note : reproduction.notes) {
    for (const absl::string_view line : absl::StrSplit(note, '\n')) absl::StrAppend(&text, "# ", line, "\n");
  }
  absl::StrAppend(&text, "# check: ", reproduction.kind == Kind::kRef ? "ref" : "nan", "\n");
  absl::StrAppend(&text, "# options: cpu=", s.cpu, " threads=", s.threads, " passes=", s.passes ? "all" : "none",
                  " fuse=", flag(s.fuse), " exact=", flag(s.exact), " specialise=", flag(s.specialise), "\n");
  if (const SymbolRanges given = ir::GivenSymbols(reproduction.graph); !given.empty()) {
    text += "# sizes:";
    for (const auto& [symbol, range] : given) {
      const auto size = reproduction.sizes.find(symbol);
      if (size != reproduction.sizes.end()) absl::StrAppend(&text, " ", symbol, "=", size->second);
    }
    text += "\n";
  }
  if (!data.empty()) absl::StrAppend(&text, "# data: ", std::string(data), "\n");
  return absl::StrCat(text, ir::Print(reproduction.graph));
}

Status TakeTensor(const ir::Node& leaf, const Binding& sizes, const std::string& where, FileTensor tensor,
                  std::vector<uint8_t>& bytes) {
  const ir::TensorType& type = leaf.results[0];
  const std::string& name = leaf.attributes.String("name");
  QUERN_ASSIGN(const std::vector<int64_t> dims, SizesOf(type, sizes));
  QUERN_ASSIGN(const int64_t expected, BytesOf(type, ir::IsParam(leaf), sizes));
  const bool blocks =
      IsBlock(type.dtype) && tensor.dtype == DType::kU8 && static_cast<int64_t>(tensor.bytes.size()) == expected;
  if (!blocks && tensor.dtype != type.dtype) {
    return ToStatus({DiagnosticCode::kDTypeMismatch, "", absl::StrCat("tensor ", name), std::string(Name(type.dtype)),
                     std::string(Name(tensor.dtype)), where});
  }
  if (dims.empty() && tensor.shape == std::vector<int64_t>{1}) tensor.shape.clear();  // a number as one element
  if (!blocks && tensor.shape != dims) {
    return ToStatus(
        {DiagnosticCode::kShapeMismatch, "", absl::StrCat("tensor ", name), Text(dims), Text(tensor.shape), where});
  }
  bytes = std::move(tensor.bytes);
  return absl::OkStatus();
}

StatusOr<std::string> PrintData(const Reproduction& reproduction) {
  FileTensors tensors;
  for (const ir::Node& node : reproduction.graph.nodes()) {
    if (node.op->kind != ir::OpKind::kLeaf || ir::IsConstant(node)) continue;
    const std::string& name = node.attributes.String("name");
    const auto bytes = reproduction.bytes.find(name);
    if (bytes == reproduction.bytes.end())
      return absl::InvalidArgumentError(absl::StrFormat("there are no bytes for %s", name));
    FileTensor& tensor = tensors[name];
    tensor.dtype = node.results[0].dtype;
    QUERN_ASSIGN(tensor.shape, SizesOf(node.results[0], reproduction.sizes));
    tensor.bytes = bytes->second;
    if (!IsBlock(tensor.dtype)) continue;
    tensor.dtype = DType::kU8;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < tensor.shape.size(); ++d) rows *= tensor.shape[d];
    tensor.shape.back() = rows == 0 ? 0 : static_cast<int64_t>(tensor.bytes.size()) / rows;
  }
  std::string data = PrintSafetensors(tensors);
  // A name that is no text, or one that the format keeps for itself, would not come back.
  QUERN_ASSIGN(const std::vector<SafetensorsEntry> entries,
               ReadSafetensors({reinterpret_cast<const uint8_t*>(data.data()), data.size()}));
  for (const SafetensorsEntry& entry : entries) tensors.erase(entry.name);
  if (!tensors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a .safetensors file cannot have a tensor called %s", tensors.begin()->first));
  }
  return data;
}

StatusOr<Reproduction> ParseComments(std::string_view text, std::string* data) {
  Reproduction made;
  // Comments before the graph; those inside it are for people.
  for (std::string_view left = text; !left.empty();) {
    const size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.starts_with("graph") || line.starts_with("module")) break;
    if (!line.starts_with("# ")) continue;
    line.remove_prefix(2);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    QUERN_RETURN_IF_ERROR(ParseComment(line, made, data));
  }
  return made;
}

StatusOr<Reproduction> ParseText(std::string_view text, std::string* data) {
  QUERN_ASSIGN(Reproduction made, ParseComments(text, data));
  QUERN_ASSIGN(made.graph, ir::Parse(text));
  return made;
}

Status ParseData(std::span<const uint8_t> file, Reproduction& made) {
  QUERN_RETURN_IF_ERROR(CheckSizes(made));
  QUERN_ASSIGN(FileTensors tensors, ParseSafetensors(file));
  made.bytes.clear();
  for (const ir::Node& node : made.graph.nodes()) {
    if (node.op->kind != ir::OpKind::kLeaf || ir::IsConstant(node)) continue;
    const std::string& name = node.attributes.String("name");
    const auto found = tensors.find(name);
    if (found == tensors.end()) return absl::InvalidArgumentError(absl::StrFormat("the data has no %s", name));
    QUERN_RETURN_IF_ERROR(TakeTensor(node, made.sizes, made.graph.name, std::move(found->second), made.bytes[name]));
    tensors.erase(found);
  }
  if (tensors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the data has %s, which is no input or parameter of the graph", tensors.begin()->first));
}

StatusOr<Binding> MostSizes(const ir::Graph& graph, const Binding& given) {
  Binding most = given;
  for (const auto& [symbol, bound] : ir::AllCountedSizes(graph)) {
    QUERN_ASSIGN(most[symbol], bound.Evaluate(given));
  }
  return most;
}

Status Check(const Reproduction& reproduction) {
  const ir::Graph& graph = reproduction.graph;
  if (graph.outputs.empty()) return absl::InvalidArgumentError("the graph has no outputs");
  QUERN_RETURN_IF_ERROR(CheckSizes(reproduction));
  QUERN_RETURN_IF_ERROR(ir::CheckStorage(graph));
  size_t leaves = 0;
  int64_t elements = 0;
  QUERN_ASSIGN(const Binding most, MostSizes(graph, reproduction.sizes));
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::TensorType& type : node.results) {
      QUERN_ASSIGN(const std::vector<int64_t> dims, SizesOf(type, most));
      elements += ir::RefTensor{type.dtype, dims, {}}.elements();
      if (elements > kMostElements)
        return absl::InvalidArgumentError(
            absl::StrFormat("the graph's values have more than the %d elements that a check takes", kMostElements));
    }
    if (node.op->kind != ir::OpKind::kLeaf || ir::IsConstant(node)) continue;
    ++leaves;
    const std::string& name = node.attributes.String("name");
    const auto bytes = reproduction.bytes.find(name);
    if (bytes == reproduction.bytes.end())
      return absl::InvalidArgumentError(absl::StrFormat("the data has no %s", name));
    QUERN_ASSIGN(const int64_t expected, BytesOf(node.results[0], ir::IsParam(node), reproduction.sizes));
    if (static_cast<int64_t>(bytes->second.size()) != expected) {
      return absl::InvalidArgumentError(absl::StrFormat("%s has %u bytes of data, %d of %s expected", name,
                                                        bytes->second.size(), expected, node.results[0].ToString()));
    }
  }
  if (leaves == reproduction.bytes.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the data has %u values, the graph %u leaves", reproduction.bytes.size(), leaves));
}

Status Write(const Reproduction& reproduction, const std::string& path) {
  fs::path data(path);
  data.replace_extension(".safetensors");
  const bool none = reproduction.bytes.empty();
  std::string bytes;
  if (!none) {
    QUERN_ASSIGN(bytes, PrintData(reproduction));
  }
  const std::string text =
      PrintText(reproduction, fs::path(path).filename().string(), none ? "" : data.filename().string());
  std::vector<OutputFile> files;
  if (!none) files.push_back({data.string(), bytes});
  files.push_back({path, text});
  return WriteFiles(files);
}

StatusOr<Reproduction> Read(const std::string& path) {
  QUERN_ASSIGN(const MappedFile text, MappedFile::Open(path));
  if (text.bytes().size() > kMostText) return Named(path, absl::InvalidArgumentError("no reproduction is that long"));
  std::string data;
  StatusOr<Reproduction> made =
      ParseText({reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()}, &data);
  if (!made.ok()) return Named(path, made.status());
  if (!data.empty()) {
    const std::string data_path = (fs::path(path).parent_path() / data).string();
    QUERN_ASSIGN(const MappedFile file, MappedFile::Open(data_path));
    if (const Status taken = ParseData(file.bytes(), *made); !taken.ok()) return Named(data_path, taken);
  }
  if (const Status checked = Check(*made); !checked.ok()) return Named(path, checked);
  return made;
}

}  // namespace quern::check
