// LLVM IR and assembly with their links to KIR lines.
#include "profile/debug_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quern::profile {
namespace {

using ::testing::ElementsAre;

TEST(DebugText, LocationsOfInstructionsBecomeLinesAndMetadataGoes) {
  const KirLines linked = LinkedIr(
      "; ModuleID = 'kernels'\n"
      "source_filename = \"kernels\"\n"
      "target triple = \"x86_64-unknown-linux-gnu\"\n"
      "\n"
      "define void @\"layers.0!.ffn\"(ptr %args) #0 !dbg !4 {\n"
      "entry:\n"
      "  %0 = load ptr, ptr %args, align 8, !dbg !17, !invariant.load !2\n"
      "  %1 = load float, ptr %0, align 4, !alias.scope !5, !noalias !8, !dbg !18\n"
      "  call void @qk_dot_f16(ptr %0, i64 %1), !dbg !19\n"
      "  ret void\n"
      "}\n"
      "\n"
      "attributes #0 = { nounwind }\n"
      "\n"
      "!2 = !{}\n"
      "!4 = distinct !DISubprogram(name: \"x\", line: 1)\n"
      "!17 = !DILocation(line: 13, column: 5, scope: !4)\n"
      "!18 = distinct !DILocation(line: 7, scope: !4)\n"
      "!19 = !DILocation(line: 0, scope: !4)\n");
  EXPECT_EQ(linked.text,
            "define void @\"layers.0!.ffn\"(ptr %args) #0 {\n"
            "entry:\n"
            "  %0 = load ptr, ptr %args, align 8\n"
            "  %1 = load float, ptr %0, align 4\n"
            "  call void @qk_dot_f16(ptr %0, i64 %1)\n"
            "  ret void\n"
            "}\n");
  EXPECT_THAT(linked.lines, ElementsAre(0, 0, 13, 7, 0, 0, 0));
}

TEST(DebugText, VectorsOfEqualElementsAreSplats) {
  const KirLines linked = LinkedIr(
      "  %1 = fmul <2 x float> %0, <float 1.5, float 1.5>\n"
      "  %2 = shufflevector <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 7, i32 7>, <2 x i32> poison\n");
  EXPECT_EQ(linked.text,
            "  %1 = fmul <2 x float> %0, <float 1.5, float 1.5>\n"
            "  %2 = shufflevector <2 x i32> <i32 0, i32 1>, <2 x i32> splat (i32 7), <2 x i32> poison\n");
}

TEST(DebugText, AssemblyFollowsItsLocations) {
  const KirLines linked = LinkedAssembly(
      "\t.text\n"
      "\t.file\t\"kernels\"\n"
      "\t.globl\tk0\n"
      "k0:                                     # @k0\n"
      ".Lfunc_begin0:\n"
      "\t.file\t1 \"/tmp/kir\" \"k0.kir\"\n"
      "\t.loc\t1 3 0                           # k0.kir:3:0\n"
      "\t.cfi_startproc\n"
      "\tpushq\t%rbp\n"
      ".Ltmp0:\n"
      "\t.loc\t1 12 0 prologue_end\n"
      "\tvmovups\t(%rdi), %zmm0\n"
      ".LBB0_1:                                # %loop\n"
      "\tvaddps\t%zmm0, %zmm0, %zmm1\n"
      "\t.loc\t1 0 0\n"
      "\tretq\n"
      "\t.section\t.rodata,\"a\",@progbits\n"
      "\t.long\t0x3f800000\n"
      "\t.section\t.debug_info,\"\",@progbits\n"
      "\t.long\t17\n"
      "\t.section\t\".note.GNU-stack\",\"\",@progbits\n");
  EXPECT_EQ(linked.text,
            "\t.text\n"
            "\t.globl\tk0\n"
            "k0:                                     # @k0\n"
            "\tpushq\t%rbp\n"
            "\tvmovups\t(%rdi), %zmm0\n"
            ".LBB0_1:                                # %loop\n"
            "\tvaddps\t%zmm0, %zmm0, %zmm1\n"
            "\tretq\n"
            "\t.section\t.rodata,\"a\",@progbits\n"
            "\t.long\t0x3f800000\n");
  EXPECT_THAT(linked.lines, ElementsAre(0, 0, 0, 3, 12, 0, 12, 0, 0, 0));
}

}  // namespace
}  // namespace quern::profile
