#include "check/run_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace quern::check {
namespace {

std::string FirstBytes(const std::string& path) {
  std::string text(4096, 0);
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

StatusOr<Outcome> RunCommand(const std::string& command, double seconds, const std::string& said) {
  using Clock = std::chrono::steady_clock;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, said.empty() ? "/dev/null" : said.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // so that its own children end with it
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string shell = "/bin/sh", flag = "-c", text = command;
  char* const arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, shell.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::UnavailableError(absl::StrFormat("cannot start a process: error %d", error));
  const Clock::time_point start = Clock::now();
  Outcome outcome;
  for (int state = 0;;) {
    const pid_t ended = waitpid(child, &state, outcome.timed_out ? 0 : WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return absl::UnavailableError("a process was lost");
    if (ended == child) {
      if (!outcome.timed_out) outcome.status = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
      if (!said.empty() && !outcome.timed_out) outcome.said = FirstBytes(said);
      return outcome;
    }
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds) {
      outcome.timed_out = true;
      kill(-child, SIGKILL);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string Text(const Outcome& outcome, double seconds) {
  if (outcome.timed_out) return absl::StrFormat("no end in %g s", seconds);
  if (outcome.status > 128) return absl::StrCat("signal ", outcome.status - 128);
  const std::string first = outcome.said.substr(0, outcome.said.find('\n'));
  return first.empty() ? absl::StrCat("exit status ", outcome.status) : first;
}

std::string WithPath(const std::string& command, const std::string& path) {
  const std::string quoted = absl::StrCat("'", absl::StrReplaceAll(path, {{"'", "'\\''"}}), "'");
  return absl::StrReplaceAll(command, {{"{}", quoted}});
}

}  // namespace quern::check
