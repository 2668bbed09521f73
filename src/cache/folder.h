// Where cached objects lie, and whether that place can be trusted with code.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace quern::cache {

// The user's own folder for what Quern keeps: $XDG_CACHE_HOME/quern or ~/.cache/quern; nothing where there is neither.
std::optional<std::string> UserFolder();

// The folder that `choice` means: "off", a folder, or "" for what QUERN_CACHE says ("off" or a folder), else the user's
// own. Nothing: no cache. Never a shared temporary folder of its own accord.
std::optional<std::string> ChooseFolder(const std::string& choice);

// Makes the folder, for the user alone, when it is not there, and its parents.
// Errors: it cannot be made or is no folder; somebody else owns it; others may write to it, or could put another in its
// place (a parent that others may write to, without the sticky bit).
Status PrepareFolder(const std::string& folder);

}  // namespace quern::cache
