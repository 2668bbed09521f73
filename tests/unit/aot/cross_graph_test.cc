// Graphs for another processor: compiled for aarch64, linked into one static program, run under qemu, and held to the
// double interpreter with its error bars. Random ones, and products with weights of every format. In order on one
// thread and last chunk first with two workers: the same bits.
//
// QUERN_RANDOM_SEED=n runs that graph alone and prints it; QUERN_LONG_TESTS=n runs n times as many.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "check/oracle.h"
#include "opt/passes.h"
#include "simd/library.h"
#include "support/block_formats.h"
#include "unit/aot/graph_case.h"

namespace quern::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kGraphs = 60;
constexpr uint64_t kFirst = 510000;  // other graphs than those of this machine's levels

struct Case : GraphCase {
  ir::Graph meaning;
  ir::Feeds feeds;
  std::unique_ptr<check::GraphOracle> oracle;
};

// Products of few rows and of many with all formats of weights and of bytes, rows of the weights by themselves,
// matrices turned, attention over keys and values of each float type, and windows of an image: what calls tiles.
const std::vector<DType>& Formats() {
  static const std::vector<DType> formats = [] {
    std::vector<DType> all = {DType::kF32, DType::kF16, DType::kBF16};
    for (const DType format : AllFormats()) all.push_back(format);
    return all;
  }();
  return formats;
}
constexpr DType kTurned[] = {DType::kI8, DType::kF16, DType::kF32, DType::kF64};
constexpr int64_t kRows[] = {1, 3, 21};
uint64_t Products() { return Formats().size() * std::size(kRows) * 2; }
// Many rows in both modes; few rows as a chessboard's black squares. QUERN_LONG_TESTS: all.
bool Tries(uint64_t product) {
  const uint64_t kind = product / Formats().size(), rows = kind % std::size(kRows), exact = kind / std::size(kRows);
  const bool many = kRows[rows] > 3, black = (product % Formats().size() + rows + exact) % 2 == 0;
  return many || black || FromEnvironment("QUERN_LONG_TESTS", 0) != 0;
}

