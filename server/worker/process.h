#pragma once

namespace kiln::server {

/// Makes a process that kilnd started a good worker: it ends with kilnd, leaves no core files and
/// no open standard input behind. False when it was not started by kilnd.
bool become_worker();

}  // namespace kiln::server
