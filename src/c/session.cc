// Language models of quern/c.h: sessions and samplers.

#include <algorithm>
#include <span>
#include <string_view>

#include "c/handles.h"
#include "c/json_options.h"

namespace quern::c {
namespace {

const Session* SessionOf(const quern_session* session) {
  return session == nullptr ? nullptr : &session->owned->session;
}

// One of the two steps, into memory of the caller's.
quern_error* Step(const char* function, quern_session* session, std::span<const int32_t> ids, bool all, float* logits,
                  size_t room) {
  if (quern_error* error = Needs(function, {{"session", session}, {"logits", logits}})) return error;
  if (quern_error* error = NeedsArray(function, "ids", ids.data(), ids.size())) return error;
  Session& s = session->owned->session;
  const size_t wanted = (all ? ids.size() : 1) * static_cast<size_t>(s.vocabulary());
  if (room != wanted) {
    return Refused(function, "logits have room for " + std::to_string(room) + " floats, not " + std::to_string(wanted));
  }
  const Result<std::vector<float>> made = all ? s.StepAll(ids) : s.Step(ids);
  if (quern_error* error = ErrorOf(made)) return error;
  std::copy(made->begin(), made->end(), logits);
  return nullptr;
}

}  // namespace
}  // namespace quern::c

using namespace quern::c;  // NOLINT: the functions below are C's

quern_error* quern_session_open(const char* path, const char* options, const quern_cancel* cancel,
                                quern_session** session) {
  if (quern_error* error = Needs(__func__, {{"path", path}, {"session", session}})) return error;
  quern::Options read;
  if (quern_error* error = ReadOptions(__func__, options, FieldsOf(read))) return error;
  std::shared_ptr<const quern::CancelToken> token = cancel == nullptr ? nullptr : cancel->token;
  read.cancel = token.get();
  quern::Result<quern::Session> made = quern::Session::Open(path, read);
  if (!made.ok()) return Failed(made.details());
  *session = new quern_session{std::make_shared<OwnedSession>(OwnedSession{std::move(token), std::move(*made)})};
  return nullptr;
}

void quern_session_free(quern_session* session) { delete session; }

int64_t quern_session_vocabulary(const quern_session* session) {
  return session == nullptr ? 0 : SessionOf(session)->vocabulary();
}
int64_t quern_session_context(const quern_session* session) {
  return session == nullptr ? 0 : SessionOf(session)->context();
}
int64_t quern_session_position(const quern_session* session) {
  return session == nullptr ? 0 : SessionOf(session)->position();
}
int64_t quern_session_trained_context(const quern_session* session) {
  return session == nullptr ? 0 : SessionOf(session)->trained_context();
}
int quern_session_threads(const quern_session* session) {
  return session == nullptr ? 0 : SessionOf(session)->threads();
}

quern_error* quern_session_timings(const quern_session* session, quern_text** json) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"json", json}})) return error;
  const quern::Timings& t = SessionOf(session)->timings();
  *json = ReportText({{"load", t.load},
                      {"compile", t.compile},
                      {"run", t.run},
                      {"passes", t.passes},
                      {"plans", t.plans},
                      {"cached", t.cached},
                      {"llvm", t.llvm},
                      {"kernels_cached", int64_t{t.kernels_cached}},
                      {"kernels_compiled", int64_t{t.kernels_compiled}}});
  return nullptr;
}

quern_error* quern_session_tokenize(const quern_session* session, const char* text, size_t size, bool begin,
                                    bool special, int32_t* ids, size_t room, size_t* count) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"text", text}, {"count", count}})) return error;
  if (quern_error* error = NeedsArray(__func__, "ids", ids, room)) return error;
  const quern::Result<std::vector<int32_t>> made =
      SessionOf(session)->Tokenize(std::string_view(text, size), {.begin = begin, .parse_special = special});
  if (quern_error* error = ErrorOf(made)) return error;
  std::copy_n(made->begin(), std::min(room, made->size()), ids);
  *count = made->size();
  return nullptr;
}

