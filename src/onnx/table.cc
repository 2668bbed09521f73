#include "onnx/table.h"

#include <map>

namespace quern::onnx {
namespace {

using Table = std::map<std::pair<std::string_view, std::string_view>, const Importer*>;

const Table& All() {
  static const Table* const table = [] {
    auto* made = new Table;
    for (const std::span<const Importer> part : {ElementwiseImporters(), ShapeImporters(),
                                                 SliceImporters(),       GatherImporters(),
                                                 ReductionImporters(),   ContractionImporters(),
                                                 ConvolutionImporters(), PoolingImporters(),
                                                 NormImporters(),        QuantisedImporters(),
                                                 ControlImporters(),     SequenceImporters(),
                                                 RecurrentImporters(),   ImageImporters(),
                                                 SignalImporters(),      TextImporters(),
                                                 RandomImporters(),      LossImporters(),
                                                 TrainingImporters(),    AttentionImporters(),
                                                 ContribImporters(),     ContribQuantisedImporters()}) {
      for (const Importer& row : part) made->emplace(std::pair(row.domain, row.name), &row);
    }
    return made;
  }();
  return *table;
}

}  // namespace

const Importer* FindImporter(std::string_view domain, std::string_view name) {
  const auto found = All().find({domain, name});
  return found == All().end() ? nullptr : found->second;
}

std::vector<const Importer*> Importers() {
  std::vector<const Importer*> rows;
  for (const auto& [name, row] : All()) rows.push_back(row);
  return rows;
}

}  // namespace quern::onnx
