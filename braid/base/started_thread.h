// A thread whose start may fail.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

// A thread that runs `body`. Throws RunError, which says what the thread is for, when the system has no more: a limit
// of the host, not a defect of this program.
template <class Thread = std::thread, class Body>
Thread started_thread(const std::string& what_for, Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw RunError(cat("cannot start a thread for ", what_for, ": ", error.code().message()));
  }
}

}  // namespace braid
