// The manifest: what is written is read back, and nothing that is wrong in it goes unseen.
#include "device/manifest.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "device_graph.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class ManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A constant, and a view with an offset that moves.
    ASSERT_NO_FATAL_FAILURE(testing::PlanForDevice(testing::kSmallGraph, testing::SmallGuards(), graph_));
    program_ = graph_.program->program;
    program_.target = "nvptx64";
    program_.cpu = "sm_80";
    program_.sources = {{4096, nullptr}, {-1, std::make_shared<const std::vector<uint8_t>>(37 * 41 * 4, uint8_t{7})}};
    for (device::Variant& variant : program_.variants) {
      lir::Buffer constant;
      constant.name = "c";
      constant.home = lir::Home::kConstant;
      constant.bytes = Extent(5);
      constant.data = std::make_shared<const std::vector<uint8_t>>(std::vector<uint8_t>{1, 0, 255, 4, 5});
      variant.buffers.push_back(std::move(constant));
      variant.requirements.push_back({Extent(100) - Extent::Symbol("S"), false, "S fits"});
    }
    kir::SymbolDecl runs{"RUNS", {}, std::pair(Extent::Symbol("S") + Extent(3), int64_t{4})};
    for (device::Kernel& kernel : program_.kernels) {
      if (kernel.symbols.empty() || kernel.symbols[0].name != "S") continue;
      kernel.symbols.push_back(runs);
      break;
    }
    files_ = {"small.ptx", 1 << 20, 4096, "0123456789abcdef"};
    text_ = device::WriteManifest(program_, files_);
    json_ = Json::parse(text_);
  }
  std::string ErrorOf(const Json& json) {
    const StatusOr<device::Manifest> read = device::ReadManifest(json.dump());
    if (read.ok()) return "";
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << read.status();
    return std::string(read.status().message());
  }
  testing::DeviceGraph graph_;
  device::Program program_;
  device::ManifestFiles files_;
  std::string text_;
  Json json_;
};

TEST_F(ManifestTest, WrittenIsRead) {
  const StatusOr<device::Manifest> read = device::ReadManifest(text_);
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text_;
  EXPECT_EQ(read->files, files_);
  EXPECT_EQ(device::WriteManifest(read->program, read->files), text_);
  EXPECT_EQ(*read->program.sources[1].data, *program_.sources[1].data);
  EXPECT_EQ(json_["constants"].size(), 2u);  // that of the norm, and ours, in two variants each
  EXPECT_EQ(json_["kernels"].size(), graph_.program->source.kernels.size());
}

// A program that was read runs as the one that was written.
TEST_F(ManifestTest, ReadProgramRuns) {
  const StatusOr<device::Manifest> read = device::ReadManifest(device::WriteManifest(graph_.program->program, files_));
  ASSERT_TRUE(read.ok()) << read.status();
  auto loadable =
      std::make_shared<device::LoadableProgram>(device::LoadableProgram{read->program, graph_.program->source});
  std::vector<float> results[2];
  for (const auto& [program, result] :
       {std::pair(std::shared_ptr<const device::LoadableProgram>(loadable), &results[0]),
        std::pair(graph_.program, &results[1])}) {
    auto executor = device::Executor::Create(device::emulated::MakeDevice(1), program->program.signature,
                                             device::VariantsOf(program));
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE(testing::BindSmall(**executor).ok());
    ASSERT_TRUE(testing::StepSmall(**executor, 0, 3).ok());
    const auto got = testing::StepSmall(**executor, 3, 1);
    ASSERT_TRUE(got.ok()) << got.status();
    *result = *got;
  }
  EXPECT_EQ(results[0], results[1]);
}

// Calls `visit` with every value of the tree and its path.
void Walk(Json& json, const std::string& path, const std::function<void(Json&, const std::string&)>& visit) {
  visit(json, path);
  if (json.is_object()) {
    for (auto& [name, value] : json.items()) Walk(value, path.empty() ? name : path + "." + name, visit);
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) Walk(json[i], path + "[" + std::to_string(i) + "]", visit);
  }
}

