// The cache as people see it: list, explain, verify, collect, clear.

#include <algorithm>
#include <ctime>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cache/folder.h"
#include "compiler/model.h"
#include "compiler/public_error.h"
#include "compiler/runtime_options.h"
#include "jit/engine.h"
#include "lir/kernel_symbols.h"
#include "quern/cache.h"

namespace quern {
namespace {

using cache::CompileKey;
using cache::ObjectStore;
using cache::StoredFile;

StatusOr<std::shared_ptr<ObjectStore>> Open(Options options) {
  // An unusable default folder is an error here, where nothing else was asked for.
  if (const auto folder = cache::ChooseFolder(options.cache); folder && options.cache.empty()) options.cache = *folder;
  QUERN_ASSIGN(std::shared_ptr<ObjectStore> store, compiler::StoreOf(options));
  if (store == nullptr)
    return absl::FailedPreconditionError("there is no cache: it is off (QUERN_CACHE), or there is no home folder");
  return store;
}

std::string Size(int64_t bytes) {
  if (bytes < 1000000) return absl::StrFormat("%.1f KB", static_cast<double>(bytes) * 1e-3);
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) * 1e-6);
}

std::string When(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[20];
  return localtime_r(&time, &parts) != nullptr && std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts) > 0 ? text
                                                                                                                  : "?";
}

std::string Count(int64_t count, const char* noun) { return absl::StrCat(count, " ", noun, count == 1 ? "" : "s"); }

StatusOr<std::string> List(const Options& options) {
  QUERN_ASSIGN(const std::shared_ptr<ObjectStore> store, Open(options));
  std::string text;
  int64_t bytes = 0;
  const std::vector<StoredFile> files = store->List();
  for (const StoredFile& file : files) {
    bytes += file.bytes;
    absl::StrAppendFormat(&text, "%s %9s  ", When(file.used), Size(file.bytes));
    if (!file.entry.ok()) {
      absl::StrAppendFormat(&text, "%s: %s\n", file.name, std::string(file.entry.status().message()));
      continue;
    }
    const cache::Entry& entry = *file.entry;
    absl::StrAppendFormat(&text, "%-10s %s  %s\n", entry.key.level, entry.key.symbol,
                          entry.origins.empty() ? "" : entry.origins.back());
  }
  absl::StrAppendFormat(&text, "%s, %s of at most %s in %s\n",
                        absl::StrCat(files.size(), files.size() == 1 ? " entry" : " entries"), Size(bytes),
                        Size(store->limit()), store->folder());
  return text;
}

// The entry that shares most with `key`; its own kernel in another form before others.
const cache::Entry* Nearest(const CompileKey& key, const std::vector<StoredFile>& files) {
  const cache::Entry* nearest = nullptr;
  int most = 0;
  for (const StoredFile& file : files) {
    if (!file.entry.ok() || cache::IsPlan(file.entry->key)) continue;
    const bool kernel = file.entry->key.kernel == key.kernel, symbol = file.entry->key.symbol == key.symbol;
    if (!kernel && !symbol) continue;  // nothing to do with it
    int shared = 0;
    for (const cache::KeyField& field : cache::KeyFields()) shared += file.entry->key.*field.value == key.*field.value;
    if (shared > most) most = shared, nearest = &*file.entry;
  }
  return nearest;
}

// The words of a line, each once, by whatever they are parted; a feature is one with and without its +.
std::set<std::string> WordsOf(const std::string& line) {
  std::set<std::string> words;
  for (const absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(", "), absl::SkipEmpty()))
    words.emplace(absl::StripPrefix(word, "+"));
  return words;
}

// What one list of words has and the other has not: "there alone avx512bw, avx512f"; of features of a processor there
// are a hundred.
std::string WordsThatDiffer(const std::set<std::string>& here, const std::set<std::string>& there) {
  const auto beyond = [](const std::set<std::string>& all, const std::set<std::string>& without) {
    std::vector<std::string> left;
    std::set_difference(all.begin(), all.end(), without.begin(), without.end(), std::back_inserter(left));
    return absl::StrJoin(left, ", ");
  };
  const std::string more = beyond(here, there), less = beyond(there, here);
  return absl::StrCat(more.empty() ? "" : absl::StrCat("here alone ", more), more.empty() || less.empty() ? "" : "; ",
                      less.empty() ? "" : absl::StrCat("there alone ", less));
}

