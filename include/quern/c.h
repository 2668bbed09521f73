/* The runtime for C, and for languages that call C: graphs, models in ONNX and GGUF, programs, sessions, profiles.
 * <quern/quern.h> is the same for C++, and <quern/abi.h>, <quern/rt.h> and <quern/call.h> are for compiled models and
 * for ops of a caller's own: this one is called c.h so that nobody takes it for one of them. docs/c-api.md has a
 * walk through it, examples/graph.c and examples/generate.c are programs.
 *
 *   quern_session* session = NULL;
 *   quern_error* error = quern_session_open("model.gguf", NULL, NULL, &session);
 *   if (error != NULL) { fputs(quern_error_message(error), stderr); quern_error_free(error); return 1; }
 *   ...
 *   quern_session_free(session);
 *
 * Errors. What can fail returns NULL, or an error that the caller owns and frees; what it would have written is then
 * unchanged, except where a function says otherwise. A null pointer where one is not allowed, a count that does not go
 * with it, and text that is not what it should be are errors like any other (QUERN_CODE_INVALID), and nothing happens.
 * Functions that only tell something take null handles, and say 0, -1, "" or NULL. Nothing throws; without memory the
 * process ends.
 *
 * Ownership. Every handle has a _free, which takes NULL. Handles keep what they need of each other: a graph may be
 * freed before its programs, a session before its profiler. Texts and names are zero-terminated UTF-8; a `const char*`
 * that a function returns belongs to the handle that it is asked of and lives as long, unless a comment ends it sooner.
 * Memory of the caller's is used during the call alone, except the bytes of parameters (quern_graph_param).
 *
 * Threads. A handle, and what shares a graph, a program or a session with it (a profiler, a tensor in a run), is for
 * one thread at a time; different ones are independent. quern_cancel_ask may be called from any thread and from signal
 * handlers; errors and texts may be read by any number of threads. No function but those keeps state of its own.
 *
 * Options are a JSON object, or NULL for none: {"threads": 2, "cpu": "native"}. Unknown names and values of another
 * kind are errors that name them. A number that JSON has no word for is "inf", "-inf" or "nan". */
#ifndef QUERN_C_H_
#define QUERN_C_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "0.1.0". The functions below are symbols of the version QUERN_C_1 of libquern.so. */
const char* quern_version(void);

/* ---- errors and texts ---- */

typedef struct quern_error quern_error;

/* What quern::ErrorCode says, in its order (quern/result.h has when each comes). (quern/abi.h has QUERN_OK and others
 * of its own, for compiled models.) */
typedef enum quern_code {
  QUERN_CODE_NONE,
  QUERN_CODE_UNKNOWN_OP,
  QUERN_CODE_UNKNOWN_OPERAND,
  QUERN_CODE_INPUT_COUNT,
  QUERN_CODE_MISSING_BIAS,
  QUERN_CODE_SHAPE_MISMATCH,
  QUERN_CODE_DTYPE_MISMATCH,
  QUERN_CODE_UNBOUND_SYMBOL,
  QUERN_CODE_BAD_ATTRIBUTE,
  QUERN_CODE_DUPLICATE_NAME,
  QUERN_CODE_UNSUPPORTED,
  QUERN_CODE_MISSING,
  QUERN_CODE_UNKNOWN_NAME,
  QUERN_CODE_OUT_OF_RANGE,
  QUERN_CODE_SIZE_CONFLICT,
  QUERN_CODE_BUSY,
  QUERN_CODE_CANCELLED,
  QUERN_CODE_CHECK,
  QUERN_CODE_INVALID,
  QUERN_CODE_RESOURCE,
  QUERN_CODE_INTERNAL
} quern_code;

/* QUERN_CODE_NONE of NULL. */
quern_code quern_error_code(const quern_error* error);
/* The whole sentence; "" of NULL. */
const char* quern_error_message(const quern_error* error);
/* A part of the sentence: "op", "operand", "expected", "got", "where" or "suggestion"; "" where it does not apply, of
 * another name, and of NULL. */
const char* quern_error_part(const quern_error* error, const char* part);
void quern_error_free(quern_error* error);

/* Bytes that a function made; one more that is 0 follows them. */
typedef struct quern_text quern_text;
const char* quern_text_data(const quern_text* text); /* "" of NULL */
size_t quern_text_size(const quern_text* text);
void quern_text_free(quern_text* text);

