// The files of a reproduction: what is written is read back, and what is damaged is a sentence.
#include "check/reproduction.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "check/run_command.h"
#include "import/safetensors.h"
#include "unit/check/watched_graph.h"

namespace quern::testing {
namespace {

using check::Reproduction;

constexpr std::string_view kText = R"(graph layers.0/up sym SEQ in 1..40 {
  %0 = Input() {name = "x"} : f32[SEQ, 32]
  %1 = Param() {name = "w"} : q8_0[3, 32]
  %2 = Input() {name = "q"} : q8_0[SEQ, 32]
  %3 = MatMul(%2, %1) {transpose_b = true} : f32[SEQ, 3]  @"layers.0/up"
  %4 = Exp(%0) : f32[SEQ, 32]
  return %3, %4
}
)";

Reproduction Example() {
  Reproduction made;
  made.graph = *ir::Parse(kText);
  made.sizes = {{"SEQ", 2}};
  made.bytes["x"].resize(2 * 32 * 4, 1);
  made.bytes["w"].resize(3 * 34, 2);
  made.bytes["q"].resize(2 * kir::LayoutRowBytes(kir::Layout::kPlanar, DType::kQ8_0, 32), 3);
  made.kind = check::Kind::kNan;
  made.settings = {"avx2", 3, false, false, true, true};
  made.notes = {"a note\nof two lines"};
  return made;
}

TEST(Reproduction, ComesBack) {
  const std::string path = FreshFolder("write") + "/a.b.qir";
  const Reproduction made = Example();
  ASSERT_TRUE(check::Write(made, path).ok());
  const StatusOr<Reproduction> read = check::Read(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(ir::SameGraph(read->graph, made.graph));
  EXPECT_EQ(read->sizes, made.sizes);
  EXPECT_EQ(read->bytes, made.bytes);
  EXPECT_EQ(read->kind, made.kind);
  EXPECT_EQ(read->settings.cpu, "avx2");
  EXPECT_EQ(read->settings.threads, 3);
  EXPECT_FALSE(read->settings.passes);
  EXPECT_FALSE(read->settings.fuse);
  EXPECT_TRUE(read->settings.exact);
  EXPECT_TRUE(read->settings.specialise);
}

// What Read says of a text and data that were changed.
std::string Says(const std::string& text, const std::string& data) {
  const std::string folder = FreshFolder("damaged");
  std::ofstream(folder + "/a.qir", std::ios::binary) << text;
  std::ofstream(folder + "/a.safetensors", std::ios::binary) << data;
  const StatusOr<Reproduction> read = check::Read(folder + "/a.qir");
  if (read.ok()) return "";
  const std::string message(read.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 400u) << message;
  return message;
}

TEST(Reproduction, DamageIsASentence) {
  const Reproduction made = Example();
  const std::string text = check::PrintText(made, "a.qir", "a.safetensors"), data = *check::PrintData(made);
  EXPECT_EQ(Says(text, data), "");
  const auto changed = [&](const char* from, const char* to) { return absl::StrReplaceAll(text, {{from, to}}); };
  EXPECT_NE(Says(changed("SEQ=2", "SEQ=0"), data).find("SEQ=0 is outside of 1..40"), std::string::npos);
  EXPECT_NE(Says(changed("SEQ=2", "SEQ=x"), data).find("x is no size"), std::string::npos);
  EXPECT_NE(Says(changed("SEQ=2", "SEQ=99999999999999999999"), data).find("no size"), std::string::npos);
  EXPECT_NE(Says(changed("# sizes: SEQ=2\n", ""), data).find("has no SEQ"), std::string::npos);
  EXPECT_NE(Says(changed("threads=3", "threads=0"), data).find("threads is a number"), std::string::npos);
  EXPECT_NE(Says(changed("fuse=off", "fuse=maybe"), data).find("fuse is on or off"), std::string::npos);
  EXPECT_NE(Says(changed("fuse=off", "fusion=off"), data).find("there is no option fusion"), std::string::npos);
  EXPECT_NE(Says(changed("check: nan", "check: all"), data).find("there are ref and nan"), std::string::npos);
  EXPECT_NE(Says(changed("data: a.safetensors", "data: ../a.safetensors"), data).find("lies beside"),
            std::string::npos);
  EXPECT_NE(Says(changed("data: a.safetensors", "data: b.safetensors"), data).find("b.safetensors"), std::string::npos);
  EXPECT_NE(Says(changed("# data: a.safetensors\n", ""), data).find("the data has no x"), std::string::npos);
  EXPECT_NE(Says(changed("f32[SEQ, 32]", "f32[SEQ, 33]"), data).find("33"), std::string::npos);
  EXPECT_NE(Says(changed("f32[SEQ, 32]", "f32[SEQ, 99999999999]"), data).find("elements"), std::string::npos);
  EXPECT_NE(Says(text, ""), "");
  EXPECT_NE(Says("", data), "");
  for (size_t cut = 0; cut < data.size(); cut += cut < 64 ? 1 : 37)
    EXPECT_NE(Says(text, data.substr(0, cut)), "") << cut;
  for (size_t cut = 0; cut + 3 < text.size(); cut += 7) Says(text.substr(0, cut), data);
  // A length, names and offsets that lie, up to all ones.
  const size_t header = 8 + static_cast<uint8_t>(data[0]);
  for (size_t at = 0; at < header; ++at) {
    for (const char value : {'\0', '\x7F', '\xFF'}) {
      std::string lie = data;
      if (lie[at] == value || lie[at] == ' ') continue;
      lie[at] = value;
      EXPECT_NE(Says(text, lie), "") << at;
    }
  }
}

TEST(Reproduction, RowsAreWholeBlocks) {
  const std::string says =
      Says(R"(# data: a.safetensors
graph g {
  %0 = Param() {name = "w"} : q5_K[2, 32]
  %1 = Input() {name = "x"} : f32[2]
  return %1
}
)",
           PrintSafetensors({{"w", {DType::kU8, {0}, {}}}, {"x", {DType::kF32, {2}, std::vector<uint8_t>(8)}}}));
  EXPECT_NE(says.find("the rows of q5_K[2, 32] are not whole blocks of 256 elements"), std::string::npos) << says;
}

