// Files of --session: what a session has seen, with its keys and values, so that the next run goes on from there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quern/quern.h"

struct SessionFile {
  std::vector<int32_t> tokens;  // in the session's cache
  std::string conversation;     // of quern chat, as it saves it; empty of quern run
};

// What the file has; its keys and values are in the session then. No file: nothing, and the session is empty. Errors,
// which leave the file as it is: a session that cannot be kept (states that go on with every token, devices), a path
// that is the model's, a file that is damaged, of another model or other adapters, or longer than the context.
quern::Result<SessionFile> LoadSession(const std::string& path, const std::string& model, quern::Session& session);

// Writes the file, whole or not at all; what the session has beyond the tokens goes. Error: it cannot be written.
quern::Result<void> SaveSession(const std::string& path, const std::string& model, quern::Session& session,
                                const SessionFile& file);
