#pragma once

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/language/wire/decode.h"
#include "compiler/target.h"
#include "compiler/tile_block.h"
#include "kiln/v1/service.pb.h"

namespace kiln::server {

/// A request as the compiler takes it. The front end has checked it; decode() is the only maker of
/// kernels all the same.
struct CompilerInput {
  explicit CompilerInput(const v1::CompileRequest& request)
      : kernel(language::decode(request.definition(), request.source_map())),
        schedule(language::decode_schedule(request.schedule(), kernel)) {
    target.kind = target_from_name(request.target().name());
    target.arch = request.target().arch();
    options.automatic = request.options().auto_() != v1::AUTO_MODE_NEVER;
    options.strict = request.options().strict();
    options.fast = request.options().fast();
    options.reproducible = !request.options().not_reproducible();
    options.check_nan = request.options().check_nan();
    options.untouched = options.automatic && schedule.steps.empty();
  }

  SketchSpace space() const { return {kernel, schedule, target, options}; }
  /// With blocks of code made of tiles, which are other sketches.
  SketchSpace space_with_tiles() const {
    return {kernel, schedule, target, options, tile_blocks(kernel, target, options)};
  }
  language::Schedule chosen() const { return choose_schedule(kernel, schedule, target, options); }

  language::Kernel kernel;
  language::Schedule schedule;
  Target target;
  CompileOptions options;
};

}  // namespace kiln::server
