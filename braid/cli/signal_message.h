// The message of a command that a signal ends while it may be ended.
#pragma once

#include <string>

namespace braid::cli {

// While one exists, which is once at a time, because a signal handler can reach nothing but what is global: SIGINT,
// SIGTERM and SIGHUP write `words` and a newline on standard error and end the process at once with exit code
// 128 + signal. One that was ignored when the process began stays ignored (nohup, background jobs of scripts).
class SignalMessage {
 public:
  explicit SignalMessage(std::string words);
  ~SignalMessage();  // signals do what they did before
  SignalMessage(const SignalMessage&) = delete;

 private:
  const std::string words_;
};

}  // namespace braid::cli
