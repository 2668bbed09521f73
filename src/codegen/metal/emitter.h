// Emitter: one KIR kernel of threads to one MSL function. Internal to codegen/metal.
//
// What the language has in common with C is in codegen/text; here are the module, the frame and values in memory
// (emit_metal.cc), what threads do together: barriers, copies, pipelines, shuffles, matrices of a warp
// (emit_metal_block.cc), and the language itself with its helper functions (prelude.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/text/text_emitter.h"
#include "kir/kir.h"

namespace quern::metal {

using text::Bounded, text::CallText, text::Infix, text::Wrapped;
using text::Code, text::Cut, text::Level, text::Place, text::View;

class Emitter : public text::TextEmitter {
 public:
  Emitter(const kir::Kernel& kernel, int64_t threads);
  StatusOr<std::string> Run(const std::string& symbol);
  // Of the threadgroup memory that the text declares.
  int64_t shared_bytes() const { return shared_bytes_; }

 private:
  using TextEmitter::Emit;

  // ---- emit_metal.cc
  std::string Parameters(std::vector<std::string>& pointers);
  void EmitThreads(const kir::Loop& loop) override;
  void StoreElement(const std::string& name, const View& view, const std::vector<Code>& index,
                    const std::string& value) override;
  Code Element(const View& view, const std::vector<Code>& index) override;
  Code Decoded(const View& view, const std::vector<Code>& index) override;
  Code FromMemory(DType dtype, const std::string& place) override;
  std::string ToMemory(DType dtype, const Code& value) override;
  Code Rounded(DType dtype, const Code& value) override;
  Code ToFloat(DType from, DType to, const Code& value) override;

  // ---- emit_metal_block.cc
  void Emit(const kir::Alloc& alloc) override;
  void Emit(const kir::Tile& tile) override;
  void Emit(const kir::Map& map) override;
  void Emit(const kir::TileCall& call) override;
  void Emit(const kir::Barrier&) override { BlockBarrier(); }
  void Emit(const kir::Copy& copy) override;
  void Emit(const kir::Pipeline& pipeline) override;
  void Emit(const kir::Shuffle& shuffle) override;
  void BlockBarrier();
  std::string DeclareShared(std::string_view name, DType dtype, int64_t count);
  void MapMatrices(const kir::Map& map, const std::vector<View>& tiles, const std::vector<Code>& extents);
  Code Thread() const;
  Code Lane() const;

  const int64_t threads_;
  std::string shared_;               // declarations of threadgroup memory
  std::vector<std::string> stages_;  // threadgroup memory through which maps see matrices, one a tile of a map
  int64_t shared_bytes_ = 0;
  bool in_warp_ = false;     // each simdgroup acts as one
  bool reads_back_ = false;  // some parameter is read that the kernel may write
};

// ---- prelude.cc
extern const text::Language kLanguage;
// The start of a text: header, what holds the compiler to the letter, and the helper functions that `body` calls.
std::string Prelude(std::string_view body);

}  // namespace quern::metal