// The first line in which two texts differ, of both; of a line that is a list the words.
std::string FirstDifference(const std::string& here, const std::string& there) {
  constexpr size_t kList = 5;  // words
  if (here.find('\n') == std::string::npos) {
    const std::set<std::string> words = WordsOf(here), others = WordsOf(there);
    const std::string differ = WordsThatDiffer(words, others);
    if (std::max(words.size(), others.size()) >= kList && !differ.empty()) return differ;
  }
  const std::vector<std::string> a = absl::StrSplit(here, '\n'), b = absl::StrSplit(there, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "", right = i < b.size() ? b[i] : "";
    if (left == right) continue;
    const auto line = [&](const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); };
    return a.size() > 1 ? absl::StrFormat("line %u, here \"%s\", there \"%s\"", i + 1, line(left), line(right))
                        : absl::StrFormat("here \"%s\", there \"%s\"", left, right);
  }
  return "";
}

std::string WhyNot(const CompileKey& key, const std::vector<StoredFile>& files) {
  for (const StoredFile& file : files) {
    if (!file.entry.ok() && file.name.starts_with(HashOf(key).ToHex()))
      return absl::StrCat("its file is damaged: ", std::string(file.entry.status().message()));
  }
  const cache::Entry* nearest = Nearest(key, files);
  if (nearest == nullptr) return "nothing like it is stored";
  std::string text = "the nearest entry differs in ";
  bool first = true;
  for (const cache::KeyField& field : cache::KeyFields()) {
    const std::string &here = key.*field.value, &there = nearest->key.*field.value;
    if (here == there) continue;
    absl::StrAppend(&text, first ? "" : "; in ", field.name, ": ", FirstDifference(here, there));
    first = false;
  }
  return first ? "another start has just stored it" : text;
}

StatusOr<std::string> Explain(const std::string& path, const Options& options) {
  QUERN_ASSIGN(const std::shared_ptr<ObjectStore> store, Open(options));
  QUERN_ASSIGN(const compiler::OpenedModel model, compiler::OpenModel(path, options));
  QUERN_ASSIGN(const compiler::PipelineOptions pipeline, compiler::PipelineOptionsOf(options));
  QUERN_ASSIGN(const std::shared_ptr<jit::Engine> engine, compiler::EngineOf(options));
  QUERN_ASSIGN(const ir::Graph graph, compiler::PrepareGraph(model.spec.module, pipeline));
  const std::vector<StoredFile> files = store->List();
  std::string text;
  int hits = 0, all = 0;
  std::map<Hash128, bool> known;  // by kernel text: one of several variants is compiled once
  std::string reason;             // of the last miss: another level is that of every kernel
  for (const SymbolRanges& guard : compiler::StepGuardsOf(graph, options.invariant)) {
    QUERN_ASSIGN(const compiler::PlannedVariant variant, compiler::PlanVariant(graph, guard, pipeline));
    const std::vector<std::string> symbols = lir::KernelSymbols(variant.plan, guard);
    absl::StrAppend(&text, GuardText(guard), "\n");
    for (size_t k = 0; k < symbols.size(); ++k) {
      if (variant.plan.calls.contains(static_cast<int>(k))) continue;  // a C function
      const CompileKey key = engine->KeyOf(variant.plan.kernels[k], symbols[k]);
      const Hash128 kernel = HashBytes(key.kernel);
      if (known.contains(kernel)) {
        absl::StrAppend(&text, "  same  ", symbols[k], "\n");
        continue;
      }
      const bool hit = store->Find(key).has_value();
      known[kernel] = hit;
      ++all;
      hits += hit;
      if (hit) {
        absl::StrAppend(&text, "  hit   ", symbols[k], "\n");
        continue;
      }
      const std::string why = WhyNot(key, files);
      absl::StrAppend(&text, "  miss  ", symbols[k], ": ", why == reason ? "as above" : why, "\n");
      reason = why;
    }
  }
  absl::StrAppendFormat(&text, "%d of %s found in %s\n", hits, Count(all, "kernel"), store->folder());
  return text;
}