// Each object that is read field by field: those of symbols and guards are named by what they hold.
bool IsRecord(const std::string& path) { return path != "symbols" && !path.ends_with("guard"); }
// A field that may be missing: what it says is optional, or another error says that it is.
bool IsOptional(const std::string& path) {
  return path.ends_with("].file_offset") || path.ends_with("].data") || path.ends_with("].ceil") ||
         path.ends_with("].by");
}

TEST_F(ManifestTest, EachFieldIsNeeded) {
  std::vector<std::pair<std::string, std::string>> fields;  // of objects, by path
  Walk(json_, "", [&](Json& value, const std::string& path) {
    if (!value.is_object() || !IsRecord(path)) return;
    for (const auto& [name, field] : value.items()) fields.emplace_back(path, name);
  });
  ASSERT_GT(fields.size(), 200u);
  for (const auto& [path, name] : fields) {
    const std::string full = path.empty() ? name : path + "." + name;
    if (IsOptional(full)) continue;
    Json damaged = json_;
    Walk(damaged, "", [&](Json& value, const std::string& at) {
      if (at == path && value.is_object()) value.erase(name);
    });
    EXPECT_EQ(ErrorOf(damaged), "manifest: " + full + ": it is missing");
  }
}

TEST_F(ManifestTest, EachValueHasItsType) {
  std::vector<std::string> paths;
  Walk(json_, "", [&](Json&, const std::string& path) { paths.push_back(path); });
  for (const Json& wrong : {Json(nullptr), Json(1.5), Json(-1), Json(18446744073709551615ull), Json("$"),
                            Json::array({Json::array()}), Json::object({{"a", Json::object()}})}) {
    for (const std::string& path : paths) {
      Json damaged = json_;
      bool same = false;
      Walk(damaged, "", [&](Json& value, const std::string& at) {
        if (at != path) return;
        // Any text is a name or a label, and a range need not end.
        const bool free = wrong.is_string() && value.is_string() &&
                          (at.ends_with("name") || at.ends_with("label") || at.ends_with("target") ||
                           at.ends_with("cpu") || at.ends_with("text") || at.ends_with("header_hash"));
        same = free || value == wrong || (wrong.is_null() && at.ends_with("[1]"));
        value = wrong;
      });
      const std::string error = ErrorOf(damaged);
      if (same) continue;
      EXPECT_THAT(error, HasSubstr("manifest: ")) << path << " = " << wrong.dump();
    }
  }
}

