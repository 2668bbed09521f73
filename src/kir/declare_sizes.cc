#include "kir/declare_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "kir/affine.h"
#include "kir/build.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// Names that occur in expressions and types: those of sizes, and others.
class NameCollector : public Visitor {
 public:
  std::set<std::string, std::less<>> names;

  void Type(const BufferType& type) override {
    for (const Extent& dim : type.dims) Add(dim);
  }
  void Add(const Extent& extent) {
    for (const std::string& factor : extent.Factors()) names.insert(factor);
  }

 private:
  bool Enter(const ExprRef& expr) override {
    if (const auto* name = std::get_if<NameRef>(&expr->node)) names.insert(name->name);
    return true;
  }
};

class Declarer {
 public:
  Declarer(Kernel& kernel, const SymbolRanges& ranges) : kernel_(kernel), ranges_(ranges) {}

  void Run(std::span<const SizeFact> facts, bool own_quotients) {
    Collect();
    for (const std::string& name : names_) Free(name);
    const std::set<std::string, std::less<>> own = names_;
    for (const SizeFact& given : facts) {
      const std::vector<std::string> symbols = given.Symbols(), factors = given.Factors();
      const bool ours =
          std::ranges::all_of(symbols, [&](const std::string& symbol) { return free_.contains(symbol); }) &&
          (!own_quotients || std::ranges::all_of(factors, [&](const std::string& factor) {
            return own.contains(factor) || !Quotient::Of(factor);
          }));
      const SizeFact fact = WithoutCommonFactor(given);
      if (!ours || std::ranges::find(kernel_.facts, fact) != kernel_.facts.end()) continue;
      kernel_.facts.push_back(fact);
      names_.insert(factors.begin(), factors.end());
    }
    for (const std::string& symbol : free_) symbols_.push_back({symbol, ranges_.at(symbol), std::nullopt});
    for (const std::string& name : names_) Derive(name);
    if (!quotients_.empty()) Rename();
    kernel_.symbols.insert(kernel_.symbols.begin(), symbols_.begin(), symbols_.end());
  }

 private:
  void Collect() {
    NameCollector collector;
    collector.Visit(kernel_.body);
    for (const GridDim& dim : kernel_.grid) {
      collector.Visit(dim.low);
      collector.Visit(dim.high);
    }
    for (const Param& param : kernel_.params) collector.Type(param.type);
    for (const SymbolDecl& symbol : kernel_.symbols) {
      if (symbol.derived) collector.Add(symbol.derived->first);
    }
    names_ = std::move(collector.names);
  }

  void Free(const std::string& name) {
    if (const std::optional<Quotient> quotient = Quotient::Of(name)) {
      for (const std::string& symbol : quotient->numerator.Symbols()) Free(symbol);
    } else if (ranges_.contains(name)) {
      free_.insert(name);
    }
  }

  // Numerators first.
  void Derive(const std::string& name) {
    std::optional<Quotient> quotient = Quotient::Of(name);
    if (!quotient || quotients_.contains(name)) return;
    for (const std::string& factor : quotient->numerator.Factors()) Derive(factor);
    std::string own;
    do {
      own = absl::StrCat("ceil", count_++);
    } while (ranges_.contains(own));
    symbols_.push_back(DerivedSymbol(own, quotient->numerator.Renamed(quotients_), quotient->divisor, symbols_));
    quotients_.emplace(name, std::move(own));
  }

  void Rename() {
    for (Param& param : kernel_.params) {
      for (Extent& dim : param.type.dims) dim = dim.Renamed(quotients_);
    }
    for (GridDim& dim : kernel_.grid) {
      dim.low = RenameSymbols(dim.low, quotients_);
      dim.high = RenameSymbols(dim.high, quotients_);
    }
    for (SymbolDecl& symbol : kernel_.symbols) {
      if (symbol.derived) symbol.derived->first = symbol.derived->first.Renamed(quotients_);
    }
    for (SizeFact& fact : kernel_.facts) fact = fact.Renamed(quotients_);
    kernel_.body = RenameSymbols(kernel_.body, quotients_);
  }

  Kernel& kernel_;
  const SymbolRanges& ranges_;
  std::set<std::string, std::less<>> names_, free_;
  std::vector<SymbolDecl> symbols_;
  std::map<std::string, std::string, std::less<>> quotients_;  // the names of their symbols
  int count_ = 0;
};

}  // namespace

void DeclareSizes(Kernel& kernel, const SymbolRanges& ranges, std::span<const SizeFact> facts, bool own_quotients) {
  Declarer(kernel, ranges).Run(facts, own_quotients);
}

}  // namespace quern::kir
