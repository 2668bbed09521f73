// Sealed plans say all that a plan says but the bodies of its kernels, and no damaged one is read.
#include "lir/sealed.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/region.h"
#include "kir/kir.h"
#include "opt/passes.h"

namespace quern::lir {
namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Every kind of step, home and extent: a loop around a branch, a scan, a state, work on parameters alone, constants,
// a size that stride 2 leaves.
constexpr std::string_view kGraph = R"(graph g sym P in 0..53, S in 1.. {
  %0 = Input() {name = "x"} : f32[S, 16]
  %1 = Input() {name = "cache"} : f32[64, 16]
  %2 = Param() {name = "w"} : f32[16, 16]
  %3 = Constant() hex 0000c03f : f32[]
  %4 = Exp(%2) : f32[16, 16]
  %5 = MatMul(%0, %4) : f32[S, 16]
  %6 = Slice(%5) {axis = [0], start = <0>, step = [2], stop = <S>} : f32[ceil(S / 2), 16]
  %7 = Narrow(%0) {axis = 0, length = <1>, start = <0>} : f32[1, 16]
  %8 = Update(%1, %7) {axis = 0, start = <P>} : f32[64, 16]
  %9 = Mul(%6, %3) : f32[ceil(S / 2), 16]
  %10:2 = Scan(%7, %0) {carries = 1, length = <S>, reverse = false, xs = 1} : f32[1, 16], f32[S, 16] body graph body {
    %0 = Input() {name = "c"} : f32[1, 16]
    %1 = Input() {name = "row"} : f32[16]
    %2 = Add(%0, %1) : f32[1, 16]
    %3 = Mul(%1, %1) : f32[16]
    return %2, %3
  }
  return %9, %8, %10.0, %10.1
  donate "cache" -> 1
})";

Plan PlanOf(std::string_view text) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  StatusOr<ir::Graph> fused = opt::DonateCarries(*graph);
  if (fused.ok()) fused = opt::FuseRegions(*fused, {codegen::Families(), {}, true});
  EXPECT_TRUE(fused.ok()) << fused.status();
  if (!fused.ok()) return {};
  StatusOr<Plan> plan = BuildPlan(*fused, fused->symbols, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

Sealed SealedOf(const Plan& plan) {
  Sealed sealed{{}, KeptOnce(plan)};
  for (size_t k = 0; k < plan.kernels.size(); ++k)
    sealed.kernels.push_back({"f" + std::to_string(k), {k, 1}, {k, 2}, static_cast<int64_t>(64 * k)});
  return sealed;
}

TEST(Sealed, WhatIsReadIsWhatWasWrittenButForBodies) {
  const Plan plan = PlanOf(kGraph);
  ASSERT_FALSE(plan.once.empty());
  const Sealed sealed = SealedOf(plan);
  const StatusOr<std::string> bytes = Seal(plan, sealed);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const StatusOr<Plan> again = Unseal(Bytes(*bytes));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(plan));
  ASSERT_NE(again->sealed, nullptr);
  EXPECT_EQ(plan.sealed, nullptr);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const kir::Kernel& head = again->kernels[k];
    EXPECT_TRUE(head.body.empty());
    kir::Kernel expected = plan.kernels[k];
    expected.body.clear();
    EXPECT_EQ(kir::Print(head), kir::Print(expected, {.origins = false}));
    EXPECT_EQ(again->sealed->kernels[k].symbol, sealed.kernels[k].symbol);
    EXPECT_EQ(again->sealed->kernels[k].text, sealed.kernels[k].text);
    EXPECT_EQ(again->sealed->kernels[k].object, sealed.kernels[k].object);
    EXPECT_EQ(again->sealed->kernels[k].scratch_bytes, sealed.kernels[k].scratch_bytes);
  }
  const std::map<int, OnceValue> once = KeptOnce(*again), before = KeptOnce(plan);
  ASSERT_EQ(once.size(), before.size());
  ASSERT_FALSE(before.empty());
  for (const auto& [buffer, value] : before) {
    EXPECT_EQ(once.at(buffer).key, value.key);
    EXPECT_EQ(once.at(buffer).params, value.params);
  }
  // Equal plans, equal bytes.
  EXPECT_EQ(*Seal(*again, *again->sealed), *bytes);
}

TEST(Sealed, NoDamagedPlanIsRead) {
  const Plan plan = PlanOf(kGraph);
  const StatusOr<std::string> bytes = Seal(plan, SealedOf(plan));
  ASSERT_TRUE(bytes.ok());
  for (size_t at = 0; at < bytes->size(); at += 7) {
    std::string damaged = *bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    EXPECT_FALSE(Unseal(Bytes(damaged)).ok()) << at;
    EXPECT_FALSE(Unseal(Bytes(bytes->substr(0, at))).ok()) << at;
  }
  EXPECT_FALSE(UnsealProgram(Bytes(*bytes)).ok());
}

TEST(Sealed, PlansThatCallTheCallersFunctionsHaveNoBytes) {
  Plan plan = PlanOf(kGraph);
  const ir::CustomDef custom;
  plan.calls[0] = &custom;
  EXPECT_TRUE(absl::IsUnimplemented(Seal(plan, SealedOf(plan)).status()));
}

TEST(Sealed, AProgramIsItsBorder) {
  const StatusOr<ir::Graph> graph = ir::Parse(kGraph);
  ASSERT_TRUE(graph.ok());
  const SealedProgram program{SignatureOf(*graph), {{{"S", {1, 1}}}, {{"S", {2, 8}}, {"P", {0, 5}}}, {}}};
  const StatusOr<SealedProgram> again = UnsealProgram(Bytes(Seal(program)));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->guards, program.guards);
  EXPECT_EQ(again->signature.name, "g");
  EXPECT_EQ(again->signature.symbols, program.signature.symbols);
  using Ports = std::vector<Port> Signature::*;
  for (const Ports ports : {&Signature::inputs, &Signature::outputs, &Signature::params, &Signature::states}) {
    const std::vector<Port>&a = again->signature.*ports, &b = program.signature.*ports;
    ASSERT_EQ(a.size(), b.size());
    for (size_t p = 0; p < a.size(); ++p) {
      EXPECT_EQ(a[p].name, b[p].name);
      EXPECT_EQ(a[p].type, b[p].type);
      EXPECT_EQ(a[p].output, b[p].output);
    }
  }
}

}  // namespace
}  // namespace quern::lir
