// Objects of kernels at every level, whether or not this machine can run them: what they leave undefined, how much
// stack they take, how large their code is, and that the same kernel gives the same bytes.
#include "codegen/cpu/object.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "codegen/cpu/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kir/kir.h"
#include "simd/library.h"

namespace quern::cpu {
namespace {

constexpr const char* kFiles[] = {"rms_norm_q8", "down_residual", "gate_up_silu", "attn_decode"};

kir::Kernel FromFile(const std::string& name) {
  std::ifstream file(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + name + ".kir");
  std::stringstream text;
  text << file.rdbuf();
  auto kernel = kir::ParseKernel(text.str());
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

kir::Kernel FromText(const std::string& text) {
  auto kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

// Names that an ELF object refers to and does not define.
std::vector<std::string> Undefined(const std::string& object) {
  std::vector<std::string> names;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    for (uint64_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + section.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      names.emplace_back(object.data() + sections[section.sh_link].sh_offset + symbol.st_name);
    }
  }
  return names;
}

// One kernel with every kind of conversion and of math, which are what could turn into library calls.
kir::Kernel Conversions() {
  std::string text =
      "kernel conversions (\n  a : f32[N] in, d : f64[N] in, h : f16[N] in, b : bf16[N] in, i : i64[N] in, u : u32[N] "
      "in\n";
  std::string body;
  int outputs = 0;
  for (const char* from : {"a", "d", "h", "b", "i", "u"}) {
    for (const char* to : {"f32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}) {
      text += absl::StrFormat("  y%d : %s[N] out\n", outputs, to);
      body += absl::StrFormat("      y%d[c] = cast<%s>(%s[c])\n", outputs++, to, from);
    }
  }
  for (const char* math : {"exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "atan", "tanh", "erf",
                           "sqrt", "rsqrt", "sigmoid", "floor", "ceil", "trunc", "round"}) {
    text += absl::StrFormat("  y%d : f32[N] out\n  y%d : f64[N] out\n", outputs, outputs + 1);
    body += absl::StrFormat("      y%d[c] = %s(a[c])\n      y%d[c] = %s(d[c])\n", outputs, math, outputs + 1, math);
    outputs += 2;
  }
  text += absl::StrFormat("  y%d : f32[N] out\n", outputs);
  body += absl::StrFormat("      y%d[c] = fma(a[c], a[c], contract(a[c] * a[c] + 1.0))\n", outputs);
  return FromText(text + ") sym N in 1..100 {\n  grid g in 0..1 {\n    vec c in 0..N {\n" + body + "    }\n  }\n}\n");
}

TEST(Object, LeavesOnlyKnownNamesUndefined) {
  std::vector<kir::Kernel> kernels;
  for (const char* file : kFiles) kernels.push_back(FromFile(file));
  kernels.push_back(Conversions());
  for (const Target& target : Targets()) {
    for (bool specialise : {false, true}) {
      ObjectCompiler compiler(target, {.specialise = specialise});
      for (const kir::Kernel& kernel : kernels) {
        if (specialise && kernel.name == "attn_decode") continue;  // as the others, and slow to compile
        const std::string symbol = "k";
        auto object = compiler.Compile(kernel, symbol);
        ASSERT_TRUE(object.ok()) << object.status();
        bool tiles = false;
        for (const std::string& name : Undefined(object->bytes)) {
          tiles = tiles || simd::Exists(name);
          EXPECT_TRUE(name == "_GLOBAL_OFFSET_TABLE_" || IsLibcSymbol(name) || simd::Exists(name))
              << name << " in " << kernel.name << " at " << target.name;
        }
        EXPECT_EQ(tiles, !specialise && kernel.name != "conversions") << kernel.name << " at " << target.name;
      }
    }
  }
}

// What `perf record -g` goes by, also where tiles are inlined whose attributes are taken from them.
TEST(Object, KeepsFramePointers) {
  for (const Target& target : Targets()) {
    const bool x86 = std::string_view(target.platform->triple).starts_with("x86_64");
    const std::regex set(x86 ? "movq\\s+%rsp, %rbp" : "(mov|add)\\s+x29, sp");
    const std::regex other(x86 ? "\\bl?(ea|mov|add|sub|xor)[lq]\\s.*, %[re]bp\\b"
                               : "(mov|add|sub|madd|lsl)\\s+[wx]29, ");
    for (bool specialise : {false, true}) {
      ObjectCompiler compiler(target, {.specialise = specialise, .dump_assembly = true});
      const auto object = compiler.Compile(FromFile("gate_up_silu"), "k");
      ASSERT_TRUE(object.ok()) << object.status();
      std::string body = object->assembly;
      EXPECT_TRUE(std::regex_search(body, set)) << target.name << "\n" << body;
      body = std::regex_replace(body, set, "", std::regex_constants::format_first_only);
      EXPECT_FALSE(std::regex_search(body, other)) << target.name << "\n" << body;
    }
  }
}

// kir.md: at most 400 instructions of IR before linking and 16 KB of stack; a map over tiles neither gathers nor
// scatters.
TEST(Object, StaysSmall) {
  for (const Target& target : Targets()) {
    ObjectCompiler compiler(target, {.dump_assembly = true});
    for (const char* file : kFiles) {
      const kir::Kernel kernel = FromFile(file);
      const std::string symbol = file;
      auto object = compiler.Compile(kernel, symbol);
      ASSERT_TRUE(object.ok()) << object.status();
      EXPECT_LT(object->stats.instructions, 400) << file;
      EXPECT_EQ(object->stats.gathers, 0) << file;
      EXPECT_EQ(object->stats.scalarised, 0) << file;
      EXPECT_EQ(object->stats.expanded_tiles, 0) << file;
      EXPECT_LT(object->bytes.size(), 16384u) << file;
      static const std::regex frame(R"(sub[ql]\s+\$(\d+), %rsp|sub\s+sp, sp, #(\d+)(, lsl #12)?)");
      std::smatch match;
      for (std::string text = object->assembly; std::regex_search(text, match, frame); text = match.suffix()) {
        const long bytes = std::stol(match[1].matched ? match[1] : match[2]) << (match[3].matched ? 12 : 0);
        EXPECT_LT(bytes, 16384) << file << " at " << target.name;
      }
    }
  }
}

TEST(Object, SameKernelSameBytes) {
  const kir::Kernel kernel = FromFile("gate_up_silu");
  const Target& target = Targets()[1];
  const std::string symbol = "k";
  std::vector<std::string> bytes(3);
  auto compile = [&](size_t i) {
    ObjectCompiler compiler(target, {});
    auto object = compiler.Compile(kernel, symbol);
    if (object.ok()) bytes[i] = object->bytes;
  };
  std::thread other(compile, 1);
  compile(0);
  other.join();
  ObjectCompiler reused(target, {});
  for (int round = 0; round < 2; ++round) {
    auto object = reused.Compile(kernel, symbol);
    ASSERT_TRUE(object.ok()) << object.status();
    bytes[2] = object->bytes;
  }
  EXPECT_FALSE(bytes[0].empty());
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0], bytes[2]);
}

// What the access analysis makes of index expressions, seen in the machine code.
TEST(Object, ChoosesAccesses) {
  struct Row {
    const char* body;
    int gathers, scatters;
    const char* has;
    const char* lacks;
  };
  const Row rows[] = {
      {"y[i] = x[i] * 2.0", 0, 0, "mulps|addps", "gather"},
      {"y[i] = x[5] * 2.0", 0, 0, "broadcast|shuf", "gather"},
      {"y[i] = x[i + 7]", 0, 0, "movups", "gather"},
      {"y[i] = x[2 * i]", 0, 0, "perm|shuf", "gather"},
      {"y[i] = x[3 * i]", 1, 0, "gather", "scatter"},
      // What rotations read: the other of two neighbours, their number in a head, the partner in its other half.
      {"y[i] = x[i - i % 2 + (i + 1) % 2]", 0, 0, "perm|shuf", "gather|sub"},
      {"y[i] = x[max(0, min(i - i % 2 + (i + 1) % 2, 63))]", 0, 0, "perm|shuf", "gather|pmin|pmax"},
      {"y[i] = x[i % 32 / 2]", 0, 0, "perm|shuf", "gather"},
      {"y[i] = x[i / 32 * 32 + (i % 32 + 16) % 32]", 0, 0, "movups", "gather|perm|shuf"},
      {"y[i] = x[i / 48 * 48 + (i % 48 + 32) % 48]", 0, 0, "movups", "gather|perm|shuf"},
      {"y[i] = select(i % 32 < 16, x[i], 2.0)", 0, 0, "movups", "gather|pcmp"},
      {"y[i] = x[cast<i64>(k[i])]", 1, 0, "gather", "scatter"},
      {"y[2 * i] = x[i]", 0, 1, "scatter", "gather"},
      {"y[63 - i] = x[70 - i]", 0, 0, "movups", "gather|scatter"},
      // A running value: three steps in a vector's pieces and among them, and what ran up before.
      {"s := s + x[i] y[i] = s", 0, 0, "vpermt2ps", "gather|scatter|imul"},
      {"y[i] = contract(x[i] * x[i] + 1.0)", 0, 0, "vfmadd", "vmulps"},
      {"y[i] = x[i] * x[i] + 1.0", 0, 0, "vmulps", "vfmadd"},
      {"y[i] = cast<f32>(h[i])", 0, 0, "vcvtph2ps", "call"},
      // What is compared and chosen is f32: of f16 LLVM would make elements.
      {"y[i] = max(cast<f32>(h[i]), cast<f32>(h[63 - i % 2]))", 0, 0, "vmaxps|vcmp", "comiss"},
      {"y[i] = select(cast<f32>(h[i]) < 1.5, 2.0, cast<f32>(h[i]))", 0, 0, "vcmp", "comiss"},
  };
  const Target* avx512 = *ResolveTarget("x86-64-v4");
  ObjectCompiler compiler(*avx512, {.dump_assembly = true});
  for (const Row& row : rows) {
    const kir::Kernel kernel =
        FromText(absl::StrFormat("kernel k (x : f32[200] in, k : u8[64] in, h : f16[64] in, y : f32[128] out) { grid g "
                                 "in 0..1 { var s : f32 = 0 vec i in 0..64 { %s } } }",
                                 row.body));
    const std::string symbol = "k";
    auto object = compiler.Compile(kernel, symbol);
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(object->stats.gathers, row.gathers) << row.body;
    EXPECT_EQ(object->stats.scatters, row.scatters) << row.body;
    EXPECT_TRUE(std::regex_search(object->assembly, std::regex(row.has))) << row.body << "\n" << object->assembly;
    EXPECT_FALSE(std::regex_search(object->assembly, std::regex(row.lacks))) << row.body << "\n" << object->assembly;
  }
}

// With 16 registers a loop of more constants than fit reads them where they lie; a few, or with 32, it keeps.
TEST(Object, ManyConstantsStayInMemory) {
  struct Row {
    const char* level;
    const char* body;
    bool in_memory;
  };
  const Row rows[] = {{"x86-64-v2", "y[i] = tanh(x[i])", true},
                      {"x86-64-v3", "y[i] = tanh(x[i])", true},
                      {"x86-64-v3", "y[i] = erf(x[i]) * 3.0", true},
                      {"x86-64-v3", "y[i] = x[i] * 2.5 + 3.0", false},
                      {"x86-64-v4", "y[i] = tanh(x[i])", false}};
  for (const Row& row : rows) {
    ObjectCompiler compiler(**ResolveTarget(row.level), {.dump_assembly = true});
    const kir::Kernel kernel = FromText(absl::StrFormat(
        "kernel k (x : f32[N] in, y : f32[N] out) sym N in 1..10000 { grid g in 0..1 { vec i in 0..N { %s } } }",
        row.body));
    auto object = compiler.Compile(kernel, "k");
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(object->assembly.find("constants:") != std::string::npos, row.in_memory)
        << row.level << " " << row.body << "\n"
        << object->assembly;
    // In registers they are moved from one to the other, 20 and more of them.
    const std::regex move(R"(\tv?movap[sd]\s+%[xyz]mm\d+, %[xyz]mm\d+)");
    const auto moves = std::distance(std::sregex_iterator(object->assembly.begin(), object->assembly.end(), move),
                                     std::sregex_iterator());
    if (row.level == std::string_view("x86-64-v3")) EXPECT_LT(moves, 6) << row.body << "\n" << object->assembly;
  }
}

// Loops that are known to be short have vectors of 8 or 4 lanes; windows beside each other, two elements apart, are
// permuted from one load of a row.
TEST(Object, ShortRowsAreOneLoad) {
  struct Row {
    const char* loop;
    int loads;
    const char* has;
    const char* lacks;
  };
  const Row rows[] = {
      {"vec i in 0..7 { y[i] = x[g, i] }", 1, "ymm", "zmm"},
      {"vec i in 0..3 { y[i] = x[g, i] }", 1, "xmm", "ymm|zmm"},
      {"vec i in 0..24 { y[i] = z[i] }", 2, "zmm.*\n(.*\n)*.*ymm", "\\{%k"},
      {"vec i in 0..7 { y[i] = (x[g, 2 * i - 1] else 0.0) + x[g, 2 * i] + x[g, 2 * i + 1] }", 1, "vpermps", "gather"},
      {"vec i in 0..14 { y[i] = (z[2 * i - 1] else 0.0) + z[2 * i] + z[2 * i + 1] }", 2, "vperm", "gather"},
      // Nothing behind the end is read, which the last round reaches.
      {"vec i in 0..48 { y[i] = w[2 * i] }", 2, "\\{%k", "gather"},
      {"for j in 0..1 { vec i in 8..40 { y[i] = z[2 * i - 1] + z[2 * i] + z[2 * i + 1] } }", 4, "vpermt2ps", "\\{%k"},
  };
  ObjectCompiler compiler(**ResolveTarget("x86-64-v4"), {.dump_assembly = true});
  for (const Row& row : rows) {
    const kir::Kernel kernel = FromText(absl::StrFormat(
        "kernel k (x : f32[4, 14] in, z : f32[100] in, w : f32[95] in, y : f32[64] out) { grid g in 0..1 { %s } }",
        row.loop));
    auto object = compiler.Compile(kernel, "k");
    ASSERT_TRUE(object.ok()) << object.status();
    // A vector instruction with a first operand in memory, but for constants.
    const std::regex load(R"(\tv\S+\s[^(\n]*\(%r[^i)][^)]*\),)");
    const auto loads = std::distance(std::sregex_iterator(object->assembly.begin(), object->assembly.end(), load),
                                     std::sregex_iterator());
    EXPECT_EQ(loads, row.loads) << row.loop << "\n" << object->assembly;
    EXPECT_TRUE(std::regex_search(object->assembly, std::regex(row.has))) << row.loop << "\n" << object->assembly;
    EXPECT_FALSE(std::regex_search(object->assembly, std::regex(row.lacks))) << row.loop << "\n" << object->assembly;
  }
}

}  // namespace
}  // namespace quern::cpu
