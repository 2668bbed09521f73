// llama_logits MODEL OUT.f32 IDS..: the logits of every id, by libllama on one thread with an f32 cache and without
// flash attention; with -e before MODEL, the embeddings instead; with the adapter of LLAMA_LORA, an environment
// variable, at the scale of LLAMA_LORA_SCALE. For record_architectures.py, which says how it is
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
  const int embed = argc > 1 && strcmp(argv[1], "-e") == 0;
  char** arg = argv + 1 + embed;
  const int count = argc - 3 - embed;
  if (count < 1) return 2;
  llama_log_set(Quiet, NULL);
  ggml_backend_load_all_from_path(getenv("LLAMA_BINS"));
  struct llama_model_params mp = llama_model_default_params();
  mp.n_gpu_layers = 0;
  struct llama_model* model = llama_model_load_from_file(arg[0], mp);
  if (model == NULL) return 3;
  struct llama_context_params cp = llama_context_default_params();
  const char* context = getenv("LLAMA_CONTEXT");
  cp.n_ctx = context ? (unsigned)atoi(context) : 64;
  cp.n_batch = cp.n_ubatch = 64;
  cp.n_threads = cp.n_threads_batch = 1;
  cp.type_k = cp.type_v = GGML_TYPE_F32;
  cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  cp.offload_kqv = cp.op_offload = false;
  cp.embeddings = embed;
  if (embed) cp.pooling_type = LLAMA_POOLING_TYPE_NONE;
  struct llama_context* c = llama_init_from_model(model, cp);
  if (c == NULL) return 4;
  if (getenv("LLAMA_LORA")) {
    struct llama_adapter_lora* adapter = llama_adapter_lora_init(model, getenv("LLAMA_LORA"));
    float scale = (float)atof(getenv("LLAMA_LORA_SCALE"));
    if (adapter == NULL || llama_set_adapters_lora(c, &adapter, 1, &scale)) return 6;
  }
  struct llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int i = 0; i < count; ++i) {
    batch.token[i] = atoi(arg[2 + i]);
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  if (embed ? llama_encode(c, batch) : llama_decode(c, batch)) return 5;
  const int width = embed ? llama_model_n_embd(model) : llama_vocab_n_tokens(llama_model_get_vocab(model));
  FILE* out = fopen(arg[1], "wb");
  for (int i = 0; i < count; ++i)
    fwrite(embed ? llama_get_embeddings_ith(c, i) : llama_get_logits_ith(c, i), sizeof(float), (size_t)width, out);
  return fclose(out);
}
