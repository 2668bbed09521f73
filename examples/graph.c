/* Builds act(x W + b), compiles it, and runs it on memory of its own, in C. Prints the result, and what took the time.
 *
 *   graph
 */
#include <quern/c.h>
#include <stdio.h>

static int complain(quern_error* error) {
  fprintf(stderr, "%s\n", quern_error_message(error));
  quern_error_free(error);
  return 1;
}

int main(void) {
  static const float weights[2 * 3] = {1, 0, -1, 0, 2, 1}, bias[3] = {0.5f, 0, -0.5f};
  quern_graph* graph = quern_graph_new("ffn");
  quern_value operands[3], y;
  quern_error* error = quern_graph_symbol(graph, "BATCH", 1, 64);
  if (error == NULL) error = quern_graph_input(graph, "x", "f32[BATCH, 2]", &operands[0]);
  if (error == NULL) error = quern_graph_param(graph, "w", "f32[2, 3]", weights, sizeof weights, &operands[1]);
  if (error == NULL) error = quern_graph_param(graph, "b", "f32[3]", bias, sizeof bias, &operands[2]);
  if (error == NULL) {
    error = quern_graph_block(graph, "Linear", operands, 3, "{\"act\": \"Relu\", \"bias\": true}", "up", &y, 1, NULL);
  }
  if (error == NULL) error = quern_graph_output(graph, "y", y);
  quern_program* program = NULL;
  if (error == NULL) error = quern_graph_compile(graph, "{\"threads\": 1}", NULL, &program);
  quern_graph_free(graph); /* the program does not need it any more */
  if (error != NULL) return complain(error);

  float x[2 * 2] = {1, 2, 3, -4}, out[2 * 3];
  const int64_t in_shape[2] = {2, 2}, out_shape[2] = {2, 3};
  const quern_tensor input = {"x", x, sizeof x, "f32", in_shape, 2},
                     output = {"y", out, sizeof out, "f32", out_shape, 2};
  error = quern_program_run(program, &input, 1, &output, 1, NULL, 0);
  quern_text* counters = NULL;
  if (error == NULL) error = quern_program_counters(program, &counters);
  if (error == NULL) {
    for (int row = 0; row < 2; ++row) printf("%g %g %g\n", out[3 * row], out[3 * row + 1], out[3 * row + 2]);
    fprintf(stderr, "%s\n", quern_text_data(counters));
  }
  quern_text_free(counters);
  quern_program_free(program);
  return error == NULL ? 0 : complain(error);
}
