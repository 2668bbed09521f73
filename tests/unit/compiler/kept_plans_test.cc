// A start whose plans are in the cache plans nothing and computes the same bits; whatever is not exactly what was kept
// is planned anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cache/object_store.h"
#include "quern/cache.h"
#include "quern/profile.h"
#include "quern/text.h"
#include "support/temp_folder.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class KeptPlansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache = place_.path();
    options_.threads = 1;
    options_.log = [this](std::string_view line) { log_ += std::string(line) + "\n"; };
  }

  // Rows by a weight with a bias, then a softmax.
  static std::string Text(const std::string& bias = "0000003f", const std::string& name = "g") {
    return "graph " + name + R"( sym S in 1.. {
  %0 = Input() {name = "x"} : f32[S, 7]
  %1 = Param() {name = "w"} : f32[7, 5]
  %2 = Exp(%1) : f32[7, 5]
  %3 = MatMul(%0, %2) : f32[S, 5]
  %4 = Constant() hex )" +
           bias + R"( : f32[]
  %5 = Add(%3, %4) : f32[S, 5]
  %6 = Softmax(%5) {axis = -1} : f32[S, 5]
  return %6
}
)";
  }
  TextGraph Read(const std::string& text, int64_t rows) const {
    const std::string path = files_.path() + "/g.qir";
    std::ofstream(path) << text;
    auto read = TextGraph::Open(path, {.sizes = {{"S", rows}}});
    EXPECT_TRUE(read.ok()) << read.error();
    return std::move(*read);
  }

  // What the program answers for so many rows, and `log_`, what was compiled or found.
  std::string Answer(const std::string& text, int64_t rows, const Options& options) {
    log_.clear();
    TextGraph read = Read(text, rows);
    auto program = read.Compile(options);
    EXPECT_TRUE(program.ok()) << program.error();
    if (!program.ok()) return "";
    log_.clear();  // of the smallest size, which is planned when the graph is compiled
    const auto ran = read.Run(*program);
    EXPECT_TRUE(ran.ok()) << ran.error();
    return read.Outputs();
  }
  std::string Answer(const std::string& text, int64_t rows) { return Answer(text, rows, options_); }

  const testing::TempFolder files_;
  const testing::TempFolder place_;
  Options options_;
  std::string log_;
};

TEST_F(KeptPlansTest, ASecondStartFindsThemAndComputesTheSame) {
  for (const int64_t rows : {5, 131}) {
    const std::string first = Answer(Text(), rows);
    EXPECT_THAT(log_, StartsWith("compiled the variant for ")) << rows;
    const std::string second = Answer(Text(), rows);
    EXPECT_THAT(log_, StartsWith("found the plan of the variant for ")) << rows;
    EXPECT_THAT(log_, ::testing::Not(HasSubstr("compiled")));
    EXPECT_EQ(first, second);
    Options none = options_;
    none.cache = "off";
    EXPECT_EQ(Answer(Text(), rows, none), second);
    EXPECT_THAT(log_, StartsWith("compiled"));
  }
}

TEST_F(KeptPlansTest, AnotherGraphOrOptionPlansAnew) {
  Answer(Text(), 5);
  Answer(Text("0000803e"), 5);
  EXPECT_THAT(log_, StartsWith("compiled")) << "another constant";
  Answer(Text("0000003f", "h"), 5);
  EXPECT_THAT(log_, StartsWith("compiled")) << "another name, which errors say";
  std::string labelled = Text();
  labelled.insert(labelled.find("\n  %6"), "  @\"biased\"");
  Answer(labelled, 5);
  EXPECT_THAT(log_, StartsWith("compiled")) << "a label, which functions and profiles are called after";
  for (const auto change : std::initializer_list<void (*)(Options&)>{
           [](Options& o) { o.cpu = "sse4"; }, [](Options& o) { o.exact = true; },
           [](Options& o) { o.invariant = true; }, [](Options& o) { o.kernels = "common"; }}) {
    Options other = options_;
    change(other);
    Answer(Text(), 5, other);
    EXPECT_THAT(log_, StartsWith("compiled"));
    Answer(Text(), 5, other);
    EXPECT_THAT(log_, StartsWith("found"));
  }
  Answer(Text(), 5);
  EXPECT_THAT(log_, StartsWith("found"));
}

