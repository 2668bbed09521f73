#include "codegen/cpu/target.h"

#include "absl/strings/str_split.h"
#include "base/cpu_features.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

TEST(Target, NamesAndAliases) {
  for (const auto& [name, level] : {std::pair("sse4", "sse4"),
                                    {"x86-64-v2", "sse4"},
                                    {"x86-64-v3", "avx2"},
                                    {"x86-64-v4", "avx512"},
                                    {"avx512vnni", "avx512vnni"}}) {
    auto target = ResolveTarget(name);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_STREQ((*target)->name, level);
  }
  EXPECT_EQ(ResolveTarget("mmx").status().message(),
            "unknown cpu level \"mmx\"; known: native, sse4 or x86-64-v2, avx2 or x86-64-v3, avx512 or x86-64-v4, "
            "avx512vnni, amx, "
            "neon or armv8-a");
  EXPECT_FALSE(ResolveTarget("").ok());
}

// The code generator's view of the machine and src/simd's must be the same, or code would be linked that cannot run.
TEST(Target, AgreesWithTheSimdLevels) {
  ASSERT_EQ(Targets().size(), simd::Levels().size());
  for (const Target& target : Targets()) {
    const simd::Level* level = simd::FindLevel(target.name);
    ASSERT_NE(level, nullptr) << target.name;
    EXPECT_EQ(level->vector_bytes, 4 * target.lanes);
    // What the sources of the level are compiled with is among what is asked of the processor.
    const std::vector<std::string> required = absl::StrSplit(target.required, ' ');
    for (const std::string& feature : std::vector<std::string>(
             absl::StrSplit(absl::string_view(level->target_features.data(), level->target_features.size()), ',')))
      if (feature != "") EXPECT_THAT(required, testing::Contains(feature.substr(1))) << target.name;
    EXPECT_EQ(simd::HostSupports(*level), MissingOnHost(target).empty()) << target.name;
    EXPECT_EQ(CheckHost(target).ok(), MissingOnHost(target).empty());
  }
  auto native = ResolveTarget("native");
  ASSERT_TRUE(native.ok()) << native.status();
  EXPECT_EQ(std::string_view((*native)->name), simd::HostLevel().name);
  EXPECT_EQ(*native, HostTargets().back());
}

#if defined(__x86_64__)
// The compiler's run-time asks the processor by code of its own.
TEST(Target, AgreesWithTheCompiler) {
  __builtin_cpu_init();
#define ASKED(name) std::pair(name, __builtin_cpu_supports(name) != 0)
  const std::vector<std::pair<const char*, bool>> known = {ASKED("sse3"),         ASKED("ssse3"),
                                                           ASKED("sse4.1"),       ASKED("sse4.2"),
                                                           ASKED("popcnt"),       ASKED("avx"),
                                                           ASKED("avx2"),         ASKED("fma"),
                                                           ASKED("f16c"),         ASKED("bmi"),
                                                           ASKED("bmi2"),         ASKED("lzcnt"),
                                                           ASKED("movbe"),        ASKED("aes"),
                                                           ASKED("pclmul"),       ASKED("avx512f"),
                                                           ASKED("avx512bw"),     ASKED("avx512cd"),
                                                           ASKED("avx512dq"),     ASKED("avx512vl"),
                                                           ASKED("avx512vnni"),   ASKED("avx512bf16"),
                                                           ASKED("avx512vbmi"),   ASKED("avx512vbmi2"),
                                                           ASKED("avx512bitalg"), ASKED("avx512vpopcntdq"),
                                                           ASKED("gfni"),         ASKED("vaes"),
                                                           ASKED("vpclmulqdq")};
#undef ASKED
  const std::vector<std::string> all = absl::StrSplit(CpuFeaturesOf("amx"), ' ');
  for (const auto& [name, there] : known) {
    EXPECT_THAT(all, testing::Contains(name));
    EXPECT_EQ(MissingCpuFeatures(name).empty(), there) << name;
  }
  EXPECT_EQ(all.size(), known.size() + 4);  // cx16 and the tiles' three it does not know
}
#endif

TEST(Target, PlatformsHaveLevelsOfTheirOwn) {
  const StatusOr<const Platform*> host = ResolvePlatform(""), arm = ResolvePlatform("aarch64-linux-gnu");
  ASSERT_TRUE(host.ok()) << host.status();
  ASSERT_TRUE(arm.ok()) << arm.status();
  EXPECT_STREQ((*ResolveTarget("armv8-a", **arm))->name, "neon");
  EXPECT_STREQ(LeastTarget(**arm)->name, "neon");
  EXPECT_EQ(ResolvePlatform("mips").status().message(),
            "unknown target \"mips\"; known: x86_64-linux-gnu, aarch64-linux-gnu");
  EXPECT_EQ(ResolveTarget("avx2", **arm).status().message(),
            "unknown cpu level \"avx2\" of aarch64-linux-gnu; known: neon or armv8-a");
  if (*host == *arm) GTEST_SKIP() << "this machine is one";
  EXPECT_FALSE(ResolveTarget("native", **arm).ok());
  EXPECT_TRUE(ResolveTarget("native", **host).ok());
  EXPECT_FALSE(ResolveTarget("neon", **host).ok());
  EXPECT_EQ(CheckHost(**ResolveTarget("neon")).message(),
            "cpu level neon cannot run on this machine: it lacks an aarch64 processor");
}

TEST(Target, NamesTheMissingFeatures) {
  Target target = Targets()[0];
  target.name = "sse9";
  target.required = "sse4.2 no-such-feature another";
  EXPECT_THAT(MissingOnHost(target), testing::ElementsAre("no-such-feature", "another"));
  EXPECT_EQ(CheckHost(target).message(),
            "cpu level sse9 cannot run on this machine: it lacks no-such-feature, another");
}

}  // namespace
}  // namespace quern::cpu
