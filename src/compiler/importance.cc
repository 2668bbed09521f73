// CollectImportance of the public interface: the model's graph with sums of squares as outputs.

#include "quern/importance.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "codegen/matmul_plan.h"
#include "compiler/model.h"
#include "compiler/observing.h"
#include "compiler/public_error.h"
#include "compiler/text_chunks.h"
#include "hir/module.h"
#include "import/importance.h"
#include "ir/column_squares.h"
#include "ir/product.h"

namespace quern {
namespace {

// What weights of products are multiplied with, as two outputs of the graph; of one matrix `counts` is none, and its
// count that of the rows.
struct Summed {
  std::vector<std::string> weights;
  Extent rows;
  std::vector<float> sums, counts;      // of a run
  std::vector<double> all, all_counts;  // of all so far
};

class Summing {
 public:
  Summing(ir::Graph graph, const ModelFile& file, bool output)
      : graph_(std::move(graph)), file_(file), output_(output) {}

  // The graph with the sums as its outputs. Error: there are none.
  StatusOr<ir::Graph> Make(std::vector<Summed>& summed) && {
    const int count = static_cast<int>(graph_.nodes().size());
    for (int n = 0; n < count; ++n) {
      const ir::Node& node = graph_.node(n);
      const bool grouped = ir::IsGroupedMatMul(node);
      if (!grouped && !ir::IsMatMul(node)) continue;
      const std::string weight = WeightOf(node);
      if (weight.empty()) continue;
      // Weights that are multiplied with the same have the same sums.
      std::vector<ir::Value> key = {node.inputs[0]};
      if (grouped) key.push_back(node.inputs[2]);
      const auto [place, is_new] = places_.try_emplace({key, ExpertsOf(node, grouped)}, summed.size());
      if (is_new) QUERN_RETURN_IF_ERROR(Sum(key, ExpertsOf(node, grouped), summed));
      summed[place->second].weights.push_back(weight);
    }
    if (summed.empty()) return absl::UnimplementedError("the model has no products of the weights of its layers");
    compiler::Observe(graph_, outputs_);
    return std::move(graph_);
  }

 private:
  // The tensor of the file that is the product's right side; empty where there is no such tensor that is asked for.
  std::string WeightOf(const ir::Node& product) const {
    const ir::Node& side = graph_.node(product.inputs[1].node);
    if (!ir::IsParam(side)) return "";
    const std::string& name = side.attributes.String("name");
    const bool asked = name.starts_with("blk.") || (output_ && name == "output.weight");
    return asked && file_.FindTensor(name) != nullptr ? name : "";
  }

  int64_t ExpertsOf(const ir::Node& product, bool grouped) const {
    return grouped ? graph_.type(product.inputs[1]).dims[0].constant() : 0;
  }

  // `of`: rows, and which expert takes each.
  Status Sum(const std::vector<ir::Value>& of, int64_t experts, std::vector<Summed>& summed) {
    const ir::TensorType type = graph_.type(of[0]);
    const std::string name = absl::StrCat(summed.size());
    Summed& each = summed.emplace_back();
    each.rows = Extent(1);
    for (int64_t d = 0; d + 1 < type.rank(); ++d) each.rows = each.rows * type.dims[d];
    const int64_t columns = type.dims.back().constant();
    if (experts == 0) {
      QUERN_ASSIGN(const ir::Value sums, ir::MakeColumnSquares(graph_, of[0]));
      outputs_.push_back({absl::StrCat("sums ", name), sums});
    } else {
      QUERN_ASSIGN(const ir::MatrixSquares made, ir::MakeMatrixSquares(graph_, of[0], of[1], experts));
      outputs_.push_back({absl::StrCat("sums ", name), made.sums});
      outputs_.push_back({absl::StrCat("counts ", name), made.counts});
    }
    const int64_t matrices = std::max<int64_t>(experts, 1);
    each.sums.resize(static_cast<size_t>(matrices * columns));
    each.all.resize(each.sums.size());
    each.counts.resize(static_cast<size_t>(experts));
    each.all_counts.resize(static_cast<size_t>(matrices));
    return absl::OkStatus();
  }

  ir::Graph graph_;
  const ModelFile& file_;
  const bool output_;
  std::map<std::pair<std::vector<ir::Value>, int64_t>, size_t> places_;
  std::vector<compiler::Observed> outputs_;
};

// A model that is run for its sums.
class Collector {
 public:
  static StatusOr<Collector> Make(const std::string& path, const ImportanceOptions& asked) {
    Options options = asked.run;
    options.exact = true;
    if (!options.lora.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("adapter %s: an importance matrix is of the model's own weights", options.lora[0].path));
    }
    QUERN_ASSIGN(compiler::OpenedModel opened, compiler::OpenForChunks(path, options));
    Collector collector;
    QUERN_ASSIGN(ir::Graph graph, hir::LowerForAutodiff(opened.spec.module));
    QUERN_ASSIGN(graph, Summing(std::move(graph), *opened.file, asked.output).Make(collector.summed_));
    QUERN_ASSIGN(opened.spec.module, hir::WrapGraph(graph));
    const int64_t few = codegen::kFewRows;
    const std::vector<SymbolRanges> guards = {{{models::kSequenceSymbol, {1, few}}},
                                              {{models::kSequenceSymbol, {few + 1, models::kMaxSequence}}}};
    QUERN_ASSIGN(collector.model_, compiler::RunModel(std::move(opened), options, guards));
    return collector;
  }

