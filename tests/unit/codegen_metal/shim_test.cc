// That the shim and the check of texts find what they are for: bad texts, each with one fault.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/metal/emit_metal.h"
#include "gtest/gtest.h"
#include "support/block_kernels.h"
#include "support/metal_kernel.h"
#include "support/msl_check.h"

namespace quern::metal {
namespace {

std::string Fault(const std::string& text) { return std::string(CheckMsl(text).message()); }

TEST(MslCheck, TakesWhatIsEmitted) {
  for (const BlockKernel& test : BlockKernels()) {
    const StatusOr<std::vector<kir::Kernel>> kernels = ScheduledAll(test.text, Targets()[0].facts);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    const StatusOr<codegen::DeviceModule> made =
        Targets()[0].emit(*kernels, EntryNames("k", kernels->size()), Targets()[0]);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(Fault(made->text), "") << made->text;
    const Status spaces = CompileMslSpaces(made->text);
    EXPECT_TRUE(spaces.ok()) << test.name << ": " << spaces.message();
  }
}

TEST(MslCheck, AddressSpaces) {
  EXPECT_EQ(Fault("float f(device const float* x) { return *x; }"), "");
  EXPECT_EQ(Fault("float f(float a) { return a * float(2); }"), "");
  EXPECT_EQ(Fault("void f() {\n  const float* x = 0;\n}"), "line 2: a pointer without an address space");
  EXPECT_EQ(Fault("float f(device const uchar* x) { return float(*(const half*)x); }"),
            "line 1: a pointer without an address space");
  EXPECT_EQ(Fault("void f(threadgroup float* a, int* b) {}"), "line 1: a pointer without an address space");
}

TEST(MslCheck, AddressSpacesByACompiler) {
  auto fault = [](const std::string& body) {
    const std::string text =
        "#include <metal_stdlib>\nusing namespace metal;\nfloat f(device const float* x) { return *x; }\n"
        "[[kernel, max_total_threads_per_threadgroup(32)]] void k(device const float* x [[buffer(0)]], device float* y "
        "[[buffer(1)]]) {\n"
        "threadgroup float s[4];\n" +
        body + "\n}\n";
    const std::string said(CompileMslSpaces(text).message());
    const size_t error = said.find("error: ");
    return error == std::string::npos ? said : said.substr(error, said.find('\n', error) - error);
  };
  EXPECT_EQ(fault("y[0] = f(x) + s[1];"), "");
  EXPECT_EQ(fault("y[0] = f(s);"), "error: no matching function for call to 'f'");
  EXPECT_NE(fault("device float* q = s;").find("cannot initialize"), std::string::npos);
  EXPECT_NE(fault("const float* q = x;").find("cannot initialize"), std::string::npos);
  EXPECT_NE(fault("y[0] = *(threadgroup const float*)x;").find("mismatching address spaces"), std::string::npos);
  EXPECT_NE(fault("device float* q = x;").find("cannot initialize"), std::string::npos);
  EXPECT_NE(fault("if (y[0] > 0.0f) { threadgroup float t[4]; t[0] = 1.0f; }").find("outermost scope of a kernel"),
            std::string::npos);
}

TEST(MslCheck, Buffers) {
  EXPECT_EQ(Fault("[[kernel]] void f(device float* a [[buffer(0)]], device float* b [[buffer(30)]]) {}"), "");
  EXPECT_EQ(Fault("[[kernel]] void f(device float* a [[buffer(31)]]) {}"), "line 1: buffer 31, of 31");
  EXPECT_EQ(Fault("[[kernel]] void f(device float* a [[buffer(1)]], device float* b [[buffer(1)]]) {}"),
            "line 1: two buffers 1");
  EXPECT_EQ(
      Fault("[[kernel]] void f(device float* a [[buffer(1)]]) {}\n[[kernel]] void g(device float* b [[buffer(1)]]) {}"),
      "");
  EXPECT_EQ(Fault("[[kernel, max_total_threads_per_threadgroup(1056)]] void f() {}"),
            "line 1: threadgroups of 1056 threads");
}

TEST(MslCheck, ThreadgroupMemory) {
  EXPECT_EQ(Fault("[[kernel]] void f() {\n  threadgroup float a[4096];\n  threadgroup half b[8192];\n}"), "");
  EXPECT_EQ(Fault("[[kernel]] void f() {\n  threadgroup float a[4096];\n  threadgroup half b[8200];\n}"),
            "line 3: 32784 bytes of threadgroup memory, more than 32768");
  EXPECT_EQ(Fault("[[kernel]] void f() {\n  if (true) {\n    threadgroup float a[4];\n  }\n}"),
            "line 3: threadgroup memory outside the outermost scope of a kernel");
}

TEST(MslCheck, Doubles) {
  EXPECT_EQ(Fault("float f() { return 1.5f + 1e-5f + 2.0h + 0x10; }"), "");
  EXPECT_EQ(Fault("float f() { return 1.5; }"), "line 1: 1.5 is a 64-bit float");
  EXPECT_EQ(Fault("float f() {\n  return 1e-5;\n}"), "line 2: 1e-5 is a 64-bit float");
  EXPECT_EQ(Fault("float f(double x) { return x; }"), "line 1: there are no 64-bit floats");
  EXPECT_EQ(Fault("float f() { return 1.0f; // in a comment 1.5 and double\n}"), "");
  EXPECT_EQ(Fault("float f() {"), "line 1: braces do not close");
}

struct Program {
  MetalCase test;
  codegen::DeviceModule module;
};

Program Made(const std::string& text, const Binding& binding) {
  Program run{.test = {.kernel = *Scheduled(text, Targets()[0].facts), .binding = binding}, .module = {}};
  const std::string symbol = "k";
  run.module = *Targets()[0].emit({&run.test.kernel, 1}, {&symbol, 1}, Targets()[0]);
  return run;
}

// What the run says after `from` became `to` everywhere in the text.
std::string After(Program run, const std::string& from, const std::string& to) {
  const std::string before = run.module.text;
  run.module.text = absl::StrReplaceAll(before, {{from, to}});
  EXPECT_TRUE(from.empty() || run.module.text != before) << before;
  const StatusOr<MetalLibrary> library = MetalLibrary::Compile(run.module, {&run.test.kernel, 1});
  if (!library.ok()) return std::string(library.status().message());
  return std::string(CheckKernelsThroughMetal({&run.test, 1}, *library).message());
}

TEST(MslShim, FindsMissingBarriers) {
  const Program product = Made(ProductOf("f16"), {{"M", 67}, {"N", 5}, {"K", 37}});
  EXPECT_EQ(After(product, "", ""), "");
  EXPECT_NE(After(product, "threadgroup_barrier(mem_flags::mem_threadgroup);", ""), "");
  EXPECT_NE(After(product, "simdgroup_barrier(mem_flags::mem_threadgroup);", ""), "");
  const Program rows = Made(BlockKernels()[1].text, {{"M", 3}, {"C", 1031}});
  EXPECT_NE(After(rows, "threadgroup_barrier(mem_flags::mem_threadgroup);", ""), "");
  EXPECT_NE(After(rows, "ushort(16)", "ushort(15)"), "");
}

TEST(MslShim, FindsWritesOutside) {
  const Program map = Made(BlockKernels()[0].text, {{"S", 257}});
  EXPECT_EQ(After(map, "", ""), "");
  EXPECT_EQ(After(map, "y[i] =", "y[i + 1] ="), "kernel map, seed 1, writes outside y");
}

TEST(MslShimDeathTest, FindsBarriersThatSomeThreadsPass) {
  const Program rows = Made(BlockKernels()[1].text, {{"M", 3}, {"C", 1031}});
  EXPECT_DEATH(After(rows, "threadgroup_barrier(", "if (thread_id != 40) threadgroup_barrier("),
               "metal shim: a barrier of the threadgroup is reached by: 255 of 256 threads");
  EXPECT_DEATH(After(rows, "const float from0_16 =", "float from0_16 = 0.0f; if (thread_id != 40) from0_16 ="),
               "metal shim: ");
}

}  // namespace
}  // namespace quern::metal
