// The golden file of ggml blocks: named arrays of a safetensors file, for tests.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "nlohmann/json.hpp"

namespace quern {

struct GoldenFile {
  MappedFile file;
  nlohmann::json header;
  size_t data = 0;  // where the arrays start

  // False when the models folder is absent.
  bool Open() {
    auto opened = MappedFile::Open(std::string(QUERN_MODELS_DIR) + "/ref/ggml_quant_golden.safetensors");
    if (!opened.ok()) return false;
    file = std::move(*opened);
    uint64_t length = 0;
    std::memcpy(&length, file.bytes().data(), 8);
    data = 8 + length;
    header = nlohmann::json::parse(file.bytes().data() + 8, file.bytes().data() + data);
    return true;
  }

  template <typename T>
  std::vector<T> Array(const std::string& name) const {
    const auto& offsets = header.at(name).at("data_offsets");
    const size_t begin = offsets[0], end = offsets[1];
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), file.bytes().data() + data + begin, end - begin);
    return values;
  }
};

}  // namespace quern
