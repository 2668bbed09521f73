/* Every function of quern/c.h: as it is meant, with null where that is not allowed, and with arguments that are wrong.
 * Prints what fails and where, and how many checks there were.
 *
 *   c_api MODEL.gguf MODEL.onnx FOLDER     files are written to the folder
 */
#include <quern/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, checks;

static void check(int good, const char* what, int line) {
  ++checks;
  if (good) return;
  ++failures;
  fprintf(stderr, "c_api.c:%d: %s\n", line, what);
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

/* No error. */
static void succeeds(quern_error* error, const char* what, int line) {
  if (error != NULL) fprintf(stderr, "  %s\n", quern_error_message(error));
  check(error == NULL, what, line);
  quern_error_free(error);
}
#define OK(call) succeeds(call, #call, __LINE__)

/* This error, whose sentence has `part` in it. */
static void fails(quern_error* error, quern_code code, const char* part, const char* what, int line) {
  const int good = quern_error_code(error) == code && strstr(quern_error_message(error), part) != NULL;
  if (!good) fprintf(stderr, "  %d: %s\n", quern_error_code(error), quern_error_message(error));
  check(good, what, line);
  quern_error_free(error);
}
#define FAILS(code, part, call) fails(call, code, part, #call, __LINE__)
/* An argument is null: the sentence names the function and the argument. */
#define IS_NULL(argument, call) FAILS(QUERN_CODE_INVALID, argument " is null", call)

static int text_is(quern_text* text, const char* expected) {
  const int good = quern_text_size(text) == strlen(expected) && strcmp(quern_text_data(text), expected) == 0;
  if (!good) fprintf(stderr, "  \"%s\"\n", quern_text_data(text));
  quern_text_free(text);
  return good;
}
static int text_has(quern_text* text, const char* part) {
  const int good = strstr(quern_text_data(text), part) != NULL;
  if (!good) fprintf(stderr, "  \"%.300s\"\n", quern_text_data(text));
  quern_text_free(text);
  return good;
}

static void errors_and_texts(void) {
  CHECK(strncmp(quern_version(), "0.", 2) == 0);
  CHECK(quern_error_code(NULL) == QUERN_CODE_NONE);
  CHECK(strcmp(quern_error_message(NULL), "") == 0);
  CHECK(strcmp(quern_error_part(NULL, "op"), "") == 0);
  quern_error_free(NULL);
  CHECK(strcmp(quern_text_data(NULL), "") == 0);
  CHECK(quern_text_size(NULL) == 0);
  quern_text_free(NULL);
  quern_cancel_ask(NULL);
  quern_cancel_reset(NULL);
  quern_cancel_free(NULL);

  quern_graph* graph = quern_graph_new("parts");
  quern_value x, y;
  OK(quern_graph_input(graph, "x", "f32[5, 7]", &x));
  quern_error* error = quern_graph_op(graph, "Softmx", &x, 1, NULL, NULL, NULL, 0, &y, 1, NULL);
  CHECK(quern_error_code(error) == QUERN_CODE_UNKNOWN_OP);
  CHECK(strcmp(quern_error_part(error, "suggestion"), "Softmax") == 0);
  CHECK(strcmp(quern_error_part(error, "nothing"), "") == 0);
  CHECK(strcmp(quern_error_part(error, NULL), "") == 0);
  quern_error_free(error);
  quern_value operands[2];
  operands[0] = x;
  OK(quern_graph_input(graph, "w", "f32[11, 3]", &operands[1]));
  error = quern_graph_op(graph, "MatMul", operands, 2, NULL, "layer", NULL, 0, &y, 1, NULL);
  CHECK(quern_error_code(error) == QUERN_CODE_SHAPE_MISMATCH);
  CHECK(strcmp(quern_error_part(error, "op"), "MatMul") == 0);
  CHECK(strcmp(quern_error_part(error, "where"), "layer") == 0);
  CHECK(quern_error_part(error, "operand")[0] != 0 && quern_error_part(error, "expected")[0] != 0);
  CHECK(quern_error_part(error, "got")[0] != 0);
  quern_error_free(error);
  quern_graph_free(graph);
}

static void build(void) {
  CHECK(quern_graph_new(NULL) == NULL);
  quern_graph_free(NULL);
  quern_graph* g = quern_graph_new("g");
  quern_value x = {-7, -7}, w, b, c, y, many[3];
  const float weights[2 * 3] = {1, 0, -1, 0, 2, 1}, bias[3] = {0.5f, 0, -0.5f}, two = 2;

  IS_NULL("graph", quern_graph_symbol(NULL, "N", 1, 2));
  IS_NULL("name", quern_graph_symbol(g, NULL, 1, 2));
  FAILS(QUERN_CODE_OUT_OF_RANGE, "3..2", quern_graph_symbol(g, "N", 3, 2));
  OK(quern_graph_symbol(g, "N", 1, 64));
  FAILS(QUERN_CODE_DUPLICATE_NAME, "N", quern_graph_symbol(g, "N", 1, 64));
  IS_NULL("graph", quern_graph_specialise(NULL, "N", 1, 2));
  IS_NULL("symbol", quern_graph_specialise(g, NULL, 1, 2));
  FAILS(QUERN_CODE_UNBOUND_SYMBOL, "M", quern_graph_specialise(g, "M", 1, 2));
  OK(quern_graph_specialise(g, "N", 4, 4));

  IS_NULL("graph", quern_graph_input(NULL, "x", "f32[N, 2]", &x));
  IS_NULL("name", quern_graph_input(g, NULL, "f32[N, 2]", &x));
  IS_NULL("type", quern_graph_input(g, "x", NULL, &x));
  IS_NULL("value", quern_graph_input(g, "x", "f32[N, 2]", NULL));
  FAILS(QUERN_CODE_INVALID, "x", quern_graph_input(g, "x", "f32[N", &x));
  CHECK(x.node == -7); /* unchanged after errors */
  OK(quern_graph_input(g, "x", "f32[N, 2]", &x));

  IS_NULL("graph", quern_graph_param(NULL, "w", "f32[2, 3]", weights, sizeof weights, &w));
  IS_NULL("name", quern_graph_param(g, NULL, "f32[2, 3]", weights, sizeof weights, &w));
  IS_NULL("type", quern_graph_param(g, "w", NULL, weights, sizeof weights, &w));
  IS_NULL("value", quern_graph_param(g, "w", "f32[2, 3]", weights, sizeof weights, NULL));
  IS_NULL("bytes", quern_graph_param(g, "w", "f32[2, 3]", NULL, sizeof weights, &w));
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "24", quern_graph_param(g, "short", "f32[2, 3]", weights, 23, &w));
  OK(quern_graph_param(g, "w", "f32[2, 3]", weights, sizeof weights, &w));
  OK(quern_graph_param(g, "b", "f32[3]", NULL, 0, &b));
  IS_NULL("graph", quern_graph_bind(NULL, "b", bias, sizeof bias));
  IS_NULL("param", quern_graph_bind(g, NULL, bias, sizeof bias));
  IS_NULL("bytes", quern_graph_bind(g, "b", NULL, sizeof bias));
  FAILS(QUERN_CODE_UNKNOWN_NAME, "beta", quern_graph_bind(g, "beta", bias, sizeof bias));
  OK(quern_graph_bind(g, "b", bias, sizeof bias));

  IS_NULL("graph", quern_graph_constant(NULL, "f32[]", &two, 4, &c));
  IS_NULL("type", quern_graph_constant(g, NULL, &two, 4, &c));
  IS_NULL("bytes", quern_graph_constant(g, "f32[]", NULL, 4, &c));
  IS_NULL("value", quern_graph_constant(g, "f32[]", &two, 4, NULL));
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "3 bytes", quern_graph_constant(g, "f32[]", &two, 3, &c));
  OK(quern_graph_constant(g, "f32[]", &two, 4, &c));

  const quern_value linear[3] = {x, w, b};
  const char* biased = "{\"bias\": true}";
  size_t count = 9;
  IS_NULL("graph", quern_graph_block(NULL, "Linear", linear, 3, biased, NULL, &y, 1, NULL));
  IS_NULL("block", quern_graph_block(g, NULL, linear, 3, biased, NULL, &y, 1, NULL));
  IS_NULL("inputs", quern_graph_block(g, "Linear", NULL, 3, biased, NULL, &y, 1, NULL));
  IS_NULL("values", quern_graph_block(g, "Linear", linear, 3, biased, NULL, NULL, 1, NULL));
  FAILS(QUERN_CODE_INVALID, "no JSON", quern_graph_block(g, "Linear", linear, 3, "{bias", NULL, &y, 1, NULL));
  FAILS(QUERN_CODE_INVALID, "no JSON object", quern_graph_block(g, "Linear", linear, 3, "[1]", NULL, &y, 1, NULL));
  FAILS(QUERN_CODE_INVALID, "\"bias\"", quern_graph_block(g, "Linear", linear, 3, "{\"bias\": {}}", NULL, &y, 1, NULL));
  FAILS(QUERN_CODE_BAD_ATTRIBUTE, "bais",
        quern_graph_block(g, "Linear", linear, 3, "{\"bais\": 1}", NULL, &y, 1, NULL));
  FAILS(QUERN_CODE_UNKNOWN_OP, "Linaer", quern_graph_block(g, "Linaer", linear, 3, NULL, NULL, &y, 1, NULL));
  const quern_value nowhere[3] = {x, {99, 0}, b};
  FAILS(QUERN_CODE_UNKNOWN_OPERAND, "", quern_graph_block(g, "Linear", nowhere, 3, biased, NULL, &y, 1, NULL));
  CHECK(count == 9);
  OK(quern_graph_block(g, "Linear", linear, 3, biased, "up", &y, 1, &count));
  CHECK(count == 1);

  const quern_value add[2] = {y, c};
  IS_NULL("graph", quern_graph_op(NULL, "Add", add, 2, NULL, NULL, NULL, 0, &y, 1, NULL));
  IS_NULL("op", quern_graph_op(g, NULL, add, 2, NULL, NULL, NULL, 0, &y, 1, NULL));
  IS_NULL("inputs", quern_graph_op(g, "Add", NULL, 2, NULL, NULL, NULL, 0, &y, 1, NULL));
  IS_NULL("bodies", quern_graph_op(g, "Add", add, 2, NULL, NULL, NULL, 1, &y, 1, NULL));
  const quern_graph* no_body = NULL;
  IS_NULL("a body", quern_graph_op(g, "Add", add, 2, NULL, NULL, &no_body, 1, &y, 1, NULL));
  FAILS(QUERN_CODE_INPUT_COUNT, "", quern_graph_op(g, "Add", add, 1, NULL, NULL, NULL, 0, &y, 1, NULL));
  FAILS(QUERN_CODE_BAD_ATTRIBUTE, "axis",
        quern_graph_op(g, "Softmax", add, 1, "{\"axis\": 7}", NULL, NULL, 0, &y, 1, NULL));
  OK(quern_graph_op(g, "Add", add, 2, NULL, NULL, NULL, 0, &y, 1, NULL));
  /* Two results, of which one has room, then none. */
  OK(quern_graph_op(g, "TopK", &y, 1, "{\"k\": 2}", NULL, NULL, 0, many, 1, &count));
  CHECK(count == 2);
  OK(quern_graph_op(g, "TopK", &y, 1, "{\"k\": 2}", NULL, NULL, 0, NULL, 0, &count));
  const char* pad = "{\"low\": [0, 1], \"high\": [0, 0], \"value\": \"-inf\"}";
  OK(quern_graph_op(g, "Pad", &y, 1, pad, NULL, NULL, 0, many, 1, NULL));

  quern_value whole, sum;
  const int32_t three = 3;
  OK(quern_graph_constant(g, "i32[]", &three, 4, &whole));
  const quern_value mixed[2] = {y, whole};
  IS_NULL("graph", quern_graph_promoted(NULL, "Add", mixed, 2, NULL, NULL, &sum));
  IS_NULL("op", quern_graph_promoted(g, NULL, mixed, 2, NULL, NULL, &sum));
  IS_NULL("inputs", quern_graph_promoted(g, "Add", NULL, 2, NULL, NULL, &sum));
  IS_NULL("value", quern_graph_promoted(g, "Add", mixed, 2, NULL, NULL, NULL));
  FAILS(QUERN_CODE_DTYPE_MISMATCH, "", quern_graph_op(g, "Add", mixed, 2, NULL, NULL, NULL, 0, &sum, 1, NULL));
  OK(quern_graph_promoted(g, "Add", mixed, 2, NULL, NULL, &sum));

  /* A graph inside the graph. */
  quern_graph* inner = quern_graph_new("inner");
  quern_value ix, iy;
  OK(quern_graph_symbol(inner, "M", 1, 64));
  OK(quern_graph_input(inner, "a", "f32[M, 3]", &ix));
  OK(quern_graph_op(inner, "Neg", &ix, 1, NULL, NULL, NULL, 0, &iy, 1, NULL));
  OK(quern_graph_output(inner, "b", iy));
  IS_NULL("graph", quern_graph_inline(NULL, inner, &sum, 1, NULL, &y, 1, NULL));
  IS_NULL("other", quern_graph_inline(g, NULL, &sum, 1, NULL, &y, 1, NULL));
  IS_NULL("inputs", quern_graph_inline(g, inner, NULL, 1, NULL, &y, 1, NULL));
  FAILS(QUERN_CODE_INPUT_COUNT, "", quern_graph_inline(g, inner, &sum, 0, NULL, &y, 1, NULL));
  OK(quern_graph_inline(g, inner, &sum, 1, NULL, &y, 1, &count));
  CHECK(count == 1);
  quern_graph_free(inner);

  IS_NULL("graph", quern_graph_output(NULL, "y", y));
  IS_NULL("name", quern_graph_output(g, NULL, y));
  FAILS(QUERN_CODE_UNKNOWN_OPERAND, "", quern_graph_output(g, "y", (quern_value){123, 0}));
  OK(quern_graph_output(g, "y", y));
  FAILS(QUERN_CODE_DUPLICATE_NAME, "y", quern_graph_output(g, "y", y));
  /* State: how many runs there were. */
  quern_value runs, next;
  const float one = 1;
  OK(quern_graph_input(g, "runs", "f32[]", &runs));
  OK(quern_graph_constant(g, "f32[]", &one, 4, &c));
  const quern_value counting[2] = {runs, c};
  OK(quern_graph_op(g, "Add", counting, 2, NULL, NULL, NULL, 0, &next, 1, NULL));
  IS_NULL("graph", quern_graph_carry(NULL, "runs", next));
  IS_NULL("input", quern_graph_carry(g, NULL, next));
  FAILS(QUERN_CODE_UNKNOWN_OPERAND, "", quern_graph_carry(g, "runs", (quern_value){-1, 0}));
  OK(quern_graph_carry(g, "runs", next));

  quern_text* text = NULL;
  IS_NULL("graph", quern_graph_type(NULL, y, &text));
  IS_NULL("type", quern_graph_type(g, y, NULL));
  FAILS(QUERN_CODE_INVALID, "%77.0", quern_graph_type(g, (quern_value){77, 0}, &text));
  OK(quern_graph_type(g, y, &text));
  CHECK(text_is(text, "f32[N, 3]"));
  IS_NULL("graph", quern_graph_text(NULL, &text));
  IS_NULL("text", quern_graph_text(g, NULL));
  OK(quern_graph_text(g, &text));
  CHECK(strstr(quern_text_data(text), "Linear(") != NULL);
  IS_NULL("graph", quern_graph_fingerprint(NULL, &text));
  IS_NULL("digits", quern_graph_fingerprint(g, NULL));
  IS_NULL("graph", quern_graph_binary(NULL, &text));
  IS_NULL("bytes", quern_graph_binary(g, NULL));

  /* Text and bytes, there and back. */
  quern_text *bytes = NULL, *prints[3] = {NULL, NULL, NULL};
  quern_graph *of_text = NULL, *of_bytes = NULL;
  IS_NULL("text", quern_graph_parse(NULL, 3, &of_text));
  IS_NULL("graph", quern_graph_parse("graph", 5, NULL));
  FAILS(QUERN_CODE_INVALID, "", quern_graph_parse("graph g {", 9, &of_text));
  FAILS(QUERN_CODE_INVALID, "", quern_graph_parse("QUERNGRF", 8, &of_text));
  CHECK(of_text == NULL);
  OK(quern_graph_parse(quern_text_data(text), quern_text_size(text), &of_text));
  OK(quern_graph_binary(g, &bytes));
  OK(quern_graph_parse(quern_text_data(bytes), quern_text_size(bytes), &of_bytes));
  OK(quern_graph_fingerprint(g, &prints[0]));
  OK(quern_graph_fingerprint(of_text, &prints[1]));
  OK(quern_graph_fingerprint(of_bytes, &prints[2]));
  CHECK(quern_text_size(prints[0]) == 32);
  CHECK(strcmp(quern_text_data(prints[0]), quern_text_data(prints[1])) == 0);
  CHECK(strcmp(quern_text_data(prints[0]), quern_text_data(prints[2])) == 0);
  for (int i = 0; i < 3; ++i) quern_text_free(prints[i]);
  quern_text_free(text);
  quern_text_free(bytes);
  quern_graph_free(of_text);
  quern_graph_free(of_bytes);

  /* Compiling and running. */
  quern_program* p = NULL;
  IS_NULL("graph", quern_graph_compile(NULL, NULL, NULL, &p));
  IS_NULL("program", quern_graph_compile(g, NULL, NULL, NULL));
  FAILS(QUERN_CODE_INVALID, "\"thread\"", quern_graph_compile(g, "{\"thread\": 1}", NULL, &p));
  FAILS(QUERN_CODE_INVALID, "a whole number", quern_graph_compile(g, "{\"threads\": \"1\"}", NULL, &p));
  FAILS(QUERN_CODE_INVALID, "a whole number", quern_graph_compile(g, "{\"threads\": 3000000000}", NULL, &p));
  FAILS(QUERN_CODE_INVALID, "true or false", quern_graph_compile(g, "{\"exact\": 1}", NULL, &p));
  FAILS(QUERN_CODE_INVALID, "a string", quern_graph_compile(g, "{\"cpu\": 1}", NULL, &p));
  FAILS(QUERN_CODE_INVALID, "pentium", quern_graph_compile(g, "{\"cpu\": \"pentium\"}", NULL, &p));
  CHECK(p == NULL);
  quern_cancel* cancel = quern_cancel_new();
  OK(quern_graph_compile(g, "{\"threads\": 1, \"cache\": \"off\"}", cancel, &p));
  quern_graph_free(g);

  CHECK(quern_program_ports(NULL, QUERN_INPUT) == 0);
  CHECK(quern_program_ports(p, (quern_port_kind)9) == 0);
  CHECK(quern_program_ports(p, QUERN_INPUT) == 1);
  CHECK(quern_program_ports(p, QUERN_OUTPUT) == 1);
  CHECK(quern_program_ports(p, QUERN_PARAM) == 2);
  CHECK(quern_program_ports(p, QUERN_STATE) == 1);
  CHECK(strcmp(quern_program_port_name(p, QUERN_STATE, 0), "runs") == 0);
  CHECK(strcmp(quern_program_port_name(p, QUERN_STATE, 1), "") == 0);
  CHECK(strcmp(quern_program_port_name(NULL, QUERN_STATE, 0), "") == 0);
  CHECK(strcmp(quern_program_port_type(p, QUERN_INPUT, 0), "f32[N, 2]") == 0);
  CHECK(strcmp(quern_program_port_type(p, QUERN_INPUT, 1), "") == 0);
  CHECK(strcmp(quern_program_port_type(NULL, QUERN_INPUT, 0), "") == 0);
  CHECK(strcmp(quern_program_port_dtype(p, QUERN_OUTPUT, 0), "f32") == 0);
  CHECK(strcmp(quern_program_port_dtype(p, QUERN_OUTPUT, 1), "") == 0);
  CHECK(strcmp(quern_program_port_dtype(p, (quern_port_kind)-1, 0), "") == 0);
  CHECK(strcmp(quern_program_port_dtype(NULL, QUERN_OUTPUT, 0), "") == 0);

  float in[2 * 2] = {1, 2, 3, -4}, out[2 * 3] = {7, 7, 7, 7, 7, 7};
  const int64_t in_shape[2] = {2, 2}, out_shape[2] = {2, 3};
  quern_tensor input = {"x", in, sizeof in, "f32", in_shape, 2}, output = {"y", out, sizeof out, "f32", out_shape, 2};
  int64_t shape[2] = {0, 0};
  size_t rank = 0;
  IS_NULL("program", quern_program_output_shape(NULL, &input, 1, NULL, 0, 0, shape, 2, &rank));
  IS_NULL("inputs", quern_program_output_shape(p, NULL, 1, NULL, 0, 0, shape, 2, &rank));
  IS_NULL("sizes", quern_program_output_shape(p, &input, 1, NULL, 1, 0, shape, 2, &rank));
  IS_NULL("shape", quern_program_output_shape(p, &input, 1, NULL, 0, 0, NULL, 2, &rank));
  IS_NULL("rank", quern_program_output_shape(p, &input, 1, NULL, 0, 0, shape, 2, NULL));
  FAILS(QUERN_CODE_INVALID, "no output 1", quern_program_output_shape(p, &input, 1, NULL, 0, 1, shape, 2, &rank));
  FAILS(QUERN_CODE_MISSING, "x", quern_program_output_shape(p, NULL, 0, NULL, 0, 0, shape, 2, &rank));
  OK(quern_program_output_shape(p, &input, 1, NULL, 0, 0, shape, 1, &rank));
  CHECK(rank == 2 && shape[0] == 2 && shape[1] == 0);
  OK(quern_program_output_shape(p, &input, 1, NULL, 0, 0, shape, 2, &rank));
  CHECK(shape[1] == 3);
  FAILS(QUERN_CODE_MISSING, "run", quern_program_last_shape(p, 0, shape, 2, &rank));

  IS_NULL("program", quern_program_run(NULL, &input, 1, &output, 1, NULL, 0));
  IS_NULL("inputs", quern_program_run(p, NULL, 1, &output, 1, NULL, 0));
  IS_NULL("outputs", quern_program_run(p, &input, 1, NULL, 1, NULL, 0));
  IS_NULL("sizes", quern_program_run(p, &input, 1, &output, 1, NULL, 1));
  const quern_size unnamed = {NULL, 3}, other = {"M", 3}, conflict = {"N", 3};
  IS_NULL("sizes[0].symbol", quern_program_run(p, &input, 1, &output, 1, &unnamed, 1));
  FAILS(QUERN_CODE_UNKNOWN_NAME, "M", quern_program_run(p, &input, 1, &output, 1, &other, 1));
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "N = 3", quern_program_run(p, &input, 1, &output, 1, &conflict, 1));
  quern_tensor wrong = input;
  wrong.name = NULL;
  IS_NULL("inputs[0].name", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.shape = NULL;
  IS_NULL("inputs[0].shape", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.data = NULL;
  FAILS(QUERN_CODE_MISSING, "memory of input x", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.rank = 1;
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "x", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.bytes = 15;
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "15 bytes", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.dtype = "f64";
  FAILS(QUERN_CODE_DTYPE_MISMATCH, "f64", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = input, wrong.data = (char*)in + 1;
  FAILS(QUERN_CODE_INVALID, "aligned", quern_program_run(p, &wrong, 1, &output, 1, NULL, 0));
  wrong = output, wrong.data = in, wrong.bytes = sizeof out;
  FAILS(QUERN_CODE_INVALID, "overlaps", quern_program_run(p, &input, 1, &wrong, 1, NULL, 0));
  FAILS(QUERN_CODE_MISSING, "output y", quern_program_run(p, &input, 1, NULL, 0, NULL, 0));
  CHECK(out[0] == 7);
  quern_cancel_ask(cancel);
  FAILS(QUERN_CODE_CANCELLED, "", quern_program_run(p, &input, 1, &output, 1, NULL, 0));
  quern_cancel_reset(cancel);
  quern_cancel_free(cancel); /* the program still looks at it */
  OK(quern_program_reset_state(p));
  IS_NULL("program", quern_program_reset_state(NULL));
  OK(quern_program_run(p, &input, 1, &output, 1, NULL, 0));
  /* -(x W + b + 2 + 3) */
  const float expected[6] = {-6.5f, -9, -5.5f, -8.5f, 3, 2.5f};
  for (int i = 0; i < 6; ++i) CHECK(out[i] == expected[i]);

  void* state = NULL;
  size_t size = 0;
  IS_NULL("program", quern_program_state(NULL, "runs", &state, &size));
  IS_NULL("name", quern_program_state(p, NULL, &state, &size));
  IS_NULL("data", quern_program_state(p, "runs", NULL, &size));
  IS_NULL("bytes", quern_program_state(p, "runs", &state, NULL));
  FAILS(QUERN_CODE_UNKNOWN_NAME, "walks", quern_program_state(p, "walks", &state, &size));
  OK(quern_program_state(p, "runs", &state, &size));
  CHECK(size == 4 && *(const float*)state == 1);

  const float zeros[3] = {0, 0, 0};
  IS_NULL("program", quern_program_bind(NULL, "b", zeros, sizeof zeros));
  IS_NULL("param", quern_program_bind(p, NULL, zeros, sizeof zeros));
  IS_NULL("bytes", quern_program_bind(p, "b", NULL, sizeof zeros));
  FAILS(QUERN_CODE_UNKNOWN_NAME, "c", quern_program_bind(p, "c", zeros, sizeof zeros));
  FAILS(QUERN_CODE_SHAPE_MISMATCH, "", quern_program_bind(p, "b", zeros, 8));
  OK(quern_program_bind(p, "b", zeros, sizeof zeros));
  OK(quern_program_run(p, &input, 1, &output, 1, NULL, 0));
  CHECK(out[0] == -6 && out[2] == -6);

  IS_NULL("program", quern_program_counters(NULL, &text));
  IS_NULL("json", quern_program_counters(p, NULL));
  OK(quern_program_counters(p, &text));
  CHECK(text_has(text, "\"launches\":"));

  /* A profile, which outlives the handle of what it is of. */
  quern_profiler* profiler = NULL;
  IS_NULL("program", quern_profiler_of_program(NULL, NULL, &profiler));
  IS_NULL("profiler", quern_profiler_of_program(p, NULL, NULL));
  FAILS(QUERN_CODE_INVALID, "\"peaks\"", quern_profiler_of_program(p, "{\"peaks\": true}", &profiler));
  OK(quern_profiler_of_program(p, NULL, &profiler));
  IS_NULL("profiler", quern_profiler_phase(NULL, "run", false));
  IS_NULL("name", quern_profiler_phase(profiler, NULL, false));
  OK(quern_profiler_phase(profiler, "once", false));
  OK(quern_program_run(p, &input, 1, &output, 1, NULL, 0));
  quern_program_free(p);
  IS_NULL("profiler", quern_profiler_report(NULL, "json", &text));
  IS_NULL("form", quern_profiler_report(profiler, NULL, &text));
  IS_NULL("report", quern_profiler_report(profiler, "json", NULL));
  FAILS(QUERN_CODE_INVALID, "\"pdf\"", quern_profiler_report(profiler, "pdf", &text));
  OK(quern_profiler_report(profiler, "json", &text));
  CHECK(text_has(text, "\"once\""));
  OK(quern_profiler_report(profiler, "table", &text));
  CHECK(text_has(text, "once"));
  OK(quern_profiler_report(profiler, "trace", &text));
  CHECK(text_has(text, "traceEvents"));
  OK(quern_profiler_report(profiler, "html", &text));
  CHECK(text_has(text, "<html"));
  IS_NULL("profiler", quern_profiler_clear(NULL));
  OK(quern_profiler_clear(profiler));
  OK(quern_profiler_report(profiler, "json", &text));
  CHECK(strstr(quern_text_data(text), "\"once\"") == NULL);
  quern_text_free(text);
  quern_profiler_free(profiler);
  quern_profiler_free(NULL);
  quern_program_free(NULL);
}

static void open_files(const char* onnx, const char* folder) {
  quern_graph* g = NULL;
  IS_NULL("path", quern_graph_open(NULL, NULL, &g));
  IS_NULL("graph", quern_graph_open(onnx, NULL, NULL));
  FAILS(QUERN_CODE_RESOURCE, "nowhere.onnx", quern_graph_open("nowhere.onnx", NULL, &g));
  FAILS(QUERN_CODE_INVALID, "\"size\"", quern_graph_open(onnx, "{\"size\": {}}", &g));
  FAILS(QUERN_CODE_INVALID, "a whole number", quern_graph_open(onnx, "{\"sizes\": {\"N\": 1.5}}", &g));
  FAILS(QUERN_CODE_INVALID, "a list of strings", quern_graph_open(onnx, "{\"values\": [1]}", &g));
  OK(quern_graph_open(onnx, "{\"fix_sizes\": true}", &g));
  quern_value value;
  FAILS(QUERN_CODE_INVALID, "is finished", quern_graph_input(g, "more", "f32[]", &value));
  quern_program* p = NULL;
  OK(quern_graph_compile(g, "{\"cache\": \"off\"}", NULL, &p));
  quern_graph_free(g);
  CHECK(quern_program_ports(p, QUERN_INPUT) == 1);
  quern_program_free(p);

  char path[4096];
  snprintf(path, sizeof path, "%s/relu.qir", folder);
  FILE* file = fopen(path, "w");
  fputs("graph g {\n  %0 = Input() {name = \"x\"} : f32[3]\n  %1 = Relu(%0) : f32[3]\n  return %1\n}\n", file);
  fclose(file);
  OK(quern_graph_open(path, NULL, &g));
  OK(quern_graph_compile(g, NULL, NULL, &p));
  quern_graph_free(g);
  float x[3] = {-1, 0, 5}, y[3];
  const int64_t shape = 3;
  const quern_tensor in = {"x", x, sizeof x, NULL, &shape, 1}, out = {"0", y, sizeof y, NULL, &shape, 1};
  OK(quern_program_run(p, &in, 1, &out, 1, NULL, 0));
  CHECK(y[0] == 0 && y[1] == 0 && y[2] == 5);
  quern_program_free(p);
}

static int32_t best(const float* logits, size_t count) {
  size_t at = 0;
  for (size_t i = 1; i < count; ++i) at = logits[i] > logits[at] ? i : at;
  return (int32_t)at;
}

static void generate(const char* model) {
  quern_session *s = NULL, *other = NULL;
  char path[4096];
  IS_NULL("path", quern_session_open(NULL, NULL, NULL, &s));
  IS_NULL("session", quern_session_open(model, NULL, NULL, NULL));
  FAILS(QUERN_CODE_RESOURCE, "nowhere.gguf", quern_session_open("nowhere.gguf", NULL, NULL, &s));
  FAILS(QUERN_CODE_INVALID, "\"top_k\"", quern_session_open(model, "{\"top_k\": 1}", NULL, &s));
  const char* const adapters[] = {"\"a.gguf\"", "[1]", "[[\"a.gguf\"]]", "[[\"a.gguf\", \"x\"]]", "[[1, 1]]"};
  for (size_t i = 0; i < sizeof adapters / sizeof *adapters; ++i) {
    char options[64];
    snprintf(options, sizeof options, "{\"lora\": %s}", adapters[i]);
    FAILS(QUERN_CODE_INVALID, "option \"lora\" is a list of adapters", quern_session_open(model, options, NULL, &s));
  }
  FAILS(QUERN_CODE_RESOURCE, "no.gguf", quern_session_open(model, "{\"lora\": [\"no.gguf\"]}", NULL, &s));
  snprintf(path, sizeof path, "{\"lora\": [[\"%s\", 0.5]]}", model);
  FAILS(QUERN_CODE_INVALID, "general.type is nothing", quern_session_open(model, path, NULL, &s));
  CHECK(s == NULL);
  quern_session_free(NULL);
  quern_cancel* cancel = quern_cancel_new();
  OK(quern_session_open(model, "{\"threads\": 1, \"context\": 64}", cancel, &s));
  CHECK(quern_session_vocabulary(NULL) == 0 && quern_session_context(NULL) == 0 && quern_session_position(NULL) == 0);
  CHECK(quern_session_trained_context(NULL) == 0 && quern_session_threads(NULL) == 0);
  CHECK(!quern_session_is_end(NULL, 0));
  CHECK(quern_session_context(s) == 64 && quern_session_threads(s) == 1 && quern_session_trained_context(s) > 0);
  const size_t v = (size_t)quern_session_vocabulary(s);
  CHECK(v > 2);
  quern_text* text = NULL;
  IS_NULL("session", quern_session_timings(NULL, &text));
  IS_NULL("json", quern_session_timings(s, NULL));
  OK(quern_session_timings(s, &text));
  CHECK(text_has(text, "\"kernels_compiled\":"));

  int32_t ids[16];
  size_t count = 0;
  IS_NULL("session", quern_session_tokenize(NULL, "1", 1, true, true, ids, 16, &count));
  IS_NULL("text", quern_session_tokenize(s, NULL, 1, true, true, ids, 16, &count));
  IS_NULL("ids", quern_session_tokenize(s, "1", 1, true, true, NULL, 16, &count));
  IS_NULL("count", quern_session_tokenize(s, "1", 1, true, true, ids, 16, NULL));
  OK(quern_session_tokenize(s, "27+58=", 6, true, true, NULL, 0, &count)); /* how many */
  const size_t prompt = count;
  ids[1] = -5;
  OK(quern_session_tokenize(s, "27+58=", 6, true, true, ids, 1, &count));
  CHECK(ids[1] == -5 && count == prompt);
  OK(quern_session_tokenize(s, "27+58=", 6, true, true, ids, 16, &count));
  IS_NULL("session", quern_session_piece(NULL, ids[0], &text));
  IS_NULL("piece", quern_session_piece(s, ids[0], NULL));
  OK(quern_session_piece(s, 1 << 30, &text));
  CHECK(text_is(text, ""));
  CHECK(!quern_session_is_end(s, -1));

  float* logits = malloc(prompt * v * sizeof *logits);
  float* after = malloc(v * sizeof *logits);
  IS_NULL("session", quern_session_step(NULL, ids, prompt, after, v));
  IS_NULL("ids", quern_session_step(s, NULL, prompt, after, v));
  IS_NULL("logits", quern_session_step(s, ids, prompt, NULL, v));
  FAILS(QUERN_CODE_INVALID, "room for", quern_session_step(s, ids, prompt, after, v - 1));
  FAILS(QUERN_CODE_INVALID, "one token or more", quern_session_step(s, ids, 0, after, v));
  const int32_t beyond = (int32_t)v;
  FAILS(QUERN_CODE_INVALID, "out of range", quern_session_step(s, &beyond, 1, after, v));
  quern_cancel_ask(cancel);
  FAILS(QUERN_CODE_CANCELLED, "", quern_session_step(s, ids, prompt, after, v));
  quern_cancel_reset(cancel);
  quern_cancel_free(cancel);
  CHECK(quern_session_position(s) == 0);
  IS_NULL("session", quern_session_step_all(NULL, ids, prompt, logits, prompt * v));
  IS_NULL("ids", quern_session_step_all(s, NULL, prompt, logits, prompt * v));
  IS_NULL("logits", quern_session_step_all(s, ids, prompt, NULL, prompt * v));
  FAILS(QUERN_CODE_INVALID, "room for", quern_session_step_all(s, ids, prompt, logits, v));
  OK(quern_session_step_all(s, ids, prompt, logits, prompt * v));
  CHECK(quern_session_position(s) == (int64_t)prompt);
  IS_NULL("session", quern_session_reset(NULL));
  OK(quern_session_reset(s));
  OK(quern_session_step(s, ids, prompt, after, v));
  CHECK(best(after, v) == best(logits + (prompt - 1) * v, v));

  quern_token_sampler* sampler = NULL;
  IS_NULL("sampler", quern_token_sampler_new(NULL, s, NULL));
  FAILS(QUERN_CODE_INVALID, "\"heat\"", quern_token_sampler_new("{\"heat\": 1}", s, &sampler));
  FAILS(QUERN_CODE_INVALID, "", quern_token_sampler_new("{\"temperature\": -1}", s, &sampler));
  FAILS(QUERN_CODE_INVALID, "typical_p 2 is not a number in (0, 1]",
        quern_token_sampler_new("{\"typical_p\": 2}", s, &sampler));
  FAILS(QUERN_CODE_INVALID, "dry_breakers need the tokenizer",
        quern_token_sampler_new("{\"dry_multiplier\": 1}", NULL, &sampler));
  OK(quern_token_sampler_new("{\"dry_multiplier\": 1, \"dry_breakers\": []}", NULL, &sampler));
  quern_token_sampler_free(sampler);
  sampler = NULL;
  FAILS(QUERN_CODE_INVALID, "a whole number, not 1.5", quern_token_sampler_new("{\"top_k\": 1.5}", s, &sampler));
  FAILS(QUERN_CODE_INVALID, "a list of [id, bias]", quern_token_sampler_new("{\"logit_bias\": [1]}", s, &sampler));
  FAILS(QUERN_CODE_INVALID, "", quern_token_sampler_new("{\"grammar\": \"root ::= [0-9]+\"}", NULL, &sampler));
  FAILS(QUERN_CODE_INVALID, "", quern_token_sampler_new("{\"grammar\": \"root :: [\"}", s, &sampler));
  CHECK(sampler == NULL);
  OK(quern_token_sampler_new("{\"grammar\": \"root ::= [0-9] [0-9]\", \"seed\": 7}", s, &sampler));
  CHECK(!quern_token_sampler_complete(sampler) && !quern_token_sampler_complete(NULL));
  int32_t id = -9;
  IS_NULL("sampler", quern_token_sampler_draw(NULL, after, v, &id));
  IS_NULL("logits", quern_token_sampler_draw(sampler, NULL, v, &id));
  IS_NULL("id", quern_token_sampler_draw(sampler, after, v, NULL));
  FAILS(QUERN_CODE_INVALID, "no logits", quern_token_sampler_draw(sampler, after, 0, &id));
  CHECK(id == -9);

  /* The prompt is kept: another session goes on from there with the same answer. */
  quern_text* kept = NULL;
  IS_NULL("session", quern_session_save(NULL, &kept));
  IS_NULL("bytes", quern_session_save(s, NULL));
  OK(quern_session_save(s, &kept));
  char answers[2][3] = {{0}};
  OK(quern_session_open(model, "{\"threads\": 1, \"context\": 48}", NULL, &other));
  IS_NULL("session", quern_session_load(NULL, quern_text_data(kept), quern_text_size(kept)));
  IS_NULL("bytes", quern_session_load(other, NULL, quern_text_size(kept)));
  FAILS(QUERN_CODE_INVALID, "bytes", quern_session_load(other, quern_text_data(kept), quern_text_size(kept) - 1));
  FAILS(QUERN_CODE_INVALID, "no keys and values", quern_session_load(other, "rubbish", 7));
  CHECK(quern_session_position(other) == 0);
  OK(quern_session_load(other, quern_text_data(kept), quern_text_size(kept)));
  CHECK(quern_session_position(other) == (int64_t)prompt);
  quern_text_free(kept);
  float* first = malloc(v * sizeof *first);
  memcpy(first, after, v * sizeof *first);
  for (int which = 0; which < 2; ++which) {
    memcpy(after, first, v * sizeof *first);
    for (int i = 0; i < 2; ++i) {
      OK(quern_token_sampler_draw(sampler, after, v, &id));
      OK(quern_session_piece(s, id, &text));
      answers[which][i] = quern_text_data(text)[0];
      quern_text_free(text);
      OK(quern_session_step(which == 0 ? s : other, &id, 1, after, v));
    }
    CHECK(quern_token_sampler_complete(sampler));
    OK(quern_token_sampler_forget(sampler));
  }
  CHECK(strcmp(answers[0], "85") == 0 && strcmp(answers[1], "85") == 0);
  free(first);
  IS_NULL("sampler", quern_token_sampler_forget(NULL));
  IS_NULL("sampler", quern_token_sampler_observe(NULL, ids, 1));
  IS_NULL("ids", quern_token_sampler_observe(sampler, NULL, 1));
  OK(quern_token_sampler_observe(sampler, ids, 1));
  quern_token_sampler_free(sampler);
  quern_token_sampler_free(NULL);

  IS_NULL("session", quern_session_rewind(NULL, 0));
  FAILS(QUERN_CODE_INVALID, "is not in 0..", quern_session_rewind(s, 64));
  OK(quern_session_rewind(s, (int64_t)prompt));
  CHECK(quern_session_position(s) == (int64_t)prompt);

  quern_profiler* profiler = NULL;
  IS_NULL("session", quern_profiler_of_session(NULL, NULL, &profiler));
  IS_NULL("profiler", quern_profiler_of_session(s, NULL, NULL));
  OK(quern_profiler_of_session(s, "{\"counters\": false}", &profiler));
  OK(quern_session_step(s, ids, 1, after, v));
  quern_session_free(s);
  OK(quern_profiler_report(profiler, "table", &text));
  CHECK(text_has(text, "run"));
  quern_profiler_free(profiler);
  quern_session_free(other);
  free(logits);
  free(after);
}

int main(int count, char** arguments) {
  if (count != 4) return fputs("c_api MODEL.gguf MODEL.onnx FOLDER\n", stderr), 2;
  errors_and_texts();
  build();
  open_files(arguments[2], arguments[3]);
  generate(arguments[1]);
  printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