Status MakeProduct(uint64_t index, Case& test) {
  const DType format = Formats()[index % Formats().size()];
  const int64_t rows = kRows[index / Formats().size() % std::size(kRows)];
  test.exact = index / Formats().size() / std::size(kRows) != 0;
  ir::Graph& graph = test.random.graph;
  const Extent k(IsBlock(format) ? 3 * Row(format).block_elements : 101);
  // bf16 beside f32, and beside its own: pairs.
  const DType activation = format == DType::kBF16 && test.exact ? DType::kBF16 : DType::kF32;
  QUERN_ASSIGN(const ir::Value x, graph.AddInput("x", {activation, {Extent(rows), k}}));
  QUERN_ASSIGN(const ir::Value t,
               graph.AddInput("t", {kTurned[index % std::size(kTurned)], {Extent(67), Extent(130)}}));
  QUERN_ASSIGN(const ir::Value turned, graph.Add("Transpose", {t}, {{"perm", std::vector<int64_t>{1, 0}}}));
  // Rows of few elements, and few rows.
  const Extent few(index % 2 == 0 ? 3 : 5);
  QUERN_ASSIGN(const ir::Value p, graph.AddInput("p", {kTurned[index / 2 % std::size(kTurned)], {Extent(131), few}}));
  QUERN_ASSIGN(const ir::Value planes, graph.Add("Transpose", {p}, {{"perm", std::vector<int64_t>{1, 0}}}));
  QUERN_ASSIGN(const ir::Value r, graph.AddInput("r", {kTurned[index / 2 % std::size(kTurned)], {few, Extent(131)}}));
  QUERN_ASSIGN(const ir::Value pixels, graph.Add("Transpose", {r}, {{"perm", std::vector<int64_t>{1, 0}}}));
  QUERN_ASSIGN(const ir::Value ids, graph.AddInput("ids", {DType::kI32, {Extent(5)}}));
  QUERN_ASSIGN(const ir::Value w, graph.AddParam("w", {format, {Extent(37), k}}));
  QUERN_ASSIGN(const ir::Value product, graph.Add("MatMul", {x, w}, {{"transpose_b", true}}));
  QUERN_ASSIGN(const ir::Value picked, graph.Add("Gather", {w, ids}, {{"axis", int64_t{0}}}));
  constexpr DType kBytes[] = {DType::kI8, DType::kU8};
  const bool transposed = index / 4 % 2 == 0;
  QUERN_ASSIGN(const ir::Value u, graph.AddInput("u", {kBytes[index % 2], {Extent(rows), Extent(67)}}));
  const std::vector<Extent> right =
      transposed ? std::vector<Extent>{Extent(37), Extent(67)} : std::vector<Extent>{Extent(67), Extent(37)};
  // As a weight in panels, as an input as it lies.
  const ir::TensorType bytes = {kBytes[index / 2 % 2], right};
  QUERN_ASSIGN(const ir::Value v, index / 8 % 2 == 0 ? graph.AddParam("v", bytes) : graph.AddInput("v", bytes));
  QUERN_ASSIGN(const ir::Value integers, graph.Add("MatMul", {u, v}, {{"transpose_b", transposed}}));
  QUERN_ASSIGN(const ir::Value d, graph.AddInput("d", {DType::kF64, {Extent(rows), Extent(67)}}));
  QUERN_ASSIGN(const ir::Value e, graph.AddParam("e", {DType::kF64, right}));
  QUERN_ASSIGN(const ir::Value doubles, graph.Add("MatMul", {d, e}, {{"transpose_b", transposed}}));
  constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16};
  QUERN_ASSIGN(const ir::Value query,
               graph.AddInput("query", {kFloats[index % 2 * 2], {Extent(1), Extent(rows), Extent(32)}}));
  QUERN_ASSIGN(const ir::Value keys, graph.AddInput("keys", {kFloats[index % 3], {Extent(1), Extent(37), Extent(16)}}));
  QUERN_ASSIGN(const ir::Value values,
               graph.AddInput("values", {kFloats[index / 3 % 3], {Extent(1), Extent(37), Extent(16)}}));
  QUERN_ASSIGN(const ir::Value attention,
               graph.Add("Attention", {query, keys, values},
                         {{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"head_dim", int64_t{16}}}));
  QUERN_ASSIGN(const ir::Value image, graph.AddInput("image", {DType::kF32, {1, 5, 13, 17}}));
  QUERN_ASSIGN(const ir::Value kernel, graph.AddParam("kernel", {DType::kF32, {9, 17, 3, 3}}));
  QUERN_ASSIGN(const ir::Value windows, graph.Add("Conv", {image, kernel}, {{"channels_last", true}}));
  graph.outputs = {product, picked, turned, planes, pixels, integers, doubles, attention, windows};
  return absl::OkStatus();
}

Status MakeCase(uint64_t seed, const cpu::Target& target, Case& test) {
  std::mt19937_64 choose(seed * 7919);
  if (seed < Products()) {
    QUERN_RETURN_IF_ERROR(MakeProduct(seed, test));
    QUERN_RETURN_IF_ERROR(PlanCase(seed, target, choose, test));
  } else {
    QUERN_RETURN_IF_ERROR(PlanRandomCase(seed, target, choose, false, test));
  }
  test.meaning = test.random.graph;
  if (!test.exact) {
    QUERN_ASSIGN(const ir::Graph expanded, opt::ExpandComposites(test.random.graph));
    QUERN_ASSIGN(test.meaning, opt::QuantiseActivations(expanded, {.as_bf16 = true}));
  }
  test.feeds = RandomFeeds(test.random.graph, test.random.binding, seed);
  QUERN_ASSIGN(check::GraphOracle oracle,
               check::GraphOracle::Create(test.meaning, test.random.binding, test.feeds, seed));
  test.oracle = std::make_unique<check::GraphOracle>(std::move(oracle));
  return absl::OkStatus();
}