TEST_F(KeptPlansTest, WithoutTheCodeOfAKernelThePlanIsMadeAnew) {
  const std::string expected = Answer(Text(), 5);
  auto store = cache::ObjectStore::Open(place_.path(), cache::kDefaultLimit);
  ASSERT_TRUE(store.ok());
  int kernels = 0;
  const auto is_kernel = [&](const cache::StoredFile& file) {
    return file.entry.ok() && !cache::IsPlan(file.entry->key) && ++kernels == 1;
  };
  EXPECT_EQ((*store)->RemoveIf(is_kernel).files, 1);
  EXPECT_EQ(Answer(Text(), 5), expected);
  EXPECT_THAT(log_, StartsWith("compiled"));
  Answer(Text(), 5);
  EXPECT_THAT(log_, StartsWith("found"));
}

TEST_F(KeptPlansTest, ADamagedPlanIsAsGoodAsNone) {
  const std::string expected = Answer(Text(), 5);
  for (const auto& file : std::filesystem::directory_iterator(place_.path())) {
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file.path()) / 2));
    bytes.put('\x5a').put('\x5a');
  }
  EXPECT_EQ(Answer(Text(), 5), expected);
  EXPECT_THAT(log_, StartsWith("compiled"));
}

TEST_F(KeptPlansTest, ProfilesAndChecksLookIntoKernels) {
  Answer(Text(), 5);
  TextGraph read = Read(Text(), 5);
  auto program = read.Compile(options_);
  ASSERT_TRUE(program.ok()) << program.error();
  log_.clear();
  ASSERT_TRUE(read.Run(*program).ok());
  EXPECT_THAT(log_, ::testing::Not(HasSubstr("compiled")));
  const std::string found = read.Outputs();
  log_.clear();
  auto profiler = Profiler::Attach(*program);
  ASSERT_TRUE(profiler.ok()) << profiler.error();
  ASSERT_TRUE(read.Run(*program).ok());
  EXPECT_THAT(log_, StartsWith("compiled"));
  EXPECT_EQ(read.Outputs(), found);
  const auto table = profiler->Table();
  ASSERT_TRUE(table.ok()) << table.error();
  EXPECT_THAT(*table, HasSubstr("MatMul"));

  Options checked = options_;
  checked.check = "ref";
  checked.check_folder = "";
  EXPECT_EQ(Answer(Text(), 5, checked), Answer(Text(), 5));
}

TEST_F(KeptPlansTest, SizesAreCheckedAsBefore) {
  for (int start = 0; start < 2; ++start) {
    TextGraph read = Read(R"(graph g sym S in 1..64, T in 1..64 {
  %0 = Input() {name = "x"} : f32[S]
  %1 = Input() {name = "y"} : f32[T]
  %2 = Add(%0, %1) : f32[S]
  return %2
}
)",
                          6);
    auto program = read.Compile(options_);
    ASSERT_TRUE(program.ok()) << program.error();
    const auto ran = read.Run(*program);  // T is 8
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.details().code, ErrorCode::kSizeConflict) << ran.error();
    EXPECT_THAT(ran.error(), HasSubstr("S == T"));
  }
}

TEST_F(KeptPlansTest, TheCacheListsThem) {
  Answer(Text(), 5);
  const auto listed = ListCache(options_);
  ASSERT_TRUE(listed.ok());
  EXPECT_THAT(*listed, HasSubstr("plan: program"));
  EXPECT_THAT(*listed, HasSubstr("plan: variant "));
  const auto verified = VerifyCache(options_);
  ASSERT_TRUE(verified.ok()) << verified.error();
  EXPECT_THAT(*verified, HasSubstr(" 0 of other builds or levels and "));
}

}  // namespace
}  // namespace quern
