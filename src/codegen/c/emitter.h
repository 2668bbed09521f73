// Emitter: one KIR kernel to one C function. Internal to codegen/c.
//
// What C has in common with other languages is in codegen/text; here are the frame, scratch, values in memory
// (emit_c.cc), slices, tile ops and packs (emit_c_tile.cc), and the language itself with its helper functions
// (prelude.cc). Floats below f64 are held as float, or as double when `wide`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/c/emit_c.h"
#include "codegen/text/text_emitter.h"
#include "kir/kir.h"
#include "kir/scratch.h"

namespace quern::c {

using text::CallText, text::Infix, text::Wrapped;
using text::Code, text::Level, text::View;

class Emitter : public text::TextEmitter {
 public:
  Emitter(const kir::Kernel& kernel, const EmitOptions& options);
  StatusOr<std::string> Run(const std::string& symbol);

 private:
  using TextEmitter::Emit;

  // ---- emit_c.cc
  void DeclareScratch(const std::string& name, const kir::BufferType& type);
  void Emit(const kir::Alloc& alloc) override;
  void Emit(const kir::Tile& tile) override;
  void Emit(const kir::Map& map) override;
  Code Element(const View& view, const std::vector<Code>& index) override;
  std::string Target(const View& view, const std::vector<Code>& index) override;
  Code Decoded(const View& view, const std::vector<Code>& index) override;
  Code FromMemory(DType dtype, const std::string& place) override;
  std::string ToMemory(DType dtype, const Code& value) override;
  Code Rounded(DType dtype, const Code& value) override;
  Code ToFloat(DType from, DType to, const Code& value) override;

  // ---- emit_c_tile.cc
  View Part(const kir::Slice& slice);
  // The first byte of a row of a view that is not @row.
  Code RowStart(const View& view, const std::vector<Code>& rows);
  void Emit(const kir::TileCall& call) override;
  void Emit(const kir::Pack& pack) override;

  const kir::ScratchLayout scratch_;
};

// ---- prelude.cc
// C, where floats below f64 are computed as float or as double.
text::Language LanguageOf(bool wide);
// Includes, the ABI, and the helper functions that `body` calls.
std::string Prelude(std::string_view body, bool wide);

}  // namespace quern::c
