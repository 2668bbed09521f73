// The parts of the table of importers, a theme each.
#pragma once

#include <span>

#include "onnx/importer.h"

namespace quern::onnx {

std::span<const Importer> ElementwiseImporters();
std::span<const Importer> ShapeImporters();
std::span<const Importer> SliceImporters();
std::span<const Importer> GatherImporters();
std::span<const Importer> ReductionImporters();
std::span<const Importer> ContractionImporters();
std::span<const Importer> ConvolutionImporters();
std::span<const Importer> PoolingImporters();
std::span<const Importer> NormImporters();
std::span<const Importer> QuantisedImporters();
std::span<const Importer> ControlImporters();
std::span<const Importer> SequenceImporters();
std::span<const Importer> RecurrentImporters();
std::span<const Importer> ImageImporters();
std::span<const Importer> SignalImporters();
std::span<const Importer> RandomImporters();
std::span<const Importer> TextImporters();
std::span<const Importer> LossImporters();
std::span<const Importer> TrainingImporters();
std::span<const Importer> AttentionImporters();
std::span<const Importer> ContribImporters();
std::span<const Importer> ContribQuantisedImporters();

}  // namespace quern::onnx
