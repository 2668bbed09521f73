// Families of models as Hugging Face's transformers has them, a row each: what is theirs in GGUF's words.
#pragma once

#include <span>
#include <string_view>

namespace quern::hugging_face {

// A tensor's name without .weight and .bias, in the folder and in GGUF. Those of a layer are without what says which;
// of an expert, without its number.
struct TensorName {
  std::string_view ours, theirs;
};

enum Trait : unsigned {
  // GGUF has rows of q and k that turn together side by side; the folder's are in half-split order.
  kPairsApart = 1 << 0,
  // Norms are by 1 + weight; GGUF has the sum.
  kNormsFromOne = 1 << 1,
  // Layers may see a window of the last tokens only.
  kWindows = 1 << 2,
  // An encoder of texts.
  kEncoder = 1 << 3,
};

struct Family {
  std::string_view model_type;   // of config.json
  const char* architecture;      // general.architecture
  std::string_view activations;  // that hidden_act may be, divided by blanks: those that the architecture computes
  unsigned traits = 0;           // of Trait
  std::span<const TensorName> tensors = {};  // before those that all have
  int64_t window_period =
      0;  // where layers are not listed: every one of so many sees all; 0: none, where there is a window
};

// Null: there is none of that type.
const Family* FindFamily(std::string_view model_type);
std::span<const Family> Families();
// GGUF's name of a tensor of the family: "blk.3.attn_q.weight" of "model.layers.3.self_attn.q_proj.weight". Empty: it
// is no part of the model's function (tables that are computed, parts for images). The name itself, where it is not
// known. `expert`: its number where it is an expert's, else -1.
std::string GgufName(const Family& family, std::string_view name, int64_t& expert);

}  // namespace quern::hugging_face
