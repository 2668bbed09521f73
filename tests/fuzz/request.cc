// The body of a request to the server. Whatever the bytes are, there is an error that says something, or a call whose
// numbers are in their ranges; and what is answered can be written.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "serve/openai.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const serve::Form form : {serve::Form::kChat, serve::Form::kCompletion, serve::Form::kEmbedding}) {
    const StatusOr<serve::Call> call = serve::ParseCall(body, form);
    if (!call.ok()) {
      if (call.status().message().empty()) std::abort();
      const std::string text = serve::ErrorBody(std::string(call.status().message()), "type", "code")
                                   .dump(-1, ' ', false, serve::Json::error_handler_t::replace);
      if (text.empty()) std::abort();
      continue;
    }
    if (form == serve::Form::kEmbedding) {
      if (call->inputs.empty()) std::abort();
      continue;
    }
    if (call->request.tokens < 1 || !CheckSampling(call->request.sampling).ok()) std::abort();
    for (const int32_t id : call->prompt_ids) {
      if (id < 0) std::abort();
    }
  }
  return 0;
}
