// The table of compiled functions, and what their objects and bitcode may contain.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "simd/library.h"
#include "simd_build.inc"  // kNm, kLevelFiles: where the build put each level's objects and bitcode

namespace quern::simd {
namespace {

TEST(LibraryTest, LevelsGrow) {
  ASSERT_FALSE(Levels().empty());
  for (size_t i = 1; i < Levels().size(); ++i) {
    EXPECT_LE(Levels()[i].has_objects, Levels()[i - 1].has_objects) << "levels of this architecture come first";
    if (Levels()[i].has_objects) EXPECT_LE(Levels()[i - 1].vector_bytes, Levels()[i].vector_bytes);
  }
  for (const Level& level : Levels()) EXPECT_EQ(FindLevel(level.name), &level);
  EXPECT_EQ(FindLevel("mmx"), nullptr);
  EXPECT_TRUE(HostSupports(Levels()[0]));
  EXPECT_TRUE(HostSupports(HostLevel()));
  for (const Level& level : Levels()) EXPECT_TRUE(level.has_objects || !HostSupports(level)) << level.name;
}

// The levels of another architecture have bitcode alone.
TEST(LibraryTest, EveryNameHasAnAddressOfItsOwn) {
  std::set<const void*> addresses;
  for (const Level& level : Levels()) {
    for (const Function& function : Functions()) {
      const std::string symbol = std::string(function.name) + "_" + std::string(level.name);
      EXPECT_TRUE(Exists(symbol)) << symbol;
      const void* address = FindTile(symbol);
      ASSERT_EQ(address != nullptr, level.has_objects) << symbol;
      if (address == nullptr) continue;
      EXPECT_TRUE(addresses.insert(address).second) << function.name << " " << level.name;
    }
  }
  EXPECT_FALSE(addresses.empty());
}

TEST(LibraryTest, UnknownNamesHaveNone) {
  for (const char* name :
       {"", "_", "q_exp_f32", "q_exp_f32_", "q_exp_f32_mmx", "q_exp_f3_avx2", "q_exp_f322_avx2", "_avx2"}) {
    EXPECT_EQ(FindTile(name), nullptr) << name;
    EXPECT_FALSE(Exists(name)) << name;
  }
  EXPECT_TRUE(Bitcode("mmx").empty());
}

TEST(LibraryTest, NamesAreSortedAndUnique) {
  for (size_t i = 1; i < Functions().size(); ++i) EXPECT_LT(Functions()[i - 1].name, Functions()[i].name);
}

TEST(LibraryTest, BitcodeStartsWithItsMagic) {
  for (const Level& level : Levels()) {
    const std::span<const uint8_t> bitcode = Bitcode(level.name);
    ASSERT_GT(bitcode.size(), 4u) << level.name;
    EXPECT_EQ(std::string(bitcode.begin(), bitcode.begin() + 4), "BC\xC0\xDE") << level.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bitcode.data()) % 4, 0u) << level.name;  // LLVM reads words
  }
}

struct Symbols {
  std::set<std::string> defined, weak, undefined;
};

// nm in POSIX format: "name type ..." a line.
Symbols ReadSymbols(const std::string& files) {
  Symbols symbols;
  FILE* pipe = popen((std::string(kNm) + " --format=posix " + files + " 2>&1").c_str(), "r");
  std::string text;
  for (char buffer[4096]; size_t got = std::fread(buffer, 1, sizeof(buffer), pipe);) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, type;
    if (!(words >> name >> type) || type.size() != 1) continue;
    if (type == "U") {
      symbols.undefined.insert(name);
    } else if (std::string("WwVvu").find(type) != std::string::npos) {
      symbols.weak.insert(name);
    } else if (type[0] >= 'A' && type[0] <= 'Z') {
      symbols.defined.insert(name);
    }
  }
  return symbols;
}

// A weak symbol of code compiled for AVX-512 could replace the baseline's at link time and crash lesser machines; an
// undefined one would have to be found by the JIT, as its own exports are. So a level defines these and nothing else.
TEST(LibraryTest, LevelsDefineTheirExportsAndNothingElse) {
  const std::set<std::string> allowed = {"memcpy", "memset"};
  for (const LevelFiles& files : kLevelFiles) {
    std::set<std::string> expected;
    for (const Function& function : Functions()) expected.insert(std::string(function.name) + "_" + files.level);
    for (const char* form : {files.objects, files.bitcode}) {
      if (*form == 0) continue;  // no objects
      const Symbols symbols = ReadSymbols(form);
      EXPECT_EQ(symbols.defined, expected) << form;
      EXPECT_EQ(symbols.weak, std::set<std::string>()) << form;
      for (const std::string& name : symbols.undefined)
        EXPECT_TRUE(allowed.contains(name) || expected.contains(name)) << name << " in " << form;
    }
  }
}

}  // namespace
}  // namespace quern::simd
