// What debuggers and profilers see of kernels: lines of the printed text, a jitdump, and code that is the same with and
// without.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "jit/line_table.h"
#include "jit_support.h"
#include "support/temp_folder.h"

namespace quern::jit_test {
namespace {

namespace fs = std::filesystem;

constexpr char kText[] = R"(
  kernel scaled_exp (
    x : f32[M, 240] in
    y : f32[M, 240] out
  ) sym M in 1..64 {
    grid m in 0..M {
      let largest = max vec k in 0..240 { x[m, k] }
      vec k in 0..240 {
        y[m, k] = exp(x[m, k] - largest)
      }
    }
  }
)";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof(value), bytes.size());
  if (offset + sizeof(value) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

class DebugTest : public ::testing::Test {
 protected:
  const testing::TempFolder place_;
  const std::string folder_ = place_.path();
};

TEST_F(DebugTest, LinesAreThoseOfThePrintedText) {
  const kir::Kernel kernel = Parse(kText);
  const std::string symbol = "layers.0.scaled_exp";
  auto engine = jit::Engine::Create({.threads = 1, .debug_folder = folder_});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto module = (*engine)->Compile({&kernel, 1}, {&symbol, 1});
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string printed = ReadFile(folder_ + "/" + symbol + ".kir");
  EXPECT_EQ(printed, kir::Print(kernel));
  std::vector<std::string> text(1);  // lines count from 1
  std::stringstream stream(printed);
  for (std::string line; std::getline(stream, line);) text.push_back(line);
  std::set<std::string> seen;
  uint64_t last = 0;
  for (const jit::CodeLine& line : jit::LineTable(module->object(0), symbol)) {
    EXPECT_GE(line.address, last);
    last = line.address;
    ASSERT_LT(line.line, text.size());
    if (line.line > 0) seen.insert(text[line.line]);
  }
  const auto holds = [&](const char* word) {
    for (const std::string& line : seen) {
      if (line.find(word) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(holds("let largest")) << printed;
  EXPECT_TRUE(holds("= exp(")) << printed;
  EXPECT_TRUE(holds("kernel scaled_exp")) << printed;
  EXPECT_FALSE(holds("x : f32")) << "a parameter is no code";
}

// The jitdump holds the bytes that run, and addresses of lines inside them.
TEST_F(DebugTest, JitDump) {
  const kir::Kernel kernel = Parse(kText);
  const std::vector<kir::Kernel> kernels = {kernel, kernel};
  const std::vector<std::string> symbols = {"first", "second"};
  auto engine = jit::Engine::Create({.threads = 2, .debug_folder = folder_});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto module = (*engine)->Compile(kernels, symbols);
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string dump = ReadFile(absl::StrFormat("%s/jit-%d.dump", folder_, getpid()));
  ASSERT_EQ(At<uint32_t>(dump, 0), 0x4A695444u);
  ASSERT_EQ(At<uint32_t>(dump, 4), 1u);
  EXPECT_EQ(At<uint32_t>(dump, 20), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(At<uint64_t>(dump, 32), 0u) << "flags: LLVM's own plugin leaves them uninitialised";
  size_t at = At<uint32_t>(dump, 8);
  std::map<std::string, uint64_t> loaded;
  uint64_t described = 0, time = 0;
  while (at < dump.size()) {
    const auto id = At<uint32_t>(dump, at), size = At<uint32_t>(dump, at + 4);
    ASSERT_GE(size, 16u);
    ASSERT_LE(at + size, dump.size());
    EXPECT_GE(At<uint64_t>(dump, at + 8), time);
    time = At<uint64_t>(dump, at + 8);
    if (id == 2) {
      described = At<uint64_t>(dump, at + 16);
      const auto count = At<uint64_t>(dump, at + 24);
      EXPECT_GT(count, 3u);
      size_t entry = at + 32;
      for (uint64_t i = 0; i < count; ++i) {
        const auto address = At<uint64_t>(dump, entry);
        EXPECT_GE(address, described);
        const std::string source = dump.c_str() + entry + 16;
        EXPECT_TRUE(fs::exists(source)) << source;
        entry += 16 + source.size() + 1;
      }
      EXPECT_EQ(entry, at + size);
    } else {
      ASSERT_EQ(id, 0u);
      const auto address = At<uint64_t>(dump, at + 32), bytes = At<uint64_t>(dump, at + 40);
      EXPECT_EQ(address, described) << "the lines of a function come right before it";
      const std::string symbol = dump.c_str() + at + 56;
      loaded[symbol] = address;
      ASSERT_EQ(56 + symbol.size() + 1 + bytes, size);
      EXPECT_EQ(std::memcmp(dump.data() + at + 56 + symbol.size() + 1, reinterpret_cast<const void*>(address), bytes),
                0);
    }
    at += size;
  }
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded["first"], reinterpret_cast<uint64_t>(module->kernel(0)));
  EXPECT_EQ(loaded["second"], reinterpret_cast<uint64_t>(module->kernel(1)));
}

// Line tables change no instruction.
TEST_F(DebugTest, TheCodeIsTheSame) {
  const kir::Kernel kernel = Parse(kText);
  const std::string symbol = "k";
  auto plain = jit::Engine::Create({.threads = 1, .emit = {.dump_assembly = true}});
  auto debug = jit::Engine::Create({.threads = 1, .emit = {.dump_assembly = true}, .debug_folder = folder_});
  ASSERT_TRUE(plain.ok() && debug.ok());
  const auto instructions = [&](jit::Engine& engine) {
    const auto module = engine.Compile({&kernel, 1}, {&symbol, 1});
    EXPECT_TRUE(module.ok()) << module.status();
    std::stringstream assembly(module->assembly(0));
    std::string text;
    for (std::string line; std::getline(assembly, line);) {
      const size_t start = line.find_first_not_of(" \t");
      const bool instruction =
          start != std::string::npos && line[0] == '\t' && line[start] != '.' && line[start] != '#';
      if (instruction) text += line.substr(0, line.find('#')) + "\n";
    }
    return text;
  };
  const std::string without = instructions(**plain);
  EXPECT_GT(without.size(), 200u);
  EXPECT_EQ(without, instructions(**debug));
}

TEST_F(DebugTest, AFolderThatCannotBeMade) {
  std::ofstream(folder_ + "/file") << "x";
  auto engine = jit::Engine::Create({.debug_folder = folder_ + "/file/inside"});
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.status().message().find("cannot write"), std::string::npos) << engine.status();
}

}  // namespace
}  // namespace quern::jit_test