/* ---- stopping runs ---- */

/* Asks runs of what was made with it to stop: they end with QUERN_CODE_CANCELLED. They may go on when it is freed. */
typedef struct quern_cancel quern_cancel;
quern_cancel* quern_cancel_new(void);
void quern_cancel_ask(quern_cancel* cancel);   /* from any thread, and from signal handlers */
void quern_cancel_reset(quern_cancel* cancel); /* runs that start from here on are not asked any more */
void quern_cancel_free(quern_cancel* cancel);

/* ---- graphs ---- */

typedef struct quern_graph quern_graph;
typedef struct quern_program quern_program;

/* A value inside a graph; {-1, 0} stands for an optional operand that is absent. */
typedef struct quern_value {
  int32_t node, result;
} quern_value;

/* Types are text, "f32[BATCH, 48]"; docs/ops.md lists blocks and ops. Where building fails the graph stays as it was
 * before the call, and goes on. NULL for a null name. */
quern_graph* quern_graph_new(const char* name);
void quern_graph_free(quern_graph* graph);
/* Text of ops or of blocks, or the bytes of quern_graph_binary (docs/graph-files.md); neither is trusted. */
quern_error* quern_graph_parse(const char* text, size_t size, quern_graph** graph);
/* A file: a model in ONNX, or a graph in text or binary form, with the values that the file names for parameters.
 * Options: "sizes" {"BATCH": 2}, of symbols, for ops that need numbers; "values" ["x=x.npy"], of inputs and parameters;
 * "fix_sizes" true, all sizes are those. */
quern_error* quern_graph_open(const char* path, const char* options, quern_graph** graph);

/* A size that each run may choose, from low to high (0 <= low <= high <= 2^31). */
quern_error* quern_graph_symbol(quern_graph* graph, const char* name, int64_t low, int64_t high);
/* A variant for these sizes of a symbol alone. */
quern_error* quern_graph_specialise(quern_graph* graph, const char* symbol, int64_t low, int64_t high);
quern_error* quern_graph_input(quern_graph* graph, const char* name, const char* type, quern_value* value);
/* A weight of constant sizes. `bytes` are read in place, also later: they outlive the graph's programs and stay as they
 * are. NULL and 0: they are given later, by one of the _bind functions, under the same terms. */
quern_error* quern_graph_param(quern_graph* graph, const char* name, const char* type, const void* bytes, size_t size,
                               quern_value* value);
quern_error* quern_graph_bind(quern_graph* graph, const char* param, const void* bytes, size_t size);
/* Data that is part of the graph: little-endian, dense, copied. */
quern_error* quern_graph_constant(quern_graph* graph, const char* type, const void* bytes, size_t size,
                                  quern_value* value);
/* A block (Linear, SwiGLU) or an extension, by name; an op (Add, MatMul), with its bodies where it has some. `values`:
 * the first `room` results go there; *count, where that is not NULL: how many there are. Attributes are JSON,
 * {"axis": -1}; `label`, which may be NULL, names it in errors and profiles. */
quern_error* quern_graph_block(quern_graph* graph, const char* block, const quern_value* inputs, size_t input_count,
                               const char* attributes, const char* label, quern_value* values, size_t room,
                               size_t* count);
quern_error* quern_graph_op(quern_graph* graph, const char* op, const quern_value* inputs, size_t input_count,
                            const char* attributes, const char* label, const quern_graph* const* bodies,
                            size_t body_count, quern_value* values, size_t room, size_t* count);
/* An op over operands of several dtypes, which are cast to their common one. */
quern_error* quern_graph_promoted(quern_graph* graph, const char* op, const quern_value* inputs, size_t input_count,
                                  const char* attributes, const char* label, quern_value* value);
/* Another graph inside this one: `inputs` take the place of its inputs; `values` as above are its outputs. */
quern_error* quern_graph_inline(quern_graph* graph, const quern_graph* other, const quern_value* inputs,
                                size_t input_count, const char* label, quern_value* values, size_t room, size_t* count);
quern_error* quern_graph_output(quern_graph* graph, const char* name, quern_value value);
/* `value` becomes what the input holds in the next run: state, which is not given to runs. */
quern_error* quern_graph_carry(quern_graph* graph, const char* input, quern_value value);

