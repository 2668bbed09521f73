// ReadManifest: JSON that anybody may have written becomes a program that verifies, or an error.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/json_reader.h"
#include "device/manifest.h"
#include "kir/build.h"

namespace quern::device {
namespace {

SymbolRange ReadRange(const JsonReader& from) {
  const std::vector<JsonReader> ends = from.Rows();
  if (ends.size() != 2) {
    from.Fail("a pair expected: the least and the greatest");
    return {};
  }
  return {ends[0].Integer(), ends[1].IsNull() ? INT64_MAX : ends[1].Integer()};
}

SymbolRanges ReadRanges(const JsonReader& from) {
  SymbolRanges ranges;
  for (const auto& [name, range] : from.Members()) ranges[name] = ReadRange(range);
  return ranges;
}

int ReadIndex(const JsonReader& from) {
  const int64_t index = from.Integer();
  if (index >= 0 && index <= INT32_MAX) return static_cast<int>(index);
  from.Fail("an index expected");
  return 0;
}

Port ReadPort(const JsonReader& from) {
  Port port;
  port.name = from.Field("name").Text();
  const std::string dtype = from.Field("dtype").Text();
  const std::optional<DType> found = DTypeFromName(dtype);
  if (found)
    port.type.dtype = *found;
  else
    from.Field("dtype").Fail(absl::StrCat("there is no dtype \"", dtype, "\""));
  for (const JsonReader& dim : from.Field("shape").Rows()) port.type.dims.push_back(dim.Size());
  return port;
}

// What the manifest says of a port's bytes is for other readers; here it has to be what the type says.
void CheckBytes(const JsonReader& from, const Port& port, bool parameter) {
  if (from.Field("bytes").Size() == BytesOf(port, parameter)) return;
  from.Field("bytes").Fail("they are not those of the shape");
}

std::vector<Port> ReadPorts(const JsonReader& from, bool outputs) {
  std::vector<Port> ports;
  for (const JsonReader& row : from.Rows()) {
    ports.push_back(ReadPort(row));
    if (outputs) ports.back().output = ReadIndex(row.Field("output"));
  }
  return ports;
}

Kernel ReadKernel(const JsonReader& from) {
  Kernel kernel;
  kernel.symbol = from.Field("symbol").Text();
  kernel.threads = from.Field("threads").Integer();
  kernel.shared_bytes = from.Field("shared_bytes").Integer();
  for (const JsonReader& row : from.Field("symbols").Rows()) {
    kir::SymbolDecl symbol{row.Field("name").Text(), {}, std::nullopt};
    if (row.Has("ceil")) symbol.derived.emplace(row.Field("ceil").Size(), row.Field("by").Integer());
    kernel.symbols.push_back(std::move(symbol));
  }
  for (const JsonReader& row : from.Field("grid").Rows()) {
    kernel.grid.push_back({"", kir::build::FromExtent(row.Field("low").Size()),
                           kir::build::FromExtent(row.Field("high").Size()), row.Field("step").Integer()});
  }
  for (const JsonReader& row : from.Field("params").Rows()) {
    KernelParam param{row.Field("name").Text(), row.Field("bytes").Size(), kir::Mode::kIn,
                      ReadIndex(row.Field("align"))};
    const std::string mode = row.Field("mode").Text();
    if (mode == "out")
      param.mode = kir::Mode::kOut;
    else if (mode == "inout")
      param.mode = kir::Mode::kInOut;
    else if (mode != "in")
      row.Field("mode").Fail("in, out or inout expected");
    kernel.params.push_back(std::move(param));
  }
  return kernel;
}

using Data = std::shared_ptr<const std::vector<uint8_t>>;

lir::Buffer ReadBuffer(const JsonReader& from, const std::vector<Data>& constants) {
  lir::Buffer buffer;
  const std::string home = from.Field("home").Text();
  bool known = false;
  for (int h = 0; h <= static_cast<int>(lir::Home::kLoop); ++h) {
    if (home != lir::Name(static_cast<lir::Home>(h))) continue;
    buffer.home = static_cast<lir::Home>(h);
    known = true;
  }
  if (!known) from.Field("home").Fail(absl::StrCat("there is no home \"", home, "\""));
  buffer.name = from.Field("name").Text();
  buffer.bytes = from.Field("bytes").Size();
  switch (buffer.home) {
    case lir::Home::kArena:
    case lir::Home::kOnce: buffer.offset = from.Field("offset").Size(); break;
    case lir::Home::kOutput: buffer.index = ReadIndex(from.Field("output")); break;
    case lir::Home::kConstant: {
      const size_t constant = static_cast<size_t>(ReadIndex(from.Field("constant")));
      if (constant < constants.size())
        buffer.data = constants[constant];
      else
        from.Field("constant").Fail(absl::StrFormat("constant %u of %u", constant, constants.size()));
      break;
    }
    case lir::Home::kInput:
    case lir::Home::kState: break;
    case lir::Home::kParam: buffer.align = lir::kParamAlign; break;
    case lir::Home::kLoop: buffer.align = from.Field("align").Integer(); break;
  }
  return buffer;
}

lir::Argument ReadPair(const JsonReader& from) {
  const std::vector<JsonReader> parts = from.Rows();
  if (parts.size() == 2) return {ReadIndex(parts[0]), parts[1].Size()};
  from.Fail("a pair expected: a buffer and an offset");
  return {};
}

std::vector<lir::Launch> ReadLaunches(const JsonReader& from) {
  std::vector<lir::Launch> launches;
  for (const JsonReader& row : from.Rows()) {
    lir::Launch launch;
    launch.kernel = ReadIndex(row.Field("kernel"));
    launch.label = row.Field("label").Text();
    for (const JsonReader& pair : row.Field("arguments").Rows()) launch.arguments.push_back(ReadPair(pair));
    launches.push_back(std::move(launch));
  }
  return launches;
}

std::vector<lir::Carry> ReadCarries(const JsonReader& from) {
  std::vector<lir::Carry> carries;
  for (const JsonReader& row : from.Rows()) {
    lir::Carry carry{ReadPair(row.Field("initial")), ReadIndex(row.Field("current")), ReadIndex(row.Field("next")), {}};
    const std::vector<JsonReader> places = row.Field("places").Rows();
    if (places.size() == carry.places.size())
      carry.places = {ReadIndex(places[0]), ReadIndex(places[1])};
    else
      row.Field("places").Fail("two buffers expected");
    carries.push_back(std::move(carry));
  }
  return carries;
}

lir::Step ReadStep(const JsonReader& from) {
  const std::string kind = from.Field("step").Text();
  if (kind == "run") return lir::Run{ReadIndex(from.Field("first")), ReadIndex(from.Field("end"))};
  if (kind == "if") {
    return lir::If{ReadPair(from.Field("predicate")), ReadIndex(from.Field("then")), ReadIndex(from.Field("else")), -1,
                   from.Field("label").Text()};
  }
  if (kind == "while") {
    return lir::While{ReadPair(from.Field("predicate")),  ReadIndex(from.Field("cond")), ReadIndex(from.Field("body")),
                      ReadCarries(from.Field("carries")), from.Field("max").Integer(),   -1,
                      from.Field("label").Text()};
  }
  if (kind == "scan") {
    lir::Scan scan{ReadIndex(from.Field("body")),
                   from.Field("length").Size(),
                   from.Field("reverse").Bool(),
                   ReadCarries(from.Field("carries")),
                   {},
                   -1,
                   from.Field("label").Text()};
    for (const JsonReader& row : from.Field("rows").Rows())
      scan.rows.push_back({ReadIndex(row.Field("buffer")), ReadPair(row.Field("whole")), row.Field("stride").Size()});
    return scan;
  }
  from.Field("step").Fail("run, if, while or scan expected");
  return lir::Run{};
}

Variant ReadVariant(const JsonReader& from, const std::vector<Data>& constants) {
  Variant variant;
  variant.guard = ReadRanges(from.Field("guard"));
  variant.arena_bytes = from.Field("arena_bytes").Size();
  variant.once_bytes = from.Field("once_bytes").Size();
  for (const JsonReader& row : from.Field("buffers").Rows()) variant.buffers.push_back(ReadBuffer(row, constants));
  variant.once = ReadLaunches(from.Field("once"));
  variant.launches = ReadLaunches(from.Field("launches"));
  for (const JsonReader& steps : from.Field("bodies").Rows()) {
    lir::Body& body = variant.bodies.emplace_back();
    for (const JsonReader& step : steps.Rows()) body.steps.push_back(ReadStep(step));
  }
  for (const JsonReader& row : from.Field("requirements").Rows()) {
    const std::string is = row.Field("is").Text();
    if (is != "zero" && is != "not negative") row.Field("is").Fail("\"zero\" or \"not negative\" expected");
    variant.requirements.push_back({row.Field("value").Size(), is == "zero", row.Field("text").Text()});
  }
  return variant;
}

ParamSource ReadSource(const JsonReader& from) {
  ParamSource source;
  if (from.Has("file_offset")) {
    source.file_offset = from.Field("file_offset").Integer();
    if (source.file_offset < 0) from.Field("file_offset").Fail("an offset expected");
  } else if (from.Has("data")) {
    source.data = std::make_shared<const std::vector<uint8_t>>(from.Field("data").Bytes());
  }
  return source;
}

}  // namespace

StatusOr<Manifest> ReadManifest(std::string_view text) {
  const auto bad = [](std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: ", absl::string_view(what.data(), what.size())));
  };
  const JsonReader::Json json = JsonReader::Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) return bad("it is no JSON");
  Status status;
  const JsonReader file(json, status);
  if (file.Field("format").Text() != "quern device program" && status.ok())
    return bad("format: it is no program for devices");
  if (const int64_t version = file.Field("version").Integer(); version != kManifestVersion && status.ok()) {
    return bad(absl::StrFormat("version %d; this reads %d", version, kManifestVersion));
  }
  Manifest made;
  Program& program = made.program;
  Signature& signature = program.signature;
  signature.name = file.Field("name").Text();
  program.target = file.Field("target").Text();
  program.cpu = file.Field("cpu").Text();
  made.files.text = file.Field("text").Text();
  const JsonReader weights = file.Field("weights");
  made.files.weight_bytes = weights.Field("bytes").Integer();
  made.files.weight_header_bytes = weights.Field("header_bytes").Integer();
  made.files.weight_header_hash = weights.Field("header_hash").Text();
  signature.symbols = ReadRanges(file.Field("symbols"));
  signature.inputs = ReadPorts(file.Field("inputs"), false);
  signature.outputs = ReadPorts(file.Field("outputs"), true);
  signature.states = ReadPorts(file.Field("states"), false);
  signature.params = ReadPorts(file.Field("params"), false);
  for (const JsonReader& row : file.Field("params").Rows()) program.sources.push_back(ReadSource(row));
  for (const JsonReader& row : file.Field("kernels").Rows()) program.kernels.push_back(ReadKernel(row));
  std::vector<Data> constants;
  for (const JsonReader& row : file.Field("constants").Rows())
    constants.push_back(std::make_shared<const std::vector<uint8_t>>(row.Bytes()));
  for (const JsonReader& row : file.Field("variants").Rows()) program.variants.push_back(ReadVariant(row, constants));
  // Whether the file's header can lie in it.
  if (made.files.weight_bytes < 0 || made.files.weight_header_bytes < 0 ||
      made.files.weight_header_bytes > made.files.weight_bytes) {
    weights.Fail("their sizes are none");
  }
  if (made.files.text.empty() || made.files.text.find_first_of("/\\") != std::string::npos || made.files.text == "..") {
    file.Field("text").Fail("the name of a file in the same folder expected");
  }
  if (status.ok()) status = Verify(program);
  if (!status.ok()) return bad(std::string(status.message()));
  for (const auto& [list, ports, parameter] :
       {std::tuple("inputs", &signature.inputs, false), std::tuple("outputs", &signature.outputs, false),
        std::tuple("states", &signature.states, false), std::tuple("params", &signature.params, true)}) {
    const std::vector<JsonReader> rows = file.Field(list).Rows();
    for (size_t p = 0; p < rows.size(); ++p) CheckBytes(rows[p], (*ports)[p], parameter);
  }
  if (!status.ok()) return bad(std::string(status.message()));
  return made;
}

}  // namespace quern::device
