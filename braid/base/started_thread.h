// Starts threads, and reports a failure to start one.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

// Starts a thread that runs `body`. If the system has no more threads, throws RunError with the thread's purpose,
// `what_for`. That is a limit of the host, not a defect of this program.
template <class Thread = std::thread, class Body>
Thread started_thread(const std::string& what_for, Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw RunError(cat("cannot start a thread for ", what_for, ": ", error.code().message()));
  }
}

}  // namespace braid