/* "f32[BATCH, 80]" of a value of this graph. */
quern_error* quern_graph_type(const quern_graph* graph, quern_value value, quern_text** type);
/* The graph as text of blocks, as bytes of ops, and as 32 hexadecimal digits that tell graphs apart. */
quern_error* quern_graph_text(const quern_graph* graph, quern_text** text);
quern_error* quern_graph_binary(const quern_graph* graph, quern_text** bytes);
quern_error* quern_graph_fingerprint(const quern_graph* graph, quern_text** digits);
/* Checks and compiles. `options`: the fields of quern::Options by name ("cpu", "threads", "compile_threads", "exact",
 * "kernels", "specialise", "cache", "cache_verify", "check", "check_folder", "perf_map", "debug_kernels", "device",
 * "context", "invariant"). `cancel` may be NULL. */
quern_error* quern_graph_compile(const quern_graph* graph, const char* options, const quern_cancel* cancel,
                                 quern_program** program);

/* ---- programs ---- */

void quern_program_free(quern_program* program);

typedef enum quern_port_kind { QUERN_INPUT, QUERN_OUTPUT, QUERN_PARAM, QUERN_STATE } quern_port_kind;

/* How many a program has, and of each, in the order of the graph, its name, type ("f32[BATCH, 80]") and dtype ("f32");
 * 0 and "" of NULL, of another kind and past the last. */
size_t quern_program_ports(const quern_program* program, quern_port_kind kind);
const char* quern_program_port_name(const quern_program* program, quern_port_kind kind, size_t index);
const char* quern_program_port_type(const quern_program* program, quern_port_kind kind, size_t index);
const char* quern_program_port_dtype(const quern_program* program, quern_port_kind kind, size_t index);

/* Memory of the caller's for an input or output: dense, row-major, aligned to its elements; bools are bytes. */
typedef struct quern_tensor {
  const char* name;
  void* data; /* of an input: read only */
  size_t bytes;
  const char* dtype; /* that of the elements, or NULL where the bytes speak for themselves */
  const int64_t* shape;
  size_t rank;
} quern_tensor;
/* A size that follows from no input. */
typedef struct quern_size {
  const char* symbol;
  int64_t value;
} quern_size;

/* The shape of output `output` in a run on inputs of these shapes, whose memory is not looked at: the first `room`
 * extents go to `shape`; *rank is how many there are. Where only data decide a size, it is the most that there may be,
 * which is what a run is given memory for. */
quern_error* quern_program_output_shape(const quern_program* program, const quern_tensor* inputs, size_t input_count,
                                        const quern_size* sizes, size_t size_count, size_t output, int64_t* shape,
                                        size_t room, size_t* rank);
/* The same of the last run that went well, with the sizes that it found: the elements lie dense at the start of the
 * memory that it was given. QUERN_CODE_MISSING before the first. */
quern_error* quern_program_last_shape(const quern_program* program, size_t output, int64_t* shape, size_t room,
                                      size_t* rank);
/* Computes every output from the inputs, each given once, in any order. Outputs overlap nothing. After an error no
 * output and no state has changed, but after QUERN_CODE_CANCELLED, where they may hold anything, and of a loop that
 * needs more trips than its most (QUERN_CODE_OUT_OF_RANGE), where outputs may. A program that is running is
 * QUERN_CODE_BUSY. */
quern_error* quern_program_run(quern_program* program, const quern_tensor* inputs, size_t input_count,
                               const quern_tensor* outputs, size_t output_count, const quern_size* sizes,
                               size_t size_count);
/* Another memory for a parameter, under the terms of quern_graph_param. */
quern_error* quern_program_bind(quern_program* program, const char* param, const void* bytes, size_t size);
/* The memory of a carried input, of the largest size that it may have; zero at first. Until the program is freed. */
quern_error* quern_program_state(quern_program* program, const char* name, void** data, size_t* bytes);
quern_error* quern_program_reset_state(quern_program* program);
/* What the program holds and what its last run took: a JSON object of the fields of quern::Program::Counters. */
quern_error* quern_program_counters(const quern_program* program, quern_text** json);

/* ---- language models ---- */

typedef struct quern_session quern_session;
typedef struct quern_token_sampler quern_token_sampler;

/* A GGUF file or a folder of safetensors; options as of quern_graph_compile, and "lora": a list of LoRA adapters, each
 * "FILE" or ["FILE", scale]. The files stay as they are meanwhile. */
quern_error* quern_session_open(const char* path, const char* options, const quern_cancel* cancel,
                                quern_session** session);
void quern_session_free(quern_session* session);

int64_t quern_session_vocabulary(const quern_session* session);      /* logits of a position */
int64_t quern_session_context(const quern_session* session);         /* positions that the cache holds */
int64_t quern_session_position(const quern_session* session);        /* tokens in the cache */
int64_t quern_session_trained_context(const quern_session* session); /* 0: the file does not say */
int quern_session_threads(const quern_session* session);
/* Seconds by what they went to: a JSON object of the fields of quern::Timings. */
quern_error* quern_session_timings(const quern_session* session, quern_text** json);

/* The ids of `size` bytes of text: the first `room` of them go to `ids`; *count is how many there are. `begin`: with
 * the model's begin token; `special`: control tokens in the text become their ids. */
quern_error* quern_session_tokenize(const quern_session* session, const char* text, size_t size, bool begin,
                                    bool special, int32_t* ids, size_t room, size_t* count);
/* The bytes of a token, which may be part of a character; none for control tokens and ids out of range. */
quern_error* quern_session_piece(const quern_session* session, int32_t id, quern_text** piece);
/* Whether generation ends after this token. */
bool quern_session_is_end(const quern_session* session, int32_t id);

/* Runs the ids at the current position. `logits`: room for the vocabulary, after the last id; of _step_all, for one row
 * after each id. `room` is in floats and exactly that. After QUERN_CODE_CANCELLED and QUERN_CODE_RESOURCE the position
 * tells which ids are in the cache. */
quern_error* quern_session_step(quern_session* session, const int32_t* ids, size_t count, float* logits, size_t room);
quern_error* quern_session_step_all(quern_session* session, const int32_t* ids, size_t count, float* logits,
                                    size_t room);
/* Back to an empty cache; back to where it held `position` tokens. */
quern_error* quern_session_reset(quern_session* session);
quern_error* quern_session_rewind(quern_session* session, int64_t position);
/* The keys and values of the tokens so far as bytes, and a session that holds those instead of its own. They go with a
 * model of the same layers and extents; which weights made them is not looked at. */
quern_error* quern_session_save(const quern_session* session, quern_text** bytes);
quern_error* quern_session_load(quern_session* session, const void* bytes, size_t size);

/* Draws tokens. Options: the fields of quern::SamplingOptions by name ("temperature", "top_k", "top_p", "seed", ...,
 * "logit_bias" [[id, bias], ...], "dry_breakers" ["text", ...], "grammar"); none: the most likely token. `session`:
 * whose tokens are drawn, for a grammar and, with "dry_multiplier", for dry_breakers; or NULL. */
quern_error* quern_token_sampler_new(const char* options, const quern_session* session, quern_token_sampler** sampler);
void quern_token_sampler_free(quern_token_sampler* sampler);
quern_error* quern_token_sampler_draw(quern_token_sampler* sampler, const float* logits, size_t count, int32_t* id);
/* Tokens that came before and were not drawn; another text begins. */
quern_error* quern_token_sampler_observe(quern_token_sampler* sampler, const int32_t* ids, size_t count);
quern_error* quern_token_sampler_forget(quern_token_sampler* sampler);
/* Whether what was drawn is a whole text of the grammar; true without one, false of NULL. */
bool quern_token_sampler_complete(const quern_token_sampler* sampler);

/* ---- profiles ---- */

/* Records the runs of a session or program, which has one profiler at a time, until it is freed. Options: "counters",
 * "probe" (quern/profile.h). */
typedef struct quern_profiler quern_profiler;
quern_error* quern_profiler_of_session(quern_session* session, const char* options, quern_profiler** profiler);
quern_error* quern_profiler_of_program(quern_program* program, const char* options, quern_profiler** profiler);
void quern_profiler_free(quern_profiler* profiler);
/* What the runs from here on are called; `warm_up`: left out of the figures. */
quern_error* quern_profiler_phase(quern_profiler* profiler, const char* name, bool warm_up);
quern_error* quern_profiler_clear(quern_profiler* profiler);
/* What was recorded, as "table", "json", "trace" (for Perfetto) or "html". */
quern_error* quern_profiler_report(quern_profiler* profiler, const char* form, quern_text** report);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_C_H_ */
