/* Answers a prompt with a language model, token by token, in C. Ctrl-C ends it between two kernels.
 *
 *   generate MODEL PROMPT
 */
#include <quern/c.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static quern_cancel* cancel;

static void stop(int signal) {
  (void)signal;
  quern_cancel_ask(cancel);
}

static int complain(quern_error* error) {
  fprintf(stderr, "%s\n", quern_error_message(error));
  quern_error_free(error);
  return 1;
}

int main(int count, char** arguments) {
  if (count != 3) return fputs("generate MODEL PROMPT\n", stderr), 2;
  cancel = quern_cancel_new();
  signal(SIGINT, stop);
  quern_session* session = NULL;
  quern_token_sampler* sampler = NULL;
  quern_error* error = quern_session_open(arguments[1], NULL, cancel, &session);
  if (error == NULL) error = quern_token_sampler_new("{\"temperature\": 0}", session, &sampler);
  if (error != NULL) return complain(error);

  const size_t vocabulary = (size_t)quern_session_vocabulary(session), room = strlen(arguments[2]) + 2;
  int32_t* ids = malloc(room * sizeof *ids); /* a token has a byte or more, but those around the text */
  float* logits = malloc(vocabulary * sizeof *logits);
  size_t tokens = 0;
  error = quern_session_tokenize(session, arguments[2], strlen(arguments[2]), true, true, ids, room, &tokens);
  if (error == NULL) error = quern_session_step(session, ids, tokens, logits, vocabulary);
  for (int i = 0; i < 64 && error == NULL; ++i) {
    int32_t next = 0;
    quern_text* piece = NULL;
    error = quern_token_sampler_draw(sampler, logits, vocabulary, &next);
    if (error != NULL || quern_session_is_end(session, next)) break;
    error = quern_session_piece(session, next, &piece);
    if (error != NULL) break;
    fwrite(quern_text_data(piece), 1, quern_text_size(piece), stdout);
    fflush(stdout);
    quern_text_free(piece);
    error = quern_session_step(session, &next, 1, logits, vocabulary);
  }
  putchar('\n');
  free(logits);
  free(ids);
  quern_token_sampler_free(sampler);
  quern_session_free(session);
  quern_cancel_free(cancel);
  return error == NULL ? 0 : complain(error);
}
