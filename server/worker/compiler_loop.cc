// A compiler process: a task in, an answer out, until the front end hangs up. An exception is an
// answer; only what no exception carries ends the process.
#include "server/worker/compiler_loop.h"

#include "server/errors.h"
#include "server/ipc/channel.h"
#include "server/ipc/status_page.h"
#include "server/worker/heartbeat.h"
#include "server/worker/work_time.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {

namespace {

internal::FromWorker hello_of(const CompilerWorker& worker) {
  internal::FromWorker message;
  internal::Hello& hello = *message.mutable_hello();
  hello.set_protocol(kWorkerProtocol);
  hello.set_build_id(worker.build_id);
  hello.set_host_arch(worker.host_arch);
  for (v1::Component& part : worker.components())
    *hello.add_components() = std::move(part);
  return message;
}

internal::FromWorker answer_to(const CompilerWorker& worker, const internal::Compile& task) {
  internal::FromWorker reply;
  internal::Compiled& compiled = *reply.mutable_compiled();
  compiled.set_task(task.task());
  const Clock::time_point begin = Clock::now();
  try {
    const Artifact artifact = worker.compile(task, compiled);
    // Of what was read alone nobody wants more than the reading.
    if (!task.has_read_at()) compiled.set_artifact(serialize(artifact));
  } catch (...) {
    *compiled.mutable_error() = to_wire(current_error());
  }
  *compiled.mutable_time() = work_time_since(begin);
  return reply;
}

internal::FromWorker answer_to(const CompilerWorker& worker, const internal::Text& task) {
  internal::FromWorker reply;
  internal::TextDone& text = *reply.mutable_text();
  text.set_task(task.task());
  try {
    text.set_text(worker.text(task));
  } catch (...) {
    *text.mutable_error() = to_wire(current_error());
  }
  return reply;
}

internal::FromWorker answer_to(const CompilerWorker& worker, const internal::Sketches& task) {
  internal::FromWorker reply;
  internal::SketchesDone& sketches = *reply.mutable_sketches();
  sketches.set_task(task.task());
  try {
    for (internal::StageSketches& stage : worker.sketches(task.request()))
      *sketches.add_stages() = std::move(stage);
  } catch (...) {
    *sketches.mutable_error() = to_wire(current_error());
  }
  return reply;
}

internal::FromWorker answer_to(const CompilerWorker& worker, const internal::Predict& task) {
  internal::FromWorker reply;
  internal::Predicted& predicted = *reply.mutable_predicted();
  predicted.set_task(task.task());
  try {
    worker.predictions(task, predicted);
  } catch (...) {
    *predicted.mutable_error() = to_wire(current_error());
  }
  return reply;
}

}  // namespace

int compiler_loop(const CompilerWorker& worker, Fd socket, Fd page) {
  try {
    Channel channel(std::move(socket), Channel::WhenFull::Wait);
    SharedStatus status(page);
    const Heartbeat heartbeat(status, channel.fd(), worker.abandoned);
    channel.send(hello_of(worker));
    internal::ToWorker message;
    std::vector<Fd> fds;
    while (channel.receive(message, fds)) {
      if (message.has_compile()) {
        channel.send(answer_to(worker, message.compile()));
      } else if (message.has_text()) {
        channel.send(answer_to(worker, message.text()));
      } else if (message.has_sketches()) {
        channel.send(answer_to(worker, message.sketches()));
      } else if (message.has_predict()) {
        channel.send(answer_to(worker, message.predict()));
      } else {
        return 1;
      }
    }
    return 0;
  } catch (...) {
    current_error();  // logged; the front end sees the end of the worker
    return 1;
  }
}

}  // namespace kiln::server