// What cross_program.c reads.
class Data {
 public:
  explicit Data(const std::string& path) : file_(path, std::ios::binary) {}
  void Number(int64_t value) { file_.write(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Bytes(std::span<const uint8_t> bytes) {
    file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void Block(std::span<const uint8_t> bytes) { Number(static_cast<int64_t>(bytes.size())), Bytes(bytes); }

 private:
  std::ofstream file_;
};

int64_t OutputBytes(const Case& test, const Port& port) {
  const ir::TensorType& type = test.compiled.prepared.type(test.compiled.prepared.outputs[port.output]);
  return *type.elements().Evaluate(test.random.binding) * ScalarBytes(type.dtype);
}

void Write(const Case& test, Data& data) {
  const Signature& signature = test.model.signature;
  data.Block(test.model.weights.bytes);
  data.Number(static_cast<int64_t>(test.workspace.states.size()));
  for (const auto& [name, offset] : test.workspace.states) {
    data.Number(offset);
    data.Block(test.bytes.find(name)->second);
  }
  data.Number(static_cast<int64_t>(signature.inputs.size()));
  for (const Port& port : signature.inputs) data.Block(test.bytes.find(port.name)->second);
  data.Number(static_cast<int64_t>(signature.outputs.size()));
  for (const Port& port : signature.outputs) data.Number(OutputBytes(test, port));
  data.Number(static_cast<int64_t>(signature.symbols.size()));
  for (const auto& [symbol, range] : signature.symbols) data.Number(test.random.binding.at(symbol));
}

// Outputs in the order of the graph, carried state among them. `at` moves behind what belongs to the case.
std::vector<std::vector<uint8_t>> Read(const Case& test, const std::vector<uint8_t>& bytes, size_t& at) {
  const auto take = [&](int64_t count) {
    const size_t from = std::min(at, bytes.size()), to = std::min(from + static_cast<size_t>(count), bytes.size());
    at += static_cast<size_t>(count);
    return std::vector<uint8_t>(bytes.begin() + static_cast<int64_t>(from), bytes.begin() + static_cast<int64_t>(to));
  };
  std::vector<std::vector<uint8_t>> results(test.compiled.prepared.outputs.size());
  for (const Port& port : test.model.signature.outputs) results[port.output] = take(OutputBytes(test, port));
  BytesByName states;
  for (const auto& [name, offset] : test.workspace.states)
    states[name] = take(static_cast<int64_t>(test.bytes.find(name)->second.size()));
  for (const ir::Donation& donation : test.compiled.prepared.donations)
    results[donation.output] = states[donation.input];
  return results;
}

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// The output of a command, empty where it fails.
bool Runs(const std::string& command) { return std::system(command.c_str()) == 0; }

TEST(CrossGraphs, MeanTheSameOnAnotherProcessor) {
  const std::string compiler = QUERN_CROSS_COMPILER " --target=aarch64-linux-gnu -fuse-ld=lld -static";
  std::string folder = (fs::temp_directory_path() / "quern-cross-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/trial.c") << "int main(void) { return 0; }\n";
  if (!Runs(absl::StrCat(compiler, " ", folder, "/trial.c -o ", folder, "/trial 2> /dev/null && qemu-aarch64 ", folder,
                         "/trial"))) {
    fs::remove_all(folder);
    GTEST_SKIP() << "no cross linker, C library or qemu-aarch64 here";
  }
  const StatusOr<const cpu::Target*> target = cpu::ResolveTarget("neon");
  ASSERT_TRUE(target.ok()) << target.status();
  const uint64_t one = FromEnvironment("QUERN_RANDOM_SEED", 0);
  const uint64_t count = kGraphs * FromEnvironment("QUERN_LONG_TESTS", 1);
  std::vector<uint64_t> seeds;
  for (uint64_t i = 0; i < Products(); ++i) {
    if (Tries(i)) seeds.push_back(i);
  }
  const size_t products = seeds.size();
  for (uint64_t i = 0; i < count; ++i) seeds.push_back(kFirst + i);
  if (one != 0) seeds = {one};
  std::vector<std::unique_ptr<Case>> cases;
  std::ofstream table(folder + "/table.c");
  table << "#include <stdint.h>\ntypedef struct row { void *bytes, *init, *step; } row;\n";
  std::string rows;
  std::set<std::string> tiles;
  {
    Data data(folder + "/data");
    for (const uint64_t seed : seeds) {
      Case& test = *cases.emplace_back(std::make_unique<Case>());
      const Status made = MakeCase(seed, **target, test);
      ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made;
      const StatusOr<aot::Artefacts> files = aot::Compile(test.model, {});
      ASSERT_TRUE(files.ok()) << "seed " << seed << ": " << files.status();
      const std::string& name = test.model.name;
      std::ofstream(absl::StrCat(folder, "/", name, ".o"), std::ios::binary) << files->body;
      for (size_t at = 0; (at = files->manifest.find("\"qk_", at)) != std::string::npos; ++at) {
        tiles.insert(files->manifest.substr(at + 1, files->manifest.find('"', at + 1) - at - 1));
      }
      table << "extern char " << name << "_workspace_bytes[], " << name << "_init[], " << name << "_step[];\n";
      absl::StrAppend(&rows, "  {", name, "_workspace_bytes, ", name, "_init, ", name, "_step},\n");
      Write(test, data);
      if (one != 0) std::printf("%s%s", ir::Print(test.meaning).c_str(), lir::Print(test.compiled.plan).c_str());
    }
  }
  table << "const row rows[] = {\n" << rows << "};\nconst int64_t row_count = " << seeds.size() << ";\n" << std::flush;
  ASSERT_TRUE(Runs(
      absl::StrCat(compiler, " -O1 -I" QUERN_SOURCE_DIR "/include " QUERN_SOURCE_DIR "/tests/unit/aot/cross_program.c ",
                   folder, "/table.c ", folder, "/g*.o -lm -o ", folder, "/program")));
  for (const char* order : {"alone", "backwards"}) {
    ASSERT_TRUE(
        Runs(absl::StrCat("qemu-aarch64 ", folder, "/program ", folder, "/data ", folder, "/", order, " ", order)))
        << order;
  }
  const std::vector<uint8_t> alone = ReadFile(folder + "/alone"), backwards = ReadFile(folder + "/backwards");
  size_t at = 0;
  int64_t elements = 0, doubted = 0;
  for (const std::unique_ptr<Case>& test : cases) {
    const std::string where = absl::StrCat("seed ", test->seed, test->exact ? ", exact" : "", ": ");
    const size_t start = at;
    int64_t code = -1;
    ASSERT_LE(at + sizeof(code), alone.size()) << where;
    std::memcpy(&code, alone.data() + at, sizeof(code));
    at += sizeof(code);
    ASSERT_EQ(code, 0) << where;
    const std::vector<std::vector<uint8_t>> results = Read(*test, alone, at);
    ASSERT_LE(at, alone.size()) << where;
    EXPECT_TRUE(at <= backwards.size() &&
                std::equal(alone.begin() + static_cast<int64_t>(start), alone.begin() + static_cast<int64_t>(at),
                           backwards.begin() + static_cast<int64_t>(start)))
        << where << "other bits backwards";
    for (size_t o = 0; o < results.size(); ++o) {
      const ir::RefTensor& expected = test->oracle->expected()[o];
      const auto got = ir::RefTensorFromBytes(expected.dtype, expected.dims, results[o]);
      ASSERT_TRUE(got.ok()) << where << got.status();
      EXPECT_EQ(test->oracle->WorstText(static_cast<int>(o), *got), "") << where << "output " << o << "\n"
                                                                        << ir::Print(test->random.graph);
      elements += expected.elements();
    }
    doubted += test->oracle->doubted();
  }
  for (const simd::Function& function : simd::Functions()) {
    // Pairs, of bf16 and of panels, sums of bf16, and a few rows by panels are what kernels and dots take where the
    // level has them, which this one has not.
    const std::string name(function.name);
    const bool elsewhere = name.find("_pair") != std::string::npos || name.find("_parts") != std::string::npos ||
                           name.starts_with("qk_few_");
    if (one == 0 && !function.is_inline && !elsewhere)
      EXPECT_TRUE(tiles.contains(absl::StrCat(std::string(function.name), "_neon")))
          << function.name << " was never called";
  }
  std::printf("%d graphs from seed %d, %d products, %d elements (%d beside a jump), %d tiles\n",
              static_cast<int>(count), static_cast<int>(kFirst), static_cast<int>(products), static_cast<int>(elements),
              static_cast<int>(doubted), static_cast<int>(tiles.size()));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace quern::testing
