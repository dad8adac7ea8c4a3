// A kernel's way from its definition to loops that code is generated from: build_loops, then a
// table of passes. What each pass promises stands at the head of passes/NAME.cc, how the table is
// run in pass_table.h.
#include "compiler/lower.h"

#include "compiler/code_limits.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/build_loops.h"
#include "compiler/tile/thread_attention.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln {
namespace passes {

PassFunction simplify, tangents_as_exponentials, validate_threads, bind_to_cores, carry_states,
    shift_last_tiles, fill_vectors, fill_tiles, fill_steps, partition_loops, collapse_parallel,
    validate_vectors, interleave_vthreads, lower_warp_memory, separate_launches, insert_barriers,
    unroll_turns, accumulate_in_locals, step_in_groups, keep_strided_plain, tensorize,
    multiply_in_tiles, add_in_groups, widen_copies, accumulate_in_registers, carry_steps,
    turn_signs_once, lay_out_lanes, join_loops, contract_buffers, keep_in_outputs,
    tabulate_invariants, plan_storage, flatten_storage, vectorize_loops, accumulate_in_lanes,
    unroll_loops, cut_unrolled_loops, divide_once, hoist_invariants, bypass_caches, fetch_ahead,
    note_slow_loops, divide_unsigned, split_host_device, check_launch;

}  // namespace passes

namespace {

/// The compiler's table of contents: what happens to the loops of a kernel, in order.
constexpr Pass kPasses[] = {
    // The arithmetic of bounds inference is noisy; from here on loops read as the user wrote them.
    {"simplify", passes::simplify, Serves::All},
    // While an element is one number.
    {"tangents_as_exponentials", passes::tangents_as_exponentials, Serves::Cores, Changes::Few},
    // The last point where a loop is still what bind() made it.
    {"validate_threads", passes::validate_threads, Serves::Threads, Changes::None},
    // Before partition_loops, which then frees full blocks of their guards on the CPU too.
    {"bind_to_cores", passes::bind_to_cores, Serves::Cores},
    // Before partition_loops, which divides what is one nest here.
    {"carry_states", passes::carry_states, Serves::Cores},
    // Before partition_loops, which has nothing to cut there then.
    {"shift_last_tiles", passes::shift_last_tiles, Serves::Cores},
    // Before partition_loops too, which would copy the loops over all tiles for the last vector.
    {"fill_vectors", passes::fill_vectors, Serves::Cores, Changes::Few},
    // Before partition_loops, which cuts loops for the guards that are left.
    {"fill_tiles", passes::fill_tiles, Serves::Threads},
    // After fill_tiles, which leaves matrix instructions no guard but that of the steps.
    {"fill_steps", passes::fill_steps, Serves::Threads, Changes::Few},
    {"partition_loops", passes::partition_loops, Serves::All},
    // After partition_loops: a guard is simple in the loops' own variables, not in the fused one.
    {"collapse_parallel", passes::collapse_parallel, Serves::Cores},
    // These three while indices are per dimension, where accesses are easily told apart.
    {"validate_vectors", passes::validate_vectors, Serves::Cores, Changes::Few},
    // Before memory is looked at for who shares it.
    {"interleave_vthreads", passes::interleave_vthreads, Serves::Threads},
    // Before it is asked which threads wait for each other: those of a warp do not.
    {"lower_warp_memory", passes::lower_warp_memory, Serves::Threads, Changes::Few},
    {"separate_launches", passes::separate_launches, Serves::Threads},
    {"insert_barriers", passes::insert_barriers, Serves::Threads},
    // After insert_barriers, which knows memories in turn by their remainders.
    {"unroll_turns", passes::unroll_turns, Serves::Threads, Changes::Few},
    // While indices are per dimension; before a thread's buffers get their place.
    {"accumulate_in_locals", passes::accumulate_in_locals, Serves::Threads},
    // While indices are per dimension; before vectorize_loops, which knows what of rows is
    // aligned.
    {"step_in_groups", passes::step_in_groups, Serves::Threads, Changes::Few},
    {"keep_strided_plain", passes::keep_strided_plain, Serves::Cores},
    // Of full tiles, so after partition_loops.
    {"tensorize", passes::tensorize, Serves::Cores},
    // The same where no step names it: by the matrix unit of a core, or else in vectors.
    {"multiply_in_tiles", passes::multiply_in_tiles, Serves::Cores, Changes::Few},
    {"add_in_groups", passes::add_in_groups, Serves::Cores},
    // Of what add_in_groups finds, while an element is a load of one buffer.
    {"widen_copies", passes::widen_copies, Serves::Cores, Changes::Few},
    // After partition_loops, since full tiles are what it is for; before the accumulators get a
    // place.
    {"accumulate_in_registers", passes::accumulate_in_registers, Serves::Cores},
    // After partition_loops, as the one before it.
    {"carry_steps", passes::carry_steps, Serves::Cores, Changes::Few},
    // While rows and columns of the accumulators are loops.
    {"turn_signs_once", passes::turn_signs_once, Serves::Cores},
    // While indices are per dimension.
    {"lay_out_lanes", passes::lay_out_lanes, Serves::Cores},
    // Of loops as they will run, and before what is asked of one loop alone.
    {"join_loops", passes::join_loops, Serves::Cores, Changes::Few},
    // Of what join_loops has brought together; before outputs keep what is left.
    {"contract_buffers", passes::contract_buffers, Serves::Cores, Changes::Few},
    // After what gives accumulators a place, which outputs are not.
    {"keep_in_outputs", passes::keep_in_outputs, Serves::Cores, Changes::Few},
    // Of loops as they will run; before tables get their place.
    {"tabulate_invariants", passes::tabulate_invariants, Serves::Cores, Changes::Few},
    // After all that makes a loop parallel or serial: a buffer in a parallel loop is one a thread.
    {"plan_storage", passes::plan_storage, Serves::All},
    {"flatten_storage", passes::flatten_storage, Serves::All},
    // Wants whole loops (before unroll_loops) and indices in elements (after flatten_storage).
    {"vectorize_loops", passes::vectorize_loops, Serves::All},
    {"accumulate_in_lanes", passes::accumulate_in_lanes, Serves::Cores},
    {"unroll_loops", passes::unroll_loops, Serves::All},
    // After vectorize_loops, which makes one guard of those of lanes; before simplify, which takes
    // the guards away that hold.
    {"cut_unrolled_loops", passes::cut_unrolled_loops, Serves::Threads, Changes::Few},
    // After accumulate_in_lanes, which knows sums by the loop right around them.
    {"divide_once", passes::divide_once, Serves::Cores},
    // Folds the indices the passes since the first simplify leave behind.
    {"simplify", passes::simplify, Serves::All},
    {"hoist_invariants", passes::hoist_invariants, Serves::All},
    // After hoist_invariants, which knows loops by what their bodies begin with.
    {"bypass_caches", passes::bypass_caches, Serves::Cores, Changes::Few},
    {"fetch_ahead", passes::fetch_ahead, Serves::Cores, Changes::Few},
    // Of the loops as code is generated from them.
    {"note_slow_loops", passes::note_slow_loops, Serves::Cores, Changes::None},
    // After the last simplify, which knows nothing of casts.
    {"divide_unsigned", passes::divide_unsigned, Serves::Threads},
    {"split_host_device", passes::split_host_device, Serves::Threads},
    {"check_launch", passes::check_launch, Serves::Threads, Changes::None},
};

constexpr std::string_view kFirst = "build_loops";
constexpr std::string_view kPlain = "simplify:1";

PassTable passes_of(TargetKind target) { return PassTable(kFirst, kPasses, target); }

/// An attention in blocks of threads has loops of its own, whatever else its steps say.
ir::Kernel first_loops(const language::Kernel& definition, const language::Schedule& schedule,
                       const PassContext& context) {
  if (context.target.traits().has_threads && tile::thread_block_of(schedule))
    return tile::threaded_attention(definition, schedule, without_figures(context.target.arch),
                                    context.options.strict);
  return build_loops(definition, schedule, context.target, context.options);
}

ir::Kernel build(const language::Kernel& definition, const language::Schedule& schedule,
                 const PassContext& context, LoweringObserver& observer) {
  // What it refuses names a stage or a step; that it is a pass says no more to the user.
  ir::Kernel kernel = first_loops(definition, schedule, context);
  finish_pass(kFirst, kernel, context, observer);
  return kernel;
}

}  // namespace

