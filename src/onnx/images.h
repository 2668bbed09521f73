// Importers of ops on images that have files of their own.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

void Resize(Call& c);
void Upsample(Call& c);
void GridSample(Call& c);
void RoiAlign(Call& c);

}  // namespace quern::onnx
