#pragma once

#include <filesystem>

#include "kiln/v1/service.pb.h"

namespace kiln::server {

/// What is left on the disk of a folder; not well below what a few kernels take.
v1::Component disk_component(const std::filesystem::path& folder);

}  // namespace kiln::server