// Engines of this Quern, by level and the options that the command line has; made when first asked for.
class Engines {
 public:
  // The engine under which `key` was made, or null: by another Quern, or for a level this machine lacks.
  jit::Engine* For(const CompileKey& key, const kir::Kernel& kernel) {
    for (const bool specialise : {false, true}) {
      auto [at, added] = engines_.try_emplace({key.level, specialise});
      if (added) {
        StatusOr<std::shared_ptr<jit::Engine>> engine =
            jit::Engine::Create({.cpu = key.level, .emit = {.specialise = specialise}});
        if (engine.ok()) at->second = *std::move(engine);
      }
      if (at->second != nullptr && at->second->KeyOf(kernel, key.symbol) == key) return at->second.get();
    }
    return nullptr;
  }

 private:
  std::map<std::pair<std::string, bool>, std::shared_ptr<jit::Engine>> engines_;
};

StatusOr<std::string> Verify(const Options& options) {
  QUERN_ASSIGN(const std::shared_ptr<ObjectStore> store, Open(options));
  Engines engines;
  int64_t equal = 0, foreign = 0, plans = 0;
  std::string different;
  for (const StoredFile& file : store->List()) {
    if (!file.entry.ok()) continue;
    const CompileKey& key = file.entry->key;
    if (cache::IsPlan(key)) {
      ++plans;
      continue;
    }
    StatusOr<kir::Kernel> kernel = kir::ParseKernel(key.kernel);
    jit::Engine* engine = kernel.ok() ? engines.For(key, *kernel) : nullptr;
    if (engine == nullptr) {
      ++foreign;
      continue;
    }
    QUERN_RETURN_IF_ERROR(kir::Verify(*kernel));
    QUERN_ASSIGN(const jit::Module module, engine->Compile({&*kernel, 1}, {&key.symbol, 1}));
    if (module.object(0) == file.entry->object)
      ++equal;
    else
      absl::StrAppend(&different, different.empty() ? "" : ", ", key.symbol, " (", file.name, ")");
  }
  const ObjectStore::Removed damaged = store->RemoveIf([](const StoredFile& file) { return !file.entry.ok(); });
  if (!different.empty()) return absl::DataLossError(absl::StrCat("compiling again gives other bytes for ", different));
  return absl::StrFormat(
      "%s compiled again, byte for byte the same; %d of other builds or levels and %s not tried; %s damaged, removed\n",
      Count(equal, "kernel"), foreign, Count(plans, "plan"), Count(damaged.files, "file"));
}

StatusOr<std::string> Collect(Options options, int64_t bytes) {
  QUERN_ASSIGN(const std::shared_ptr<ObjectStore> store, Open(options));
  QUERN_ASSIGN(const std::shared_ptr<jit::Engine> engine, compiler::EngineOf(options));
  const CompileKey own = engine->KeyOf({}, "");
  const ObjectStore::Removed foreign = store->RemoveIf([&](const StoredFile& file) {
    if (!file.entry.ok()) return true;
    const CompileKey& key = file.entry->key;
    return key.build != own.build || key.llvm != own.llvm || key.primitives != own.primitives;
  });
  QUERN_ASSIGN(const std::unique_ptr<ObjectStore> limited, ObjectStore::Open(store->folder(), bytes));
  const ObjectStore::Removed old = limited->Collect();
  return absl::StrFormat("removed %s of other builds or damaged (%s) and %s used least recently (%s)\n",
                         Count(foreign.files, "file"), Size(foreign.bytes), Count(old.files, "file"), Size(old.bytes));
}

StatusOr<std::string> Clear(const Options& options) {
  QUERN_ASSIGN(const std::shared_ptr<ObjectStore> store, Open(options));
  const ObjectStore::Removed removed = store->RemoveIf([](const StoredFile&) { return true; });
  return absl::StrFormat("removed %s (%s)\n", Count(removed.files, "file"), Size(removed.bytes));
}

}  // namespace

Result<std::string> ListCache(const Options& options) { return compiler::ToResult(List(options)); }
Result<std::string> ExplainCache(const std::string& model, const Options& options) {
  return compiler::ToResult(Explain(model, options));
}
Result<std::string> VerifyCache(const Options& options) { return compiler::ToResult(Verify(options)); }
Result<std::string> CollectCache(const Options& options, int64_t bytes) {
  return compiler::ToResult(Collect(options, bytes));
}
Result<std::string> ClearCache(const Options& options) { return compiler::ToResult(Clear(options)); }

}  // namespace quern
