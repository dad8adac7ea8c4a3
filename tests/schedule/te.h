#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln::testing {

using language::AxisId;
using language::Combiner;
using language::ExprId;
using language::Operator;
using language::StageId;
using language::TensorId;

class Te;

/// An expression of a kernel under construction; operators add to the kernel's table.
struct TeExpr {
  Te* te = nullptr;
  ExprId id = 0;
};

struct TeTensor {
  Te* te = nullptr;
  TensorId id;
  template <typename... Index>
  TeExpr operator()(Index... indices) const;
};

/// Makes kernels and schedules as a client does, for tests.
class Te {
 public:
  Te() { kernel.names.kernel = "k"; }
  Te(const Te&) = delete;
  Te& operator=(const Te&) = delete;

  TeExpr var(const std::string& name);
  TeExpr integer(int64_t value, DType type = DType::Int64);
  TeExpr real(double value, DType type = DType::Float32);
  TeExpr op(Operator op, const std::vector<TeExpr>& operands);
  TeExpr cast(DType type, TeExpr value);
  TeExpr read(TensorId tensor, const std::vector<TeExpr>& indices);

  TeTensor placeholder(const std::string& name, const std::vector<TeExpr>& shape,
                       DType type = DType::Float32);
  /// Axes are named by `axes`, a word each.
  TeTensor compute(const std::string& name, const std::string& axes,
                   const std::vector<TeExpr>& shape,
                   const std::function<TeExpr(std::vector<TeExpr>)>& body);
  std::vector<TeTensor> compute_all(
      const std::string& name, const std::string& axes, const std::vector<TeExpr>& shape,
      const std::function<std::vector<TeExpr>(std::vector<TeExpr>)>& bodies);
  TeExpr reduce_axis(const std::string& name, TeExpr minimum, TeExpr extent);
  TeExpr reduce(Combiner combiner, TeExpr source, const std::vector<TeExpr>& axes);
  TeExpr sum(TeExpr source, const std::vector<TeExpr>& axes) {
    return reduce(Combiner::Sum, source, axes);
  }
  /// Which initial steps a scan has, and which way it runs.
  struct Time {
    int64_t initial = 1;
    uint32_t dimension = 0;
    bool reverse = false;
  };
  /// The scan `name` over `m` time steps.
  std::vector<TeTensor> scan(const std::string& name, std::vector<TeTensor> init,
                             std::vector<TeTensor> update, std::vector<TeTensor> state, TeExpr m,
                             Time time);
  std::vector<TeTensor> scan(const std::string& name, std::vector<TeTensor> init,
                             std::vector<TeTensor> update, std::vector<TeTensor> state, TeExpr m,
                             int64_t initial = 1) {
    return scan(name, std::move(init), std::move(update), std::move(state), m,
                Time{.initial = initial});
  }
  void arguments(const std::vector<TeTensor>& tensors);

  // Steps. Axes are named as they are printed: "i.outer".
  AxisId axis(const TeTensor& tensor, const std::string& name) const;
  void split(const TeTensor& tensor, const std::string& axis, int64_t factor);
  void split_parts(const TeTensor& tensor, const std::string& axis, int64_t parts);
  void tile(const TeTensor& tensor, const std::string& x, const std::string& y, int64_t fx,
            int64_t fy);
  void fuse(const TeTensor& tensor, const std::vector<std::string>& axes);
  void reorder(const TeTensor& tensor, const std::vector<std::string>& axes);
  void bind(const TeTensor& tensor, const std::string& axis, const std::string& tag);
  void parallel(const TeTensor& tensor, const std::string& axis);
  void vectorize(const TeTensor& tensor, const std::string& axis);
  void unroll(const TeTensor& tensor, const std::string& axis);
  void compute_at(const TeTensor& tensor, const TeTensor& consumer, const std::string& axis);
  void compute_inline(const TeTensor& tensor);
  void compute_root(const TeTensor& tensor);
  void storage_align(const TeTensor& tensor, const std::string& axis, int64_t factor,
                     int64_t offset);
  void double_buffer(const TeTensor& tensor);
  void tensorize(const TeTensor& tensor, const std::string& axis, const std::string& intrinsic);
  void pragma(const TeTensor& tensor, const std::string& axis, const std::string& kind,
              int64_t value = 0);
  /// What `reader` reads of `tensor`.
  void prefetch(const TeTensor& reader, const TeTensor& tensor, const std::string& axis,
                int64_t offset);
  void env_threads(const TeTensor& scan, const std::vector<std::string>& threads);
  void software_pipeline(const TeTensor& tensor, const std::string& axis, int64_t stages);

  /// The loops after build_loops and the simplifying of their expressions, as text.
  std::string lowered(TargetKind target = TargetKind::Llvm) const;
  /// The same with the steps that choose_schedule adds.
  std::string automatic(TargetKind target = TargetKind::Llvm,
                        const CompileOptions& options = {}) const;
  /// What the report says of them.
  std::vector<std::string> notes(TargetKind target = TargetKind::Llvm) const;
  /// Only builds them, for errors.
  void build(TargetKind target = TargetKind::Llvm) const;

  language::Kernel kernel;
  language::Schedule schedule;

 private:
  struct Row {
    std::string name;
    StageId stage;
  };
  ExprId add(language::Expression expression);
  language::Step& step(language::StepKind kind, const TeTensor& tensor,
                       const std::vector<std::string>& axes);
  void own(AxisId axis, StageId stage) { rows_[axis].stage = stage; }

  std::vector<Row> rows_;  // all axes, those of steps too
};

template <typename... Index>
TeExpr TeTensor::operator()(Index... indices) const {
  return te->read(id, {indices...});
}

TeExpr operator+(TeExpr a, TeExpr b);
TeExpr operator-(TeExpr a, TeExpr b);
TeExpr operator*(TeExpr a, TeExpr b);
TeExpr operator+(TeExpr a, int64_t b);
TeExpr operator-(TeExpr a, int64_t b);
TeExpr operator*(TeExpr a, int64_t b);

}  // namespace kiln::testing
