// Kernels kept between processes: what is in the store is linked and not compiled, gives the same bits, and anything
// wrong with it costs a compile and nothing else.
#include "runtime/kernel_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temp_folder.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* file : {"rms_norm_q8", "down_residual"}) {
      std::ifstream stream(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + file + ".kir");
      std::stringstream text;
      text << stream.rdbuf();
      StatusOr<kir::Kernel> kernel = kir::ParseKernel(text.str());
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      kernel->origins = {"layers.0/ffn: Mul"};
      kernels_.push_back(*std::move(kernel));
      symbols_.push_back(std::string("layers.0.") + file);
    }
  }
  std::shared_ptr<const cache::ObjectStore> Store() {
    auto store = cache::ObjectStore::Open(folder_, cache::kDefaultLimit);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // As another process would, with an engine of its own.
  KernelCache::Report Start(const jit::EngineOptions& options = {}, bool verify = false) {
    StatusOr<std::shared_ptr<jit::Engine>> engine = jit::Engine::Create(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    KernelCache cache(*engine, Store(), verify);
    const auto functions = cache.Get(kernels_, symbols_);
    EXPECT_TRUE(functions.ok()) << functions.status();
    if (functions.ok()) {
      EXPECT_EQ(functions->functions.size(), kernels_.size());
      for (quern_kernel* function : functions->functions) EXPECT_NE(function, nullptr);
    }
    return cache.report();
  }
  const testing::TempFolder place_;
  const std::string folder_ = place_.path();
  std::vector<kir::Kernel> kernels_;
  std::vector<std::string> symbols_;
};

TEST_F(KernelCacheTest, ASecondStartCompilesNothing) {
  const KernelCache::Report cold = Start();
  EXPECT_EQ(cold.compiled, 2);
  EXPECT_EQ(cold.loaded, 0);
  EXPECT_EQ(cold.unstored, 0);
  EXPECT_GT(cold.compile.times.codegen, 0);
  const KernelCache::Report warm = Start();
  EXPECT_EQ(warm.compiled, 0);
  EXPECT_EQ(warm.loaded, 2);
  EXPECT_EQ(warm.compile.code_bytes, cold.compile.code_bytes);
  // No pass of the compiler has run.
  EXPECT_EQ(warm.compile.wall, 0);
  EXPECT_EQ(
      warm.compile.times.emit + warm.compile.times.link + warm.compile.times.optimise + warm.compile.times.codegen, 0);
  EXPECT_GT(warm.load_ns, 0);
}

TEST_F(KernelCacheTest, LoadedKernelsHaveTheSameBytes) {
  Start();
  const KernelCache::Report verified = Start({}, /*verify=*/true);
  EXPECT_EQ(verified.loaded, 2);
  EXPECT_EQ(verified.compiled, 0);
  // The bytes depend on the text alone: not on names, nor on which kernels are compiled beside.
  auto engine = jit::Engine::Create({});
  ASSERT_TRUE(engine.ok());
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const auto entry = Store()->Find((*engine)->KeyOf(kernels_[i], symbols_[i]));
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->origins, kernels_[i].origins);
    const StatusOr<kir::Kernel> parsed = kir::ParseKernel(entry->key.kernel);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const auto module = (*engine)->Compile({&*parsed, 1}, {&symbols_[i], 1});
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->object(0), entry->object);
  }
}

TEST_F(KernelCacheTest, AnotherLevelOrOptionIsAnotherEntry) {
  Start();
  const std::vector<const cpu::Target*> targets = cpu::HostTargets();
  if (targets.size() > 1) EXPECT_EQ(Start({.cpu = targets[0]->name}).compiled, 2) << targets[0]->name;
  EXPECT_EQ(Start({.emit = {.specialise = true}}).compiled, 2);
  EXPECT_EQ(Start({.emit = {.optimise = false}}).compiled, 2);
  EXPECT_EQ(Start().loaded, 2) << "the first are still there";
}

TEST_F(KernelCacheTest, ADamagedEntryIsCompiledAgain) {
  Start();
  for (const auto& at : fs::directory_iterator(folder_)) {
    if (at.path().extension() != ".qo") continue;
    std::fstream file(at.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(300);
    file.put('!');
    break;
  }
  const KernelCache::Report once = Start();
  EXPECT_EQ(once.compiled, 1);
  EXPECT_EQ(once.loaded, 1);
  EXPECT_EQ(Start().loaded, 2);
}

// An entry whose object is not what the key's kernel gives, though its checksum is right.
TEST_F(KernelCacheTest, VerifyFindsAnObjectThatDiffers) {
  auto engine = jit::Engine::Create({});
  ASSERT_TRUE(engine.ok());
  const auto other = (*engine)->Compile({&kernels_[1], 1}, {&symbols_[0], 1});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(Store()->Insert({(*engine)->KeyOf(kernels_[0], symbols_[0]), other->object(0), {}}).ok());
  KernelCache cache(*engine, Store(), /*verify=*/true);
  const auto functions = cache.Get(kernels_, symbols_);
  ASSERT_FALSE(functions.ok());
  EXPECT_NE(functions.status().message().find("layers.0.rms_norm_q8"), std::string::npos) << functions.status();
  EXPECT_FALSE(cache.Get(kernels_, symbols_).ok()) << "nothing half-made is kept";
}

// An object that cannot be linked is no reason to fail.
TEST_F(KernelCacheTest, AnUnlinkableObjectIsCompiledAgain) {
  auto engine = jit::Engine::Create({});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE(Store()->Insert({(*engine)->KeyOf(kernels_[0], symbols_[0]), "not an object", {}}).ok());
  const KernelCache::Report report = Start();
  EXPECT_EQ(report.compiled, 2);
  EXPECT_EQ(report.loaded, 0);
}

TEST_F(KernelCacheTest, KeysSayWhatTheyDependOn) {
  auto engine = jit::Engine::Create({});
  ASSERT_TRUE(engine.ok());
  const cache::CompileKey key = (*engine)->KeyOf(kernels_[0], symbols_[0]);
  for (const cache::KeyField& field : cache::KeyFields()) EXPECT_NE(key.*field.value, "") << field.name;
  EXPECT_EQ(key.build.size(), 32u);
  EXPECT_EQ(key.llvm.substr(0, 3), "19.");
  // Names inside the kernel and where it comes from do not count.
  kir::Kernel renamed = kernels_[0];
  renamed.origins = {"elsewhere"};
  EXPECT_EQ((*engine)->KeyOf(renamed, symbols_[0]), key);
  EXPECT_NE((*engine)->KeyOf(kernels_[1], symbols_[0]).kernel, key.kernel);
}

}  // namespace
}  // namespace quern