TEST(Reproduction, TensorsAreThoseOfTheGraph) {
  const Reproduction made = Example();
  const std::string text = check::PrintText(made, "a.qir", "a.safetensors");
  const std::string file = *check::PrintData(made);
  const FileTensors good = *ParseSafetensors({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  EXPECT_EQ(good.at("w").dtype, DType::kU8);
  EXPECT_EQ(good.at("w").shape, (std::vector<int64_t>{3, 34}));
  EXPECT_EQ(good.at("x").shape, (std::vector<int64_t>{2, 32}));
  const auto says = [&](const std::string& name, const FileTensor& tensor) {
    FileTensors changed = good;
    changed[name] = tensor;
    return Says(text, PrintSafetensors(changed));
  };
  EXPECT_EQ(says("x", good.at("x")), "");
  EXPECT_NE(says("z", good.at("x")).find("z, which is no input or parameter"), std::string::npos);
  EXPECT_NE(says("x", {DType::kF32, {32, 2}, good.at("x").bytes}).find("[32, 2]"), std::string::npos);
  EXPECT_NE(says("x", {DType::kI32, {2, 32}, good.at("x").bytes}).find("i32"), std::string::npos);
  EXPECT_NE(says("w", {DType::kU8, {101}, std::vector<uint8_t>(101)}), "");
  EXPECT_NE(says("w", {DType::kF32, {3, 32}, std::vector<uint8_t>(384)}).find("q8_0"), std::string::npos);
  // A name that no such file can have is not written under another one.
  Reproduction named = made;
  named.graph = *ir::Parse(R"(graph g {
  %0 = Input() {name = "__metadata__"} : f32[1]
  return %0
})");
  named.bytes = {{"__metadata__", std::vector<uint8_t>(4)}};
  EXPECT_FALSE(check::PrintData(named).ok());
}

TEST(Reproduction, RandomDamageNeverEndsTheProgram) {
  const Reproduction made = Example();
  const std::string text = check::PrintText(made, "a.qir", "a.safetensors"), data = *check::PrintData(made);
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  for (int i = 0; i < 300; ++i) {
    std::string bad_text = text, bad_data = data;
    std::string& bad = i % 2 == 0 ? bad_text : bad_data;
    for (uint64_t changes = 1 + random() % 4; changes-- > 0;) bad[random() % bad.size()] = static_cast<char>(random());
    Says(bad_text, bad_data);
  }
}

TEST(RunCommand, SaysHowItEnded) {
  EXPECT_EQ(check::RunCommand("exit 0", 10)->status, 0);
  EXPECT_EQ(check::RunCommand("exit 3", 10)->status, 3);
  const std::string said = FreshFolder("said") + "/said";
  EXPECT_EQ(check::RunCommand("echo found it; exit 1", 10, said)->said, "found it\n");
  EXPECT_EQ(check::Text(*check::RunCommand("echo found it; exit 1", 10, said), 10), "found it");
  EXPECT_EQ(check::RunCommand("echo lost", 10)->said, "");
  EXPECT_EQ(check::RunCommand("kill -SEGV $$", 10)->status, 128 + 11);
  const auto hung = check::RunCommand("sleep 30 & wait", 0.2);
  EXPECT_TRUE(hung->timed_out);
  EXPECT_EQ(check::WithPath("a {} b {}", "it's"), "a 'it'\\''s' b 'it'\\''s'");
  EXPECT_EQ(check::RunCommand(check::WithPath("test {} = \"it's\"", "it's"), 10)->status, 0);
}

}  // namespace
}  // namespace quern::testing
