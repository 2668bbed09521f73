// Errors, texts, and what asks runs to stop, of quern/c.h.

#include <cstring>
#include <string_view>

#include "c/handles.h"

namespace quern::c {

quern_error* Failed(Error error) { return new quern_error{std::move(error)}; }

quern_error* Refused(const char* function, const std::string& sentence) {
  Error error;
  error.code = ErrorCode::kInvalid;
  error.message = std::string(function) + ": " + sentence;
  error.where = function;
  return Failed(std::move(error));
}

quern_error* Needs(const char* function, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.pointer == nullptr) return Refused(function, std::string(argument.name) + " is null");
  }
  return nullptr;
}

quern_error* NeedsArray(const char* function, const char* name, const void* pointer, size_t count) {
  if (pointer != nullptr || count == 0) return nullptr;
  return Refused(function, std::string(name) + " is null, and has " + std::to_string(count) + " elements");
}

quern_error* TakeText(Result<std::string> made, quern_text** out) {
  if (!made.ok()) return Failed(made.details());
  *out = MakeText(std::move(*made));
  return nullptr;
}

namespace {

struct Part {
  const char* name;
  std::string Error::* text;
};
constexpr Part kParts[] = {{"op", &Error::op},   {"operand", &Error::operand}, {"expected", &Error::expected},
                           {"got", &Error::got}, {"where", &Error::where},     {"suggestion", &Error::suggestion}};

}  // namespace
}  // namespace quern::c

static_assert(QUERN_CODE_INTERNAL == static_cast<int>(quern::ErrorCode::kInternal) &&
              QUERN_CODE_CANCELLED == static_cast<int>(quern::ErrorCode::kCancelled) &&
              QUERN_CODE_UNSUPPORTED == static_cast<int>(quern::ErrorCode::kUnsupported));

const char* quern_version(void) { return QUERN_VERSION; }

quern_code quern_error_code(const quern_error* error) {
  return error == nullptr ? QUERN_CODE_NONE : static_cast<quern_code>(error->error.code);
}

const char* quern_error_message(const quern_error* error) {
  return error == nullptr ? "" : error->error.message.c_str();
}

const char* quern_error_part(const quern_error* error, const char* part) {
  if (error == nullptr || part == nullptr) return "";
  for (const quern::c::Part& known : quern::c::kParts) {
    if (std::strcmp(known.name, part) == 0) return (error->error.*known.text).c_str();
  }
  return "";
}

void quern_error_free(quern_error* error) { delete error; }

const char* quern_text_data(const quern_text* text) { return text == nullptr ? "" : text->bytes.c_str(); }
size_t quern_text_size(const quern_text* text) { return text == nullptr ? 0 : text->bytes.size(); }
void quern_text_free(quern_text* text) { delete text; }

quern_cancel* quern_cancel_new(void) { return new quern_cancel; }
void quern_cancel_ask(quern_cancel* cancel) {
  if (cancel != nullptr) cancel->token->Cancel();
}
void quern_cancel_reset(quern_cancel* cancel) {
  if (cancel != nullptr) cancel->token->Reset();
}
void quern_cancel_free(quern_cancel* cancel) { delete cancel; }
