// llama_tokens MODEL CASES OUT: the ids of each text of CASES, a line each, by libllama without begin or end tokens and
// without special tokens. Texts end in "\n__ggml_vocab_test__\n". For record_vocabularies.py, which says how it is
// built.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "llama.h"

static void Quiet(enum ggml_log_level level, const char* text, void* unused) {
  (void)unused;
  if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

int main(int argc, char** argv) {
  static const char kMarker[] = "\n__ggml_vocab_test__\n";
  if (argc != 4) return 2;
  llama_log_set(Quiet, NULL);
  struct llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  struct llama_model* model = llama_model_load_from_file(argv[1], params);
  if (model == NULL) return 3;
  const struct llama_vocab* vocab = llama_model_get_vocab(model);
  static char text[1 << 16];
  FILE* in = fopen(argv[2], "rb");
  text[fread(text, 1, sizeof text - 1, in)] = 0;
  fclose(in);
  FILE* out = fopen(argv[3], "w");
  for (char* at = text; *at;) {
    char* end = strstr(at, kMarker);
    if (end == NULL) end = at + strlen(at);
    llama_token ids[4096];
    const int count = llama_tokenize(vocab, at, (int)(end - at), ids, 4096, false, false);
    if (count < 0) return 4;
    for (int i = 0; i < count; ++i) fprintf(out, " %d", ids[i]);
    fprintf(out, "\n");
    at = *end ? end + sizeof kMarker - 1 : end;
  }
  return fclose(out);
}
