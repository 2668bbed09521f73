#include "compiler/text_chunks.h"

#include <algorithm>

namespace quern::compiler {

StatusOr<OpenedModel> OpenForChunks(const std::string& path, Options& options) {
  constexpr int64_t kUsual = 512;
  QUERN_ASSIGN(OpenedModel opened, OpenModel(path, options));
  if (opened.spec.encoder) {
    return absl::UnimplementedError(
        absl::StrFormat("%s: the architecture %s is an encoder", path, opened.spec.architecture));
  }
  if (options.context != 0) return opened;
  options.context = std::min(kUsual, opened.spec.context);
  return OpenModel(path, options);
}

StatusOr<TextChunks> CutText(const OpenedModel& opened, std::string_view text, int64_t most, bool parse_special) {
  QUERN_ASSIGN(const auto tokenizer, TokenizerOf(opened.file, opened.spec.vocabulary));
  TextChunks chunks{tokenizer->Encode(text, {.add_special = true, .parse_special = parse_special}),
                    opened.spec.context};
  const auto tokens = static_cast<int64_t>(chunks.ids.size());
  if (tokens < chunks.chunk) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the text has %d tokens, less than a chunk of %d (--context)", tokens, chunks.chunk));
  }
  chunks.count = tokens / chunks.chunk;
  if (most > 0) chunks.count = std::min(chunks.count, most);
  if (!tokenizer->vocabulary().add_begin()) return chunks;
  for (int64_t c = 0; c < chunks.count; ++c) chunks.ids[c * chunks.chunk] = tokenizer->vocabulary().begin();
  return chunks;
}

}  // namespace quern::compiler
