// Checks through the public interface: programs that are checked while they run, files that are replayed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "check/draw.h"
#include "check/reproduction.h"
#include "quern/check.h"
#include "quern/graph.h"

namespace quern::testing {
namespace {

namespace fs = std::filesystem;

std::string Folder(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("quern_public_check_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

Result<Program> Compile(const std::string& check, const std::string& folder) {
  Graph g("entropy");
  g.Symbol("N", 1, 64);
  const Value x = g.Input("x", "f32[N, 5]");
  g.Output("y", g.Op("Log", {g.Op("Add", {x, g.Scalar(1)}, {}, "shifted")}, {}, "log"));
  return g.Compile({.threads = 1, .check = check, .check_folder = folder});
}

TEST(PublicCheck, EndsARunThatMakesANan) {
  const std::string folder = Folder("nan");
  Result<Program> program = Compile("nan", folder);
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> x(15, 2), y(15);
  EXPECT_TRUE(program->Run({In("x", x, {3, 5})}, {Out("y", y, {3, 5})}).ok());
  EXPECT_EQ(program->CheckSummary(), "checked 1 regions, 15 elements: no NaN or inf was made");
  x[7] = -4;
  const Result<void> ran = program->Run({In("x", x, {3, 5})}, {Out("y", y, {3, 5})});
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.code(), ErrorCode::kCheck);
  EXPECT_EQ(ran.error().find("Log of log makes a NaN: f32[3, 5] at [1, 2] is nan"), 0u) << ran.error();
  const std::string path = folder + "/check-log-Log.qir";
  ASSERT_TRUE(fs::exists(path)) << ran.error();
  Result<Replayed> again = Replay(path, {});
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_FALSE(again->passed);
  EXPECT_EQ(again->text.find("Log of log makes a NaN"), 0u) << again->text;
  // The program is as good as before.
  x[7] = 1;
  EXPECT_TRUE(program->Run({In("x", x, {3, 5})}, {Out("y", y, {3, 5})}).ok());
}

TEST(PublicCheck, HoldsARunToTheInterpreter) {
  Result<Program> program = Compile("ref", "");
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> x(15, 2), y(15);
  ASSERT_TRUE(program->Run({In("x", x, {3, 5})}, {Out("y", y, {3, 5})}).ok());
  EXPECT_NEAR(y[3], std::log(3.0f), 1e-6);
  EXPECT_NE(program->CheckSummary().find("all inside their contracts"), std::string::npos);
  EXPECT_EQ(Compile("", "")->CheckSummary(), "");
  EXPECT_EQ(Compile("all", "").code(), ErrorCode::kInvalid);
}

std::string Written(const std::string& folder, const std::string& text, const check::Bytes& bytes) {
  const std::string path = folder + "/a.qir";
  std::ofstream(path, std::ios::binary) << text;
  std::string data;
  StatusOr<check::Reproduction> made = check::ParseText(text, &data);
  EXPECT_TRUE(made.ok()) << made.status();
  made->bytes = bytes;
  std::ofstream(folder + "/a.safetensors", std::ios::binary) << *check::PrintData(*made);
  return path;
}

constexpr char kRegion[] = R"(# options: cpu=native passes=none
# sizes: S=3
# data: a.safetensors
graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 7]
  %1 = Region(%0) {family = "map"} : f32[S, 7] body graph body sym S in 1..40 {
    %0 = Input() {name = "i0"} : f32[S, 7]
    %1 = Exp(%0) : f32[S, 7]
    %2 = Neg(%1) : f32[S, 7]
    return %2
  }
  return %1
})";

TEST(PublicReplay, TakesAGraphOfRegionsAsItIs) {
  const check::Bytes bytes = {{"x", std::vector<uint8_t>(84)}};
  const std::string path = Written(Folder("region"), kRegion, bytes);
  Result<Replayed> ran = Replay(path, {});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(ran->text, "ok: 1 output of 1 kernels");
}

TEST(PublicReplay, ReplacesALevelThatIsNotHere) {
  const check::Bytes bytes = {{"x", std::vector<uint8_t>(84)}};
  const std::string path = Written(Folder("level"), absl::StrReplaceAll(kRegion, {{"cpu=native", "cpu=z80"}}), bytes);
  Result<Replayed> ran = Replay(path, {});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_TRUE(ran->passed);
  EXPECT_NE(ran->text.find("cpu=z80 of the file is not to be had here"), std::string::npos) << ran->text;
  EXPECT_FALSE(Replay(path, {.cpu = "z80"}).ok());
}