ir::Kernel plain_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options,
                       LoweringObserver& observer) {
  const PassContext context{target, options};
  const ir::Kernel loops = build(kernel, schedule, context, observer);
  return passes_of(target.kind).run_until(kPlain, loops, context, observer);
}

ir::Kernel lower(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options, Layout layout,
                 LoweringObserver& observer) {
  const PassContext context{target, options, layout};
  const ir::Kernel loops = build(kernel, schedule, context, observer);
  ir::Kernel result = passes_of(target.kind).run_until("", loops, context, observer);
  check_code(result, context);
  return result;
}

ir::Kernel run_passes(const ir::Kernel& kernel, const Target& target, const CompileOptions& options,
                      Layout layout, LoweringObserver& observer) {
  const PassContext context{target, options, layout};
  return passes_of(target.kind).run_until("", kernel, context, observer);
}

const Pass& pass_named(std::string_view name) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return pass;
  fail(ErrorKind::InvalidArgument, "PASS", "there is no pass {}", name);
}

std::vector<std::string> pass_names(const Target& target) { return passes_of(target.kind).names(); }

std::string lowered_text(const language::Kernel& kernel, const language::Schedule& schedule,
                         const Target& target, const CompileOptions& options,
                         std::string_view pass) {
  const PassTable passes = passes_of(target.kind);
  const std::string last = pass.empty() ? std::string(kPlain) : passes.resolve(pass);
  const PassContext context{target, options};
  LoweringObserver observer;
  ir::Kernel shown = build(kernel, schedule, context, observer);
  if (last != kFirst) shown = passes.run_until(last, shown, context, observer);
  shown.checks.clear();  // a table in numbers, which a person has no use for
  return ir::print(shown);
}

}  // namespace kiln
