// What `quern cache` says of entries that this build did not make, and of objects that are not what compiling gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/object_store.h"
#include "quern/cache.h"
#include "support/temp_folder.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

class CacheReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache = place_.path();
    options_.threads = 1;
    auto session = Session::Open(model_, options_);
    ASSERT_TRUE(session.ok()) << session.error();
    kernels_ = session->timings().kernels_compiled;
    ASSERT_GT(kernels_, 3);
    auto store = cache::ObjectStore::Open(place_.path(), cache::kDefaultLimit);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Every entry, changed, in place of what was there.
  template <typename Change>
  void Rewrite(Change change) {
    const std::vector<cache::StoredFile> files = store_->List();
    store_->RemoveIf([](const cache::StoredFile&) { return true; });
    for (const cache::StoredFile& file : files) {
      ASSERT_TRUE(file.entry.ok());
      cache::Entry entry = *file.entry;
      change(entry);
      ASSERT_TRUE(store_->Insert(entry).ok());
    }
  }
  const testing::TempFolder place_;
  const std::string model_ = std::string(QUERN_SOURCE_DIR) + "/models/addition.gguf";
  Options options_;
  int kernels_ = 0;
  std::unique_ptr<cache::ObjectStore> store_;
};

TEST_F(CacheReportTest, AnotherBuildIsAMissThatIsExplainedAndCollected) {
  Rewrite([](cache::Entry& entry) { entry.key.build = "an older one"; });
  auto again = Session::Open(model_, options_);
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again->timings().kernels_compiled, kernels_);
  EXPECT_EQ(again->timings().kernels_cached, 0);
  ASSERT_TRUE(ClearCache(options_).ok());
  auto third = Session::Open(model_, options_);
  ASSERT_TRUE(third.ok());
  Rewrite([](cache::Entry& entry) { entry.key.build = "an older one"; });
  auto explained = ExplainCache(model_, options_);
  ASSERT_TRUE(explained.ok()) << explained.error();
  EXPECT_THAT(*explained, HasSubstr("the nearest entry differs in build: here \""));
  EXPECT_THAT(*explained, HasSubstr("there \"an older one\"\n"));
  EXPECT_THAT(*explained, ::testing::Not(HasSubstr("  hit ")));
  auto verified = VerifyCache(options_);
  ASSERT_TRUE(verified.ok()) << verified.error();
  EXPECT_THAT(*verified, HasSubstr("0 kernels compiled again"));
  EXPECT_THAT(*verified, HasSubstr(std::to_string(kernels_) + " of other builds or levels and 2 plans not tried"));
  auto collected = CollectCache(options_, int64_t{1} << 30);
  ASSERT_TRUE(collected.ok()) << collected.error();
  EXPECT_THAT(*collected, HasSubstr("removed " + std::to_string(kernels_ + 2) + " files of other builds"));
  EXPECT_TRUE(store_->List().empty());
}

TEST_F(CacheReportTest, VerifyNamesAnObjectThatDiffers) {
  Rewrite([](cache::Entry& entry) {
    if (entry.key.symbol.starts_with("output.")) entry.object.back() ^= 1;
  });
  auto verified = VerifyCache(options_);
  ASSERT_FALSE(verified.ok());
  EXPECT_THAT(verified.error(), HasSubstr("compiling again gives other bytes for output."));
  options_.cache_verify = true;
  auto session = Session::Open(model_, options_);
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.error(), HasSubstr("the cached object of output."));
}

TEST_F(CacheReportTest, WithoutACache) {
  options_.cache = "off";
  for (const auto& result : {ListCache(options_), VerifyCache(options_), CollectCache(options_, 0),
                             ClearCache(options_), ExplainCache(model_, options_)}) {
    EXPECT_FALSE(result.ok());
    EXPECT_THAT(result.error(), HasSubstr("there is no cache"));
  }
}

}  // namespace
}  // namespace quern
