#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {
inline namespace client {
namespace detail {

/// The address of this user's private daemon, which is started when it does not run. Two processes
/// that come at once start one. Throws Unavailable when there is no daemon to start, or it does not
/// start.
std::string ensure_private_daemon();

/// Where the socket is: unix:FOLDER/kiln/VERSION.sock. Starts nothing and makes no folder.
std::string private_address();

/// Whether the private daemon listens now. Starts nothing.
bool private_daemon_runs();

/// The folders beside this program, and beside the library when that is installed apart.
std::vector<std::filesystem::path> folders_beside();

/// The daemon's executable: $KILN_DAEMON, in the folders `beside`, in the Python package
/// kiln-daemon, then on PATH. Empty when there is none; `looked_at` gets the places.
std::string find_daemon(std::vector<std::string>& looked_at,
                        const std::vector<std::filesystem::path>& beside = folders_beside());

}  // namespace detail
}  // namespace client
}  // namespace kiln
