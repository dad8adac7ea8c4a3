#pragma once

#include <string>

namespace kiln::server {

/// Tells the service manager that started this process (systemd's Type=notify) about its state, in
/// the words of sd_notify(3): "READY=1", "STOPPING=1". Does nothing where there is none.
void notify_service_manager(const std::string& state);

}  // namespace kiln::server