quern_error* quern_session_piece(const quern_session* session, int32_t id, quern_text** piece) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"piece", piece}})) return error;
  const quern::Result<quern::Tokenizer> tokenizer = SessionOf(session)->tokenizer();
  if (quern_error* error = ErrorOf(tokenizer)) return error;
  *piece = MakeText(tokenizer->Piece(id));
  return nullptr;
}

bool quern_session_is_end(const quern_session* session, int32_t id) {
  return session != nullptr && SessionOf(session)->IsEnd(id);
}

quern_error* quern_session_step(quern_session* session, const int32_t* ids, size_t count, float* logits, size_t room) {
  return Step(__func__, session, {ids, count}, false, logits, room);
}

quern_error* quern_session_step_all(quern_session* session, const int32_t* ids, size_t count, float* logits,
                                    size_t room) {
  return Step(__func__, session, {ids, count}, true, logits, room);
}

quern_error* quern_session_reset(quern_session* session) {
  if (quern_error* error = Needs(__func__, {{"session", session}})) return error;
  session->owned->session.Reset();
  return nullptr;
}

quern_error* quern_session_rewind(quern_session* session, int64_t position) {
  if (quern_error* error = Needs(__func__, {{"session", session}})) return error;
  return ErrorOf(session->owned->session.Rewind(position));
}

quern_error* quern_session_save(const quern_session* session, quern_text** bytes) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"bytes", bytes}})) return error;
  const quern::Result<std::vector<uint8_t>> saved = SessionOf(session)->Save();
  if (quern_error* error = ErrorOf(saved)) return error;
  *bytes = MakeText(std::string(saved->begin(), saved->end()));
  return nullptr;
}

quern_error* quern_session_load(quern_session* session, const void* bytes, size_t size) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"bytes", bytes}})) return error;
  return ErrorOf(session->owned->session.Load({static_cast<const uint8_t*>(bytes), size}));
}

quern_error* quern_token_sampler_new(const char* options, const quern_session* session, quern_token_sampler** sampler) {
  if (quern_error* error = Needs(__func__, {{"sampler", sampler}})) return error;
  quern::SamplingOptions read;
  if (quern_error* error = ReadOptions(__func__, options, FieldsOf(read))) return error;
  if (session == nullptr) {
    quern::Result<quern::Sampler> made = quern::Sampler::Make(read);
    if (!made.ok()) return Failed(made.details());
    *sampler = new quern_token_sampler{std::move(*made)};
    return nullptr;
  }
  const quern::Result<quern::Tokenizer> tokenizer = SessionOf(session)->tokenizer();
  if (read.needs_tokenizer() && !tokenizer.ok()) return Failed(tokenizer.details());
  quern::Result<quern::Sampler> made = quern::Sampler::Make(read, tokenizer.ok() ? &*tokenizer : nullptr);
  if (!made.ok()) return Failed(made.details());
  *sampler = new quern_token_sampler{std::move(*made)};
  return nullptr;
}

void quern_token_sampler_free(quern_token_sampler* sampler) { delete sampler; }

quern_error* quern_token_sampler_draw(quern_token_sampler* sampler, const float* logits, size_t count, int32_t* id) {
  if (quern_error* error = Needs(__func__, {{"sampler", sampler}, {"id", id}})) return error;
  if (quern_error* error = NeedsArray(__func__, "logits", logits, count)) return error;
  if (count == 0) return Refused(__func__, "there are no logits to draw from");
  const quern::Result<int32_t> drawn = sampler->sampler.Draw({logits, count});
  if (quern_error* error = ErrorOf(drawn)) return error;
  *id = *drawn;
  return nullptr;
}

quern_error* quern_token_sampler_observe(quern_token_sampler* sampler, const int32_t* ids, size_t count) {
  if (quern_error* error = Needs(__func__, {{"sampler", sampler}})) return error;
  if (quern_error* error = NeedsArray(__func__, "ids", ids, count)) return error;
  sampler->sampler.Observe({ids, count});
  return nullptr;
}

quern_error* quern_token_sampler_forget(quern_token_sampler* sampler) {
  if (quern_error* error = Needs(__func__, {{"sampler", sampler}})) return error;
  sampler->sampler.Forget();
  return nullptr;
}

bool quern_token_sampler_complete(const quern_token_sampler* sampler) {
  return sampler != nullptr && sampler->sampler.complete();
}
