// Vectors of texts, by an encoder (bert, nomic-bert):
//
//   quern::Result<quern::Embedder> model = quern::Embedder::Open("encoder.gguf");
//   std::vector<float> a = *model->Embed("a text"), b = *model->Embed("another");   // of length 1
//   const double alike = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);    // the cosine between them
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"
#include "quern/tokenizer.h"

namespace quern {

// How the rows of a text's tokens become its vector.
enum class Pooling { kModel /* as the file says */, kMean, kFirst /* the first token's row */, kLast };

// Movable, not thread-safe; owns threads of its own.
class Embedder {
 public:
  // As Session::Open, with its errors; kUnsupported also for a model that is no encoder.
  static Result<Embedder> Open(const std::string& path, const Options& options = {});
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;
  ~Embedder();

  int64_t width() const;    // numbers of a vector
  int64_t context() const;  // tokens that a text may have
  Result<Tokenizer> tokenizer() const;

  // The vector of a text [width], of length 1. Errors: those of the tokenizer, and of Rows.
  Result<std::vector<float>> Embed(std::string_view text, Pooling pooling = Pooling::kModel);
  Result<std::vector<float>> Embed(std::span<const int32_t> ids, Pooling pooling = Pooling::kModel);
  // The rows of all tokens [ids, width], as the model gives them. Errors: kInvalid (no ids, an id out of range, more
  // than the context), kResource, kCancelled.
  Result<std::vector<float>> Rows(std::span<const int32_t> ids);

 private:
  struct State;
  explicit Embedder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern
