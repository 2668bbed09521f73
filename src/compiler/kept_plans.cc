#include "compiler/kept_plans.h"

#include "absl/strings/str_cat.h"
#include "compiler/program_identity.h"
#include "ir/binary.h"

namespace quern::compiler {
namespace {

// Constants that passes have folded are part of a plan; those of a whole network belong on no disk twice.
constexpr size_t kMostBytes = 16 << 20;

// Hash of Quern's sources between graphs and KIR, made by the build.
std::string PlanningIdentity() {
  return
#include "plan_hash.inc"
      ;
}

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::shared_ptr<const KeptPlans> KeptPlans::Of(const ir::Graph& lowered, std::span<const SymbolRanges> guards,
                                               const Options& options, const jit::Engine& engine,
                                               std::shared_ptr<const cache::ObjectStore> store) {
  if (store == nullptr || !options.check.empty() || options.cache_verify) return nullptr;
  cache::CompileKey key = engine.KeyOf({}, lowered.name);
  // Labels are part of what is kept: names of functions, of launches.
  key.kernel = absl::StrCat(std::string(cache::kPlanText), HashBytes(ir::Encode(lowered)).ToHex(), "\n",
                            IdentityOf(lowered, options), "\nby ", PlanningIdentity());
  for (const SymbolRanges& guard : guards) absl::StrAppend(&key.kernel, "\nguard ", TextOfGuard(guard));
  return std::shared_ptr<const KeptPlans>(new KeptPlans(std::move(key), std::move(store)));
}

cache::CompileKey KeptPlans::KeyOf(std::string_view part) const {
  cache::CompileKey key = key_;
  absl::StrAppend(&key.kernel, "\n", std::string(part));
  return key;
}

std::optional<std::string> KeptPlans::Find(std::string_view part) const {
  std::optional<cache::Entry> entry = store_->Find(KeyOf(part));
  if (!entry) return std::nullopt;
  return std::move(entry->object);
}

void KeptPlans::Keep(std::string_view part, std::string bytes) const {
  if (bytes.size() > kMostBytes) return;
  // A store that cannot be written is as good as none.
  if (store_->Insert({KeyOf(part), std::move(bytes), {absl::StrCat("plan: ", std::string(part))}}).ok())
    store_->CollectAtTimes();
}

std::optional<lir::SealedProgram> KeptPlans::FindProgram() const {
  const std::optional<std::string> bytes = Find("program");
  if (!bytes) return std::nullopt;
  StatusOr<lir::SealedProgram> program = lir::UnsealProgram(Bytes(*bytes));
  if (!program.ok()) return std::nullopt;
  return *std::move(program);
}

void KeptPlans::KeepProgram(const lir::SealedProgram& program) const { Keep("program", lir::Seal(program)); }

PlanKeeper KeptPlans::KeeperOf(const std::shared_ptr<const KeptPlans>& plans) {
  if (plans == nullptr) return {};
  const auto part = [](int variant) { return absl::StrCat("variant ", variant); };
  return {.find = [plans, part](int variant) -> std::optional<lir::Plan> {
            const std::optional<std::string> bytes = plans->Find(part(variant));
            if (!bytes) return std::nullopt;
            StatusOr<lir::Plan> plan = lir::Unseal(Bytes(*bytes));
            if (!plan.ok()) return std::nullopt;
            return *std::move(plan);
          },
          .keep =
              [plans, part](int variant, const BoundPlan& bound) {
                StatusOr<std::string> sealed = bound.Sealed();
                if (sealed.ok()) plans->Keep(part(variant), *std::move(sealed));
              }};
}

}  // namespace quern::compiler
