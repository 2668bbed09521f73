// Which format each tensor of a model is quantised to: the mixtures of llama.cpp, a row each, by the names that its
// files have.
//
//   QUERN_ASSIGN(const Mixture* mixture, FindMixture("Q4_K_M"));
//   // One a tensor, in the file's order.
//   std::vector<Quantised> formats = FormatsOf(*mixture, file, /*pure=*/false, /*guided=*/false);
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "import/model_file.h"

namespace quern {

// Which of a model's layers a choice is for. `many bits`: the first and last eighth, and every third between.
enum class Layers : uint8_t { kNone, kAll, kManyBits, kFirst2, kFirst4, kFirst8th, kFirst16th };

struct Choice {
  Layers layers = Layers::kNone;
  DType dtype = DType::kF32;
};
// The first that takes a layer counts; where none does, the mixture's own format.
using Choices = std::array<Choice, 2>;

struct Mixture {
  const char* name;
  uint32_t file_type;  // general.file_type
  DType dtype;
  Choices values = {};         // of attention: v, fused qkv, and kv_b of latent attention
  Choices shared = {};         // of those, where four heads or more share a value; none: as others
  Choices output = {};         // of attention
  Choices down = {};           // of feed-forward parts
  Choices falcon_output = {};  // the same two in the architecture falcon
  Choices falcon_down = {};
  Choices plain_down = {};        // of feed-forward parts, in any architecture, without an importance matrix alone
  Choices guided_down = {};       // the same with one alone
  bool eight_experts = false;     // attention's output is Q5_K in models of eight experts
  bool needs_importance = false;  // of what is in its own format, but for embeddings and the output
};

std::vector<std::string> MixtureNames();
// What general.file_type says a file is; "" of a number that is none of these.
std::string_view NameOfFileType(uint64_t file_type);
// By its name in any case; Q4_K and its like stand for Q4_K_M. Error: InvalidArgument, with the names there are.
StatusOr<const Mixture*> FindMixture(std::string_view name);

struct Quantised {
  DType dtype = DType::kF32;
  bool kept = false;  // not of a kind that is quantised: as it is
  bool needs_importance = false;
  bool fell_back = false;  // rows are no multiple of what the mixture asks for
};
// `pure`: the mixture's own format for all that is quantised. `guided`: by an importance matrix. Precondition: tensors
// have two dimensions or a dtype.
std::vector<Quantised> FormatsOf(const Mixture& mixture, const ModelFile& file, bool pure, bool guided);

}  // namespace quern
