#include "interrupt.h"

#include <csignal>

namespace {

constinit quern::CancelToken token;

void Cancel(int) { token.Cancel(); }

}  // namespace

const quern::CancelToken* CancelOnInterrupt() {
  token.Reset();
  struct sigaction action = {};
  action.sa_handler = Cancel;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  return &token;
}

void InterruptsEndTheProcess() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGINT, &action, nullptr);
}