// Sizes that the run finds are none that the file gives.
TEST(PublicReplay, FindsSizes) {
  constexpr char kText[] = R"(# check: ref
# options: cpu=native
# sizes: S=5
# data: a.safetensors
graph g sym N in 0.., S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 3]
  %1 = Input() {name = "c"} : bool[S]
  %2:2 = Compress(%0, %1) {axis = 0} : f32[S, 3], i64[]
  %3 = Counted(%2.0, %2.1) {axis = 0, size = <N>} : f32[N, 3]
  %4 = Exp(%3) : f32[N, 3]
  return %4, %0
})";
  for (const std::vector<uint8_t>& chosen : {std::vector<uint8_t>{0, 1, 1, 0, 1}, std::vector<uint8_t>(5)}) {
    const check::Bytes bytes = {{"x", std::vector<uint8_t>(60)}, {"c", chosen}};
    Result<Replayed> ran = Replay(Written(Folder("found"), kText, bytes), {});
    ASSERT_TRUE(ran.ok()) << ran.error();
    EXPECT_TRUE(ran->passed) << ran->text;
  }
}

// What a map means is its pairs: beside the floats of the graph a range that cuts values off would be a fault.
TEST(PublicReplay, OfAGraphWithAQuantisationMap) {
  constexpr char kText[] = R"(# check: ref
# options: cpu=native
# sizes: S=5
# data: a.safetensors
graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 33]
  %1 = Param() {name = "w"} : f32[33, 7]
  %2 = MatMul(%0, %1) : f32[S, 7]
  return %2
  quantise "x" {dtype = u8, high = 0.25, low = -0.25}
  quantise "w" {axis = 1, dtype = i8, symmetric = true}
})";
  std::string data;
  const StatusOr<check::Reproduction> made = check::ParseText(kText, &data);
  ASSERT_TRUE(made.ok()) << made.status();
  const StatusOr<check::Bytes> bytes = check::DrawBytes(made->graph, made->sizes, 1);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const std::string folder = Folder("mapped"), path = Written(folder, kText, *bytes);
  Result<Replayed> ran = Replay(path, {});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_TRUE(ran->passed) << ran->text;
  // Parts of it are of the pairs, too.
  const std::string smaller = folder + "/smaller.qir";
  const Result<std::string> reduced = Reduce(path, {.output = smaller, .command = "! grep -q QuantizeLinear {}"});
  ASSERT_TRUE(reduced.ok()) << reduced.error();
  std::stringstream text;
  text << std::ifstream(smaller).rdbuf();
  EXPECT_NE(text.str().find("QuantizeLinear"), std::string::npos);
  EXPECT_EQ(text.str().find("MatMul"), std::string::npos) << text.str();
}

// Texts that may still be graphs, compiled and run: an answer or a sentence.
TEST(PublicReplay, DamagedFilesGiveAnAnswerOrASentence) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  const std::string folder = Folder("damaged");
  int refused = 0, tries = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(QUERN_SOURCE_DIR) / "tests/repro")) {
    if (entry.path().extension() != ".qir") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    fs::path data = entry.path();
    fs::copy_file(data.replace_extension(".safetensors"), fs::path(folder) / data.filename(),
                  fs::copy_options::overwrite_existing);
    for (int i = 0; i < 60; ++i, ++tries) {
      std::string bad = text;
      // Digits and names are what still parses when it is changed.
      for (int changes = 0; changes < 1 + i % 2;) {
        char& c = bad[bad.find("graph") + random() % (bad.size() - bad.find("graph"))];
        if (std::isdigit(static_cast<unsigned char>(c)))
          c = static_cast<char>('0' + random() % 10), ++changes;
        else if (i % 5 == 0)
          c = static_cast<char>(random()), ++changes;
      }
      const std::string path = folder + "/bad.qir";
      std::ofstream(path, std::ios::binary) << bad;
      Result<Replayed> ran = Replay(path, {});
      refused += !ran.ok();
      if (!ran.ok()) EXPECT_EQ(ran.error().find('\n'), std::string::npos) << ran.error();
      if (ran.ok()) EXPECT_TRUE(ran->passed) << ran->text << "\n" << bad;
    }
  }
  EXPECT_GT(refused, tries / 4);
  EXPECT_LT(refused, tries);
}

}  // namespace
}  // namespace quern::testing
