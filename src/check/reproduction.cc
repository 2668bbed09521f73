#include "check/reproduction.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "check/value.h"
#include "ir/op.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "QUERNBIN";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostText = 64 << 20;

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

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
  if (!reproduction.graph.symbols.empty()) {
    text += "# sizes:";
    for (const auto& [symbol, range] : reproduction.graph.symbols) {
      const auto size = reproduction.sizes.find(symbol);
      if (size != reproduction.sizes.end()) absl::StrAppend(&text, " ", symbol, "=", size->second);
    }
    text += "\n";
  }
  if (!data.empty()) absl::StrAppend(&text, "# data: ", std::string(data), "\n");
  return absl::StrCat(text, ir::Print(reproduction.graph));
}

std::string PrintData(const Bytes& bytes) {
  std::string out(kMagic);
  Put(out, kVersion);
  Put(out, static_cast<uint32_t>(bytes.size()));
  for (const auto& [name, value] : bytes) {
    Put(out, static_cast<uint32_t>(name.size()));
    Put(out, static_cast<uint64_t>(value.size()));
    out += name;
    out.append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  return out;
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

StatusOr<Bytes> ParseData(std::span<const uint8_t> file) {
  ByteReader reader(file);
  QUERN_ASSIGN(const std::span<const uint8_t> magic, reader.Take(kMagic.size(), "the mark"));
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0)
    return absl::InvalidArgumentError("byte 0: no data of a reproduction");
  QUERN_ASSIGN(const uint32_t version, reader.Read<uint32_t>("the version"));
  if (version != kVersion)
    return absl::InvalidArgumentError(absl::StrFormat("byte 8: version %u is not known, %u is", version, kVersion));
  QUERN_ASSIGN(const uint32_t count, reader.Read<uint32_t>("the count"));
  Bytes bytes;
  for (uint32_t i = 0; i < count; ++i) {
    QUERN_ASSIGN(const uint32_t name_bytes, reader.Read<uint32_t>("the length of a name"));
    QUERN_ASSIGN(const uint64_t value_bytes, reader.Read<uint64_t>("the length of a value"));
    QUERN_ASSIGN(const std::span<const uint8_t> name, reader.Take(name_bytes, "a name"));
    QUERN_ASSIGN(const std::span<const uint8_t> value, reader.Take(value_bytes, "a value"));
    const auto [it, added] =
        bytes.emplace(std::string(name.begin(), name.end()), std::vector<uint8_t>(value.begin(), value.end()));
    if (!added) return absl::InvalidArgumentError(absl::StrFormat("%s is there twice", it->first));
  }
  if (reader.left() > 0)
    return absl::InvalidArgumentError(absl::StrFormat("%u bytes follow the last value", reader.left()));
  return bytes;
}

Status Check(const Reproduction& reproduction) {
  const ir::Graph& graph = reproduction.graph;
  if (graph.outputs.empty()) return absl::InvalidArgumentError("the graph has no outputs");
  for (const auto& [symbol, range] : graph.symbols) {
    const auto size = reproduction.sizes.find(symbol);
    if (size == reproduction.sizes.end())
      return absl::InvalidArgumentError(absl::StrFormat("\"# sizes:\" has no %s", symbol));
    if (size->second < range.low || size->second > range.high) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s=%d is outside of %d..%d", symbol, size->second, range.low, range.high));
    }
  }
  QUERN_RETURN_IF_ERROR(ir::CheckStorage(graph));
  size_t leaves = 0;
  int64_t elements = 0;
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::TensorType& type : node.results) {
      QUERN_ASSIGN(const std::vector<int64_t> dims, SizesOf(type, reproduction.sizes));
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
  data.replace_extension(".bin");
  const bool none = reproduction.bytes.empty();
  const std::string bytes = none ? "" : PrintData(reproduction.bytes);
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
    StatusOr<Bytes> bytes = ParseData(file.bytes());
    if (!bytes.ok()) return Named(data_path, bytes.status());
    made->bytes = *std::move(bytes);
  }
  if (const Status checked = Check(*made); !checked.ok()) return Named(path, checked);
  return made;
}

}  // namespace quern::check
