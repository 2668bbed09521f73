#include "device/manifest.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/overloaded.h"

namespace quern::device {
namespace {

using Json = nlohmann::ordered_json;

Json Range(const SymbolRange& range) {
  if (range.high == INT64_MAX) return {range.low, nullptr};
  return {range.low, range.high};
}

Json Ranges(const SymbolRanges& ranges) {
  Json object = Json::object();
  for (const auto& [name, range] : ranges) object[name] = Range(range);
  return object;
}

Json PortRow(const Port& port, bool parameter) {
  Json shape = Json::array();
  for (const Extent& dim : port.type.dims) shape.push_back(dim.ToString());
  return {{"name", port.name},
          {"dtype", std::string(Name(port.type.dtype))},
          {"shape", std::move(shape)},
          {"bytes", BytesOf(port, parameter).ToString()}};
}

std::string Base64(const std::vector<uint8_t>& data) {
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
}

std::string_view ModeName(kir::Mode mode) {
  switch (mode) {
    case kir::Mode::kIn: return "in";
    case kir::Mode::kOut: return "out";
    case kir::Mode::kInOut: return "inout";
  }
  return "";
}

// A grid's bound, which Verify knows to be a polynomial.
std::string Bound(const kir::ExprRef& expr) {
  const StatusOr<Extent> extent = ExtentOf(expr);
  QUERN_CHECK(extent.ok());
  return extent->ToString();
}

Json KernelRow(const Kernel& kernel) {
  Json symbols = Json::array();
  for (const kir::SymbolDecl& symbol : kernel.symbols) {
    if (symbol.derived)
      symbols.push_back(
          {{"name", symbol.name}, {"ceil", symbol.derived->first.ToString()}, {"by", symbol.derived->second}});
    else
      symbols.push_back({{"name", symbol.name}});
  }
  Json grid = Json::array();
  for (const kir::GridDim& dim : kernel.grid)
    grid.push_back({{"low", Bound(dim.low)}, {"high", Bound(dim.high)}, {"step", dim.step}});
  Json params = Json::array();
  for (const KernelParam& param : kernel.params) {
    params.push_back({{"name", param.name},
                      {"mode", std::string(ModeName(param.mode))},
                      {"bytes", param.bytes.ToString()},
                      {"align", param.align}});
  }
  return {{"symbol", kernel.symbol},       {"threads", kernel.threads}, {"shared_bytes", kernel.shared_bytes},
          {"symbols", std::move(symbols)}, {"grid", std::move(grid)},   {"params", std::move(params)}};
}

// Data of constants, equal ones once.
class Constants {
 public:
  int Add(const std::vector<uint8_t>& data) {
    const auto [known, added] =
        known_.emplace(HashBytes(std::string_view(reinterpret_cast<const char*>(data.data()), data.size())),
                       static_cast<int>(rows_.size()));
    if (added) rows_.push_back(Base64(data));
    return known->second;
  }
  Json Take() { return std::move(rows_); }

