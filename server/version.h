#pragma once

namespace kiln::server {

constexpr const char* kVersion = KILN_VERSION;

}  // namespace kiln::server
