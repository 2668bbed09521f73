// Profiles of quern/c.h.

#include <cstring>

#include "c/handles.h"
#include "c/json_options.h"

namespace quern::c {
namespace {

template <typename Owned, typename Of>
quern_error* Attach(const char* function, const std::shared_ptr<Owned>& owned, Of& of, const char* options,
                    quern_profiler** profiler) {
  ProfilerOptions read;
  if (quern_error* error = ReadOptions(function, options, {{"counters", &read.counters}, {"probe", &read.probe}}))
    return error;
  Result<Profiler> made = Profiler::Attach(of, read);
  if (!made.ok()) return Failed(made.details());
  *profiler = new quern_profiler{owned, std::move(*made)};
  return nullptr;
}

struct Form {
  const char* name;
  Result<std::string> (*make)(Profiler& profiler);
};
constexpr Form kForms[] = {{"table", [](Profiler& p) { return p.Table(); }},
                           {"json", [](Profiler& p) { return p.Json(); }},
                           {"trace", [](Profiler& p) { return p.Trace(); }},
                           {"html", [](Profiler& p) { return p.Html(); }}};

}  // namespace
}  // namespace quern::c

using namespace quern::c;  // NOLINT: the functions below are C's

quern_error* quern_profiler_of_session(quern_session* session, const char* options, quern_profiler** profiler) {
  if (quern_error* error = Needs(__func__, {{"session", session}, {"profiler", profiler}})) return error;
  return Attach(__func__, session->owned, session->owned->session, options, profiler);
}

quern_error* quern_profiler_of_program(quern_program* program, const char* options, quern_profiler** profiler) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"profiler", profiler}})) return error;
  return Attach(__func__, program->owned, program->owned->program, options, profiler);
}

void quern_profiler_free(quern_profiler* profiler) { delete profiler; }

quern_error* quern_profiler_phase(quern_profiler* profiler, const char* name, bool warm_up) {
  if (quern_error* error = Needs(__func__, {{"profiler", profiler}, {"name", name}})) return error;
  profiler->profiler.Phase(name, warm_up);
  return nullptr;
}

quern_error* quern_profiler_clear(quern_profiler* profiler) {
  if (quern_error* error = Needs(__func__, {{"profiler", profiler}})) return error;
  profiler->profiler.Clear();
  return nullptr;
}

quern_error* quern_profiler_report(quern_profiler* profiler, const char* form, quern_text** report) {
  if (quern_error* error = Needs(__func__, {{"profiler", profiler}, {"form", form}, {"report", report}})) return error;
  for (const Form& known : kForms) {
    if (std::strcmp(known.name, form) == 0) return TakeText(known.make(profiler->profiler), report);
  }
  return Refused(__func__, "there is no form \"" + std::string(form) + "\": there are table, json, trace and html");
}