  const compiler::OpenedModel& opened() const { return model_->opened; }

  // A chunk of ids, from an empty cache on.
  Status Run(std::span<const int32_t> ids) {
    for (size_t at = 0; at < ids.size();) {
      const auto count = static_cast<int64_t>(std::min<size_t>(ids.size() - at, models::kMaxSequence));
      const Binding symbols = {{models::kSequenceSymbol, count},
                               {models::kPastSymbol, static_cast<int64_t>(at)},
                               {models::kLogitsSymbol, count}};
      const ConstBytes input{ids.data() + at, count * static_cast<int64_t>(sizeof(int32_t))};
      std::vector<MutableBytes> outputs;
      const auto add = [&](std::vector<float>& of) {
        if (!of.empty()) outputs.push_back({of.data(), static_cast<int64_t>(of.size() * sizeof(float))});
      };
      for (Summed& each : summed_) {
        add(each.sums);
        add(each.counts);
      }
      QUERN_RETURN_IF_ERROR(model_->made.executable->Run({&input, 1}, outputs, symbols));
      for (Summed& each : summed_) QUERN_RETURN_IF_ERROR(Take(each, symbols));
      at += static_cast<size_t>(count);
    }
    return absl::OkStatus();
  }

  void AddTo(ImportanceMatrix& matrix) const {
    for (const Summed& each : summed_) {
      for (const std::string& weight : each.weights) {
        ImportanceMatrix::Entry& entry = matrix.entries[weight];
        entry.sums.resize(each.all.size());
        entry.counts.resize(each.all_counts.size());
        // A weight that two products read has what both are multiplied with.
        for (size_t i = 0; i < each.all.size(); ++i) entry.sums[i] += static_cast<float>(each.all[i]);
        for (size_t i = 0; i < each.all_counts.size(); ++i) entry.counts[i] += static_cast<float>(each.all_counts[i]);
      }
    }
  }

 private:
  static Status Take(Summed& each, const Binding& symbols) {
    for (size_t i = 0; i < each.sums.size(); ++i) {
      if (!std::isfinite(each.sums[i])) {
        return absl::InvalidArgumentError(absl::StrFormat("what column %u of %s is multiplied with is not finite",
                                                          i % (each.sums.size() / each.all_counts.size()),
                                                          each.weights[0]));
      }
      each.all[i] += each.sums[i];
    }
    for (size_t i = 0; i < each.counts.size(); ++i) each.all_counts[i] += each.counts[i];
    if (!each.counts.empty()) return absl::OkStatus();
    QUERN_ASSIGN(const int64_t rows, each.rows.Evaluate(symbols));
    each.all_counts[0] += static_cast<double>(rows);
    return absl::OkStatus();
  }

  std::vector<Summed> summed_;
  std::unique_ptr<compiler::RunningModel> model_;
};

StatusOr<ImportanceReport> Collect(const std::string& path, std::string_view text, const std::string& out,
                                   const ImportanceOptions& options) {
  QUERN_ASSIGN(Collector collector, Collector::Make(path, options));
  const compiler::OpenedModel& opened = collector.opened();
  std::vector<std::string> inputs;
  for (const ModelFile::Weights& weights : opened.file->weights()) inputs.push_back(weights.path);
  QUERN_RETURN_IF_ERROR(CheckOutput(out, inputs));
  QUERN_ASSIGN(const compiler::TextChunks chunks,
               compiler::CutText(opened, text, options.chunks, options.parse_special));
  for (int64_t c = 0; c < chunks.count; ++c) {
    QUERN_RETURN_IF_ERROR(collector.Run(chunks.at(c)));
    if (options.progress) options.progress(c + 1, chunks.count);
  }
  ImportanceMatrix matrix;
  matrix.chunks = chunks.count;
  matrix.chunk_size = chunks.chunk;
  if (!options.dataset.empty()) matrix.datasets.push_back(options.dataset);
  collector.AddTo(matrix);
  QUERN_RETURN_IF_ERROR(WriteFile(out, ImportanceFile(matrix), inputs));
  ImportanceReport report{matrix.chunks, matrix.chunk_size, static_cast<int64_t>(matrix.entries.size()), {}};
  for (const auto& [name, entry] : matrix.entries) {
    if (std::find(entry.counts.begin(), entry.counts.end(), 0.0f) != entry.counts.end())
      report.untouched.push_back(name);
  }
  return report;
}

}  // namespace

Result<ImportanceReport> CollectImportance(const std::string& model, std::string_view text, const std::string& out,
                                           const ImportanceOptions& options) {
  return compiler::ToResult(Collect(model, text, out, options));
}

}  // namespace quern
