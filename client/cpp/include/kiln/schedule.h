#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/source_location.h>
#include <kiln/steps.h>
#include <kiln/tensor.h>

namespace kiln {
inline namespace client {

namespace detail {
/// A tensor, and the line of the user's program that names it.
struct TensorHere {
  template <typename T>
  requires(std::convertible_to<const T&, Tensor>)
      TensorHere(const T& tensor, SourceLocation where = SourceLocation::current())
      : tensor(tensor), where(where) {}
  Tensor tensor;
  SourceLocation where;
};
}  // namespace detail

/// One stage of a schedule: its steps are recorded in the order they are asked for.
///
/// Axes come from the tensor (`C.axis(0)`, `C.reduce_axes()[0]`, `s.scan_axis()`) and from steps; a
/// step that splits or joins axes uses them up. What needs the sizes or the other stages is checked
/// by the service. Steps that take axes and a number at most (`parallel`, `compute_inline`, ..) are
/// in kiln/steps.h, made from the step table.
class Stage : public detail::PlainSteps {
 public:
  /// axis = outer * factor + inner.
  std::pair<Axis, Axis> split(const Axis& axis, std::int64_t factor,
                              Where where = Where::current()) const;
  /// Into `parts` outer iterations.
  std::pair<Axis, Axis> split_parts(const Axis& axis, std::int64_t parts,
                                    Where where = Where::current()) const;
  /// Neighbouring axes into one, the outermost first.
  Axis fuse(const std::vector<Axis>& axes, Where where = Where::current()) const;
  /// x.outer, y.outer, x.inner, y.inner.
  std::array<Axis, 4> tile(const Axis& x, const Axis& y, std::int64_t x_factor,
                           std::int64_t y_factor, Where where = Where::current()) const;
  /// To a thread axis: "blockIdx.x" ... "threadIdx.z", "vthread".
  void bind(const Axis& axis, const std::string& thread, Where where = Where::current()) const;
  /// This stage inside the loop `axis` of `consumer`, only what that iteration needs.
  void compute_at(const Stage& consumer, const Axis& axis, Where where = Where::current()) const;
  /// The memory scope in which the stage's values lie: "global", "shared", "local", ..
  void set_scope(const std::string& scope, Where where = Where::current()) const;

  /// In memory, neighbours along a dimension lie a multiple of `factor` and `offset` elements
  /// apart.
  void storage_align(const Axis& axis, std::int64_t factor, std::int64_t offset,
                     Where where = Where::current()) const;
  /// In memory the stage's dimensions are these, each named once for each of its factors: it counts
  /// how often as many elements along the axis have been passed. transform_layout({i, j, i}, {4, 1,
  /// 1}) lays element (i, j) at (i / 4, j, i % 4).
  void transform_layout(const std::vector<Axis>& axes, const std::vector<std::int64_t>& factors,
                        Where where = Where::current()) const;
  /// The loops from the axis inwards are this tensor intrinsic: "x86.dot.u8s8s32", ..
  void tensorize(const Axis& axis, const std::string& intrinsic,
                 Where where = Where::current()) const;
  /// A wish about the loops from the axis inwards: "auto_unroll_max_step", ..
  void pragma(const Axis& axis, const std::string& kind, std::int64_t value = 0,
              Where where = Where::current()) const;
  /// Each iteration fetches into the cache what the one `offset` iterations later reads.
  void prefetch(const Tensor& tensor, const Axis& axis, std::int64_t offset = 1,
                Where where = Where::current()) const;
  /// The threads stand around the whole scan, not in each of its steps.
  void env_threads(const std::vector<std::string>& threads, Where where = Where::current()) const;

  /// The reduction axes it has now: after cache_write none, after rfactor the one that it made,
  /// after reduction_stage those of the other reductions.
  std::vector<Axis> reduce_axes() const;

  Stage(std::shared_ptr<detail::ScheduleState> schedule,
        std::shared_ptr<const detail::StageNode> stage)
      : PlainSteps(std::move(schedule), std::move(stage)) {}
};

/// How the stages behind some outputs are run. A handle: copies share the steps.
class Schedule {
 public:
  explicit Schedule(std::shared_ptr<detail::ScheduleState> state) : state_(std::move(state)) {}

  Stage operator[](const detail::TensorHere& tensor) const;

  // Steps that make a stage, which is a tensor of this schedule. Its axes are `axis(d)` and
  // `reduce_axes()` of that tensor; its shape is known to the service alone.

  /// A copy of the tensor in a memory scope, which the readers read instead of it.
  Tensor cache_read(const Tensor& tensor, const std::string& scope,
                    const std::vector<Tensor>& readers,
                    SourceLocation where = SourceLocation::current()) const;
  /// The same for one reader, with loops of it as the dimensions of the copy, in this order: of
  /// each iteration the element that the reader reads. What stands far apart comes together.
  Tensor cache_read(const Tensor& tensor, const std::string& scope,
                    const std::vector<Tensor>& readers, const std::vector<Axis>& layout,
                    SourceLocation where = SourceLocation::current()) const;
  /// A copy of the tensor with the constant that the reader puts around it, where the reader
  /// chooses between an element and a constant by a condition on the indices of the element; or
  /// with what the reader computes of single elements: of max(A[i, k], 0) * B[k, j], the maxima.
  Tensor cache_padded(const Tensor& tensor, const Tensor& reader,
                      SourceLocation where = SourceLocation::current()) const;
  /// Computes the tensor's values, laid out as its loops so far; its own stage becomes a copy.
  Tensor cache_write(const Tensor& tensor, const std::string& scope,
                     SourceLocation where = SourceLocation::current()) const;
  /// Partial results for each value of a reduction loop, which is dimension `factor_axis`.
  Tensor rfactor(const Tensor& tensor, const Axis& axis, unsigned factor_axis = 0,
                 SourceLocation where = SourceLocation::current()) const;
  /// The reduction over `axis` inside the tensor's expression as a tensor of its own, which the
  /// expression reads.
  Tensor reduction_stage(const Tensor& tensor, const Axis& axis,
                         SourceLocation where = SourceLocation::current()) const;

  /// The steps as a block of a schedule file: `schedule cpu { split(C.i, factor=32) ... }`.
  std::string text(std::string_view target = "cpu") const;
  /// Writes that file. Throws NotFound FILE.
  void save(const std::string& path, std::string_view target = "cpu") const;

  const std::shared_ptr<detail::ScheduleState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::ScheduleState> state_;
};

Schedule create_schedule(const Tensor& output);
Schedule create_schedule(const std::vector<Tensor>& outputs);

/// The schedule that a schedule file's block for `target` makes of these outputs; steps name
/// tensors and axes as the program does. Throws InvalidArgument SYNTAX with the line of the file,
/// NotFound SCHEDULE when it has no such block.
Schedule parse_schedule(std::string_view text, const std::vector<Tensor>& outputs,
                        std::string_view target = "cpu", const std::string& file_name = "schedule");
/// The same from a file, as Schedule::save() writes it.
Schedule load_schedule(const std::string& path, const std::vector<Tensor>& outputs,
                       std::string_view target = "cpu");

}  // namespace client
}  // namespace kiln
