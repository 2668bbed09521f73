// A Llama file of a few hundred bytes, built in memory, whose metadata a test may change or drop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "import/gguf.h"
#include "support/gguf_bytes.h"

namespace quern::models {

struct TinyLlama {
  // Integers are written as u32, numbers as f32.
  std::map<std::string, std::variant<uint32_t, float, std::string>> metadata = {
      {"general.architecture", "llama"},     {"llama.context_length", 29u},
      {"llama.embedding_length", 12u},       {"llama.block_count", 1u},
      {"llama.feed_forward_length", 7u},     {"llama.attention.head_count", 3u},
      {"llama.attention.head_count_kv", 1u}, {"llama.attention.layer_norm_rms_epsilon", 1e-5f},
  };
  // Extents innermost first, as in the file; all F32.
  std::map<std::string, std::vector<uint64_t>> tensors = {
      {"token_embd.weight", {12, 11}},        {"output_norm.weight", {12}},       {"blk.0.attn_norm.weight", {12}},
      {"blk.0.attn_q.weight", {12, 12}},      {"blk.0.attn_k.weight", {12, 4}},   {"blk.0.attn_v.weight", {12, 4}},
      {"blk.0.attn_output.weight", {12, 12}}, {"blk.0.ffn_norm.weight", {12}},    {"blk.0.ffn_gate.weight", {12, 7}},
      {"blk.0.ffn_up.weight", {12, 7}},       {"blk.0.ffn_down.weight", {7, 12}},
  };

  // `storage` must outlive the file.
  std::shared_ptr<const GgufFile> File(std::vector<uint8_t>& storage) const {
    support::GgufBytes bytes;
    for (const auto& [key, value] : metadata) std::visit([&](const auto& v) { bytes.Put(key, v); }, value);
    for (const auto& [name, dims] : tensors) {
      uint64_t elements = 1;
      for (const uint64_t dim : dims) elements *= dim;
      bytes.AddTensor(name, dims, 0, std::vector<uint8_t>(elements * 4));
    }
    storage = bytes.Build();
    auto file = GgufFile::Parse(storage);
    return file.ok() ? std::make_shared<const GgufFile>(*std::move(file)) : nullptr;
  }
};

}  // namespace quern::models
