// The failure of a disk whose files are mapped (mapping.h). An access to a page that the disk does not give is no call
// that could return an error: the system sends SIGBUS.
#pragma once

#include <cstddef>
#include <span>

namespace braid::disk {

// From now on, SIGBUS of an access to mapped scratch files ends this process, and those that it forks, with exit code 3
// after a sentence on standard error. Other accesses end it as before. Called once, by a program's main thread.
void end_with_message_on_bus_error();

// Called by a Mapping when it begins and ends. More than kMostMapped mappings at once are not recognized.
inline constexpr size_t kMostMapped = 1024;
void add_mapped(std::span<const std::byte> bytes);
void remove_mapped(std::span<const std::byte> bytes);

}  // namespace braid::disk
