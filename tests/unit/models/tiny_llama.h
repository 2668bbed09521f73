// A Llama file of a few hundred bytes, built in memory, whose metadata a test may change or drop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "import/gguf.h"

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
    storage.clear();
    auto put = [&](auto value) {
      const auto* data = reinterpret_cast<const uint8_t*>(&value);
      storage.insert(storage.end(), data, data + sizeof(value));
    };
    auto text = [&](std::string_view value) {
      put(uint64_t{value.size()});
      storage.insert(storage.end(), value.begin(), value.end());
    };
    put(uint32_t{0x46554747});
    put(uint32_t{3});
    put(uint64_t{tensors.size()});
    put(uint64_t{metadata.size()});
    for (const auto& [key, value] : metadata) {
      text(key);
      if (const auto* integer = std::get_if<uint32_t>(&value)) {
        put(uint32_t{4});
        put(*integer);
      } else if (const auto* number = std::get_if<float>(&value)) {
        put(uint32_t{6});
        put(*number);
      } else {
        put(uint32_t{8});
        text(std::get<std::string>(value));
      }
    }
    uint64_t offset = 0;
    for (const auto& [name, dims] : tensors) {
      text(name);
      put(static_cast<uint32_t>(dims.size()));
      uint64_t elements = 1;
      for (const uint64_t dim : dims) {
        put(dim);
        elements *= dim;
      }
      put(uint32_t{0});
      put(offset);
      offset += (elements * 4 + 31) / 32 * 32;
    }
    storage.resize((storage.size() + 31) / 32 * 32 + offset);
    auto file = GgufFile::Parse(storage);
    return file.ok() ? std::make_shared<const GgufFile>(*std::move(file)) : nullptr;
  }
};

}  // namespace quern::models
