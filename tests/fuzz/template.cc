// A chat template. Whatever the bytes are, there is an error or a text, of bounded size, and soon.
#include <cstdlib>

#include "chat/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern::chat;
  const auto made = Template::Parse({reinterpret_cast<const char*>(data), size});
  if (!made.ok()) return 0;
  List messages;
  for (const char* const role : {"system", "user", "assistant"})
    messages.emplace_back(Dict{{"role", Value(role)}, {"content", Value("a <think>b</think> \xc3\xa9\xff ")}});
  const Dict variables = {{"messages", Value(std::move(messages))},
                          {"bos_token", Value("<s>")},
                          {"add_generation_prompt", Value(true)},
                          {"tools", Value(None{})}};
  constexpr int64_t kWork = 1 << 20;
  const auto text = made->Render(variables, {.work = kWork});
  if (text.ok() && text->size() > kWork) std::abort();
  return 0;
}