 private:
  std::map<Hash128, int> known_;
  Json rows_ = Json::array();
};

Json BufferRow(const lir::Buffer& buffer, Constants& constants) {
  Json row = {{"home", std::string(lir::Name(buffer.home))}, {"name", buffer.name}, {"bytes", buffer.bytes.ToString()}};
  switch (buffer.home) {
    case lir::Home::kArena:
    case lir::Home::kOnce: row["offset"] = buffer.offset.ToString(); break;
    case lir::Home::kOutput: row["output"] = buffer.index; break;
    case lir::Home::kConstant: row["constant"] = constants.Add(*buffer.data); break;
    case lir::Home::kInput:
    case lir::Home::kParam:
    case lir::Home::kState: break;
    case lir::Home::kLoop: row["align"] = buffer.align; break;
  }
  return row;
}

Json Pair(const lir::Argument& argument) { return {argument.buffer, argument.offset.ToString()}; }

Json Launches(const std::vector<lir::Launch>& launches) {
  Json rows = Json::array();
  for (const lir::Launch& launch : launches) {
    Json arguments = Json::array();
    for (const lir::Argument& argument : launch.arguments) arguments.push_back(Pair(argument));
    rows.push_back({{"kernel", launch.kernel}, {"arguments", std::move(arguments)}, {"label", launch.label}});
  }
  return rows;
}

Json Carries(const std::vector<lir::Carry>& carries) {
  Json rows = Json::array();
  for (const lir::Carry& carry : carries) {
    rows.push_back({{"initial", Pair(carry.initial)},
                    {"current", carry.current},
                    {"next", carry.next},
                    {"places", {carry.places[0], carry.places[1]}}});
  }
  return rows;
}

Json StepRow(const lir::Step& step) {
  return std::visit(
      Overloaded{
          [](const lir::Run& run) -> Json { return {{"step", "run"}, {"first", run.first}, {"end", run.end}}; },
          [](const lir::If& choice) -> Json {
            return {{"step", "if"},
                    {"predicate", Pair(choice.predicate)},
                    {"then", choice.then},
                    {"else", choice.otherwise},
                    {"label", choice.label}};
          },
          [](const lir::While& loop) -> Json {
            return {{"step", "while"}, {"predicate", Pair(loop.predicate)}, {"cond", loop.cond},  {"body", loop.body},
                    {"max", loop.max}, {"carries", Carries(loop.carries)},  {"label", loop.label}};
          },
          [](const lir::Scan& scan) -> Json {
            Json rows = Json::array();
            for (const lir::Row& row : scan.rows) {
              rows.push_back({{"buffer", row.buffer}, {"whole", Pair(row.whole)}, {"stride", row.stride.ToString()}});
            }
            return {{"step", "scan"},          {"length", scan.length.ToString()}, {"body", scan.body},
                    {"reverse", scan.reverse}, {"rows", std::move(rows)},          {"carries", Carries(scan.carries)},
                    {"label", scan.label}};
          },
          // Programs of devices have none (CollectProgram).
          [](const lir::Count&) -> Json { return Json(); }},
      step);
}

Json Bodies(const std::vector<lir::Body>& bodies) {
  Json lists = Json::array();
  for (const lir::Body& body : bodies) {
    Json& steps = lists.emplace_back(Json::array());
    for (const lir::Step& step : body.steps) steps.push_back(StepRow(step));
  }
  return lists;
}

Json VariantRow(const Variant& variant, Constants& constants) {
  Json buffers = Json::array(), requirements = Json::array();
  for (const lir::Buffer& buffer : variant.buffers) buffers.push_back(BufferRow(buffer, constants));
  for (const lir::Requirement& requirement : variant.requirements) {
    requirements.push_back({{"value", requirement.value.ToString()},
                            {"is", requirement.exact ? "zero" : "not negative"},
                            {"text", requirement.text}});
  }
  return {{"guard", Ranges(variant.guard)},
          {"arena_bytes", variant.arena_bytes.ToString()},
          {"once_bytes", variant.once_bytes.ToString()},
          {"buffers", std::move(buffers)},
          {"once", Launches(variant.once)},
          {"launches", Launches(variant.launches)},
          {"bodies", Bodies(variant.bodies)},
          {"requirements", std::move(requirements)}};
}

// What fits a line stands on one.
void Put(std::string& out, const Json& json, size_t indent) {
  constexpr size_t kLine = 150;
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (json.is_primitive() || json.empty() || indent + line.size() <= kLine) {
    out += line;
    return;
  }
  out += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& member : json.items()) {
    absl::StrAppend(&out, first ? "\n" : ",\n", std::string(indent + 1, ' '));
    if (json.is_object())
      absl::StrAppend(&out, Json(member.key()).dump(-1, ' ', false, Json::error_handler_t::replace), ": ");
    Put(out, member.value(), indent + 1);
    first = false;
  }
  absl::StrAppend(&out, "\n", std::string(indent, ' '), json.is_object() ? "}" : "]");
}

}  // namespace

std::string WriteManifest(const Program& program, const ManifestFiles& files) {
  const Signature& signature = program.signature;
  Json json;
  json["format"] = "quern device program";
  json["version"] = kManifestVersion;
  json["name"] = signature.name;
  json["target"] = program.target;
  json["cpu"] = program.cpu;
  json["text"] = files.text;
  json["weights"] = {{"bytes", files.weight_bytes},
                     {"header_bytes", files.weight_header_bytes},
                     {"header_hash", files.weight_header_hash}};
  json["symbols"] = Ranges(signature.symbols);
  Json inputs = Json::array(), outputs = Json::array(), states = Json::array(), params = Json::array();
  for (const Port& port : signature.inputs) inputs.push_back(PortRow(port, false));
  for (const Port& port : signature.outputs) {
    Json row = PortRow(port, false);
    row["output"] = port.output;
    outputs.push_back(std::move(row));
  }
  for (const Port& port : signature.states) states.push_back(PortRow(port, false));
  for (size_t p = 0; p < signature.params.size(); ++p) {
    Json row = PortRow(signature.params[p], true);
    if (!program.sources.empty()) {
      const ParamSource& source = program.sources[p];
      if (source.file_offset >= 0)
        row["file_offset"] = source.file_offset;
      else if (source.data != nullptr)
        row["data"] = Base64(*source.data);
    }
    params.push_back(std::move(row));
  }
  json["inputs"] = std::move(inputs);
  json["outputs"] = std::move(outputs);
  json["states"] = std::move(states);
  json["params"] = std::move(params);
  Json kernels = Json::array(), variants = Json::array();
  for (const Kernel& kernel : program.kernels) kernels.push_back(KernelRow(kernel));
  Constants constants;
  for (const Variant& variant : program.variants) variants.push_back(VariantRow(variant, constants));
  json["kernels"] = std::move(kernels);
  json["variants"] = std::move(variants);
  json["constants"] = constants.Take();
  std::string text;
  Put(text, json, 0);
  return text + "\n";
}

}  // namespace quern::device
