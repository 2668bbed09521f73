// config.json as metadata by GGUF's keys. The file is not trusted: what is there is typed, and what an architecture
// does not compute is refused, by its key.
#pragma once

#include <vector>

#include "import/hugging_face/family.h"
#include "import/hugging_face/json.h"
#include "import/metadata.h"

namespace quern::hugging_face {

// What config.json says beside metadata.
struct Configured {
  const Family* family = nullptr;
  bool tied = false,
       untied = false;  // what it says of the logits' rows: those of the embeddings, their own; neither: nothing
  // Factors by which pairs of a head turn slower, as tensors of GGUF files have them; empty: there are none.
  std::vector<float> rope_freqs, rope_long, rope_short;
};

// Puts its metadata. `config` is the whole file. Errors: Unimplemented, a family or a key's value that there is not;
// InvalidArgument, a value of a wrong type.
StatusOr<Configured> ReadConfig(const Json& config, Metadata& metadata);

// rope_theta, rope_scaling and rope_parameters. `text`: the part of config.json that is of the text model.
Status ReadRope(const Json& text, int64_t head_dim, Metadata& metadata, Configured& configured);

}  // namespace quern::hugging_face