TEST_F(ManifestTest, LyingNumbersAreFound) {
  struct Lie {
    const char* pointer;
    Json value;
    const char* error;
  };
  const Lie lies[] = {
      {"/version", 1, "version 1; this reads 2"},
      {"/format", "x", "it is no program for devices"},
      {"/text", "../small.ptx", "text: the name of a file in the same folder expected"},
      {"/symbols/S", {5, 2}, "symbols.S: 5..2 is no range of sizes"},
      {"/inputs/0/dtype", "f33", "inputs[0].dtype: there is no dtype \"f33\""},
      {"/inputs/0/shape/0", "T", "inputs[0].shape: there is no symbol T"},
      {"/inputs/0/shape/0", "-S", "inputs[0].shape: a negative size"},
      {"/inputs/0/bytes", "37*S", "inputs[0].bytes: they are not those of the shape"},
      {"/inputs/0/shape/1", "S*S*S*(", "inputs[0].shape[1]: a size expected"},
      {"/params/0/shape/0", "S", "params[0].shape: it depends on a symbol"},
      {"/params/0/dtype", "q4_K", "params[0].shape: rows of q4_K are not whole blocks"},
      {"/params/1/data", "AAAA", "params[1]: 3 bytes of data, 6068 expected"},
      {"/params/0/file_offset", -4, "params[0].file_offset: an offset expected"},
      {"/params/0/file_offset", INT64_MAX, "params[0]: its offset is none"},
      {"/weights/header_bytes", 1 << 21, "weights: their sizes are none"},
      {"/kernels/0/symbol", "a b", "kernels[0].symbol: it is no identifier"},
      {"/kernels/0/threads", 0, "kernels[0].threads: 0 threads in a block"},
      {"/kernels/0/threads", 4096, "kernels[0].threads: 4096 threads in a block"},
      {"/kernels/0/shared_bytes", -1, "kernels[0].shared_bytes: -1 bytes"},
      {"/kernels/0/grid/0/step", 0, "kernels[0].grid[0]: steps of 0"},
      {"/kernels/0/grid/0/high", "Z", "kernels[0].grid[0]: there is no symbol Z"},
      {"/kernels/0/grid", Json::array(), "kernels[0].grid: 0 dimensions"},
      {"/kernels/0/params/0/align", 3, "kernels[0].params[0]: alignment 3"},
      {"/variants/0/guard/S", {-2, 1}, "variants[0].guard.S: -2..1 is no range of sizes"},
      {"/variants/0/guard", {{"Q", {1, 1}}}, "variants[0].guard: there is no symbol Q"},
      {"/variants/0/launches/0/kernel", 999, "variants[0].launches[0]: kernel 999 of"},
      {"/variants/0/launches/0/kernel", -1, "variants[0].launches[0].kernel: an index expected"},
      {"/variants/0/launches/0/arguments/0/0", 999, "variants[0].launches[0].arguments[0]: buffer 999 of"},
      {"/variants/0/launches/0/arguments", Json::array(), "variants[0].launches[0]: 0 arguments"},
      {"/variants/0/once_bytes", "-64", "variants[0].once_bytes: it depends on a symbol, or is negative"},
      {"/variants/0/arena_bytes", "Z", "variants[0].arena_bytes: there is no symbol Z"},
      {"/variants/0/bodies", Json::array(), "variants[0]: body 0 of 0"},
      {"/variants/0/bodies/0/0/end", 1, "no step runs launch"},
      {"/variants/0/bodies/0/0/step", "jump", "run, if, while or scan expected"},
      {"/variants", Json::array(), "variants: none"},
      {"/constants", Json::array(), ".constant: constant 0 of 0"},
  };
  for (const Lie& lie : lies) {
    Json damaged = json_;
    damaged[Json::json_pointer(lie.pointer)] = lie.value;
    EXPECT_THAT(ErrorOf(damaged), HasSubstr(lie.error)) << lie.pointer << " = " << lie.value.dump();
  }
  Json twice = json_;
  twice["kernels"][1]["symbol"] = twice["kernels"][0]["symbol"];
  EXPECT_THAT(ErrorOf(twice), HasSubstr("kernels[1]: a second entry"));
  Json written = json_;
  for (Json& buffer : written["variants"][0]["buffers"]) buffer = {{"home", "param"}, {"name", "w"}, {"bytes", "0"}};
  EXPECT_THAT(ErrorOf(written), HasSubstr("it writes an argument of home param"));
}

// No prefix of the file, and no file with a byte changed, brings the reader down. What still reads, verifies.
TEST_F(ManifestTest, DamagedText) {
  for (size_t length = 0; length < text_.size(); length += 211)
    EXPECT_FALSE(device::ReadManifest(std::string_view(text_).substr(0, length)).ok()) << length;
  uint32_t state = 20261;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = text_;
    for (int k = 0; k < 3; ++k) {
      state = state * 1664525 + 1013904223;
      damaged[(state >> 8) % damaged.size()] = static_cast<char>("09-\"[]{}:,aZ*+ "[(state >> 3) % 15]);
    }
    const StatusOr<device::Manifest> read = device::ReadManifest(damaged);
    if (read.ok()) {
      EXPECT_TRUE(device::Verify(read->program).ok());
    }
  }
  EXPECT_FALSE(device::ReadManifest(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace quern
