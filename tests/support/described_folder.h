// A small folder of Hugging Face's described in text, with what transformers computes for it:
// tests/golden/hugging_face, whose recorder (record_hugging_face.py) says what the lines are.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "import/tensor_file.h"

namespace quern::support {

struct DescribedFolder {
  std::string config;  // of config.json
  FileTensors tensors;
  int64_t context = 0;
  std::vector<int32_t> ids;
  std::vector<float> rows;  // of logits, or of an encoder, for each id

  // config.json, and the tensors in one file, or, of several, in as many with an index.
  void Write(const std::string& folder, size_t shards = 1) const;
};

// Error: a file that cannot be read, a line that says nothing.
StatusOr<DescribedFolder> ReadDescribedFolder(const std::string& path);
// The paths of all of them, sorted.
std::vector<std::string> DescribedFolders();
void WriteText(const std::string& path, const std::string& text);

}  // namespace quern::support
