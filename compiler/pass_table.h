#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/passes/pass_context.h"

namespace kiln {

/// Targets where loops run on cores, or as threads that are launched.
enum class Serves { All, Cores, Threads };

/// A pass: a pure function from kernel to kernel, in a .cc of compiler/passes that has its name and
/// opens with its contract.
using PassFunction = ir::Kernel(ir::Kernel kernel, const PassContext& context);

/// Which kernels have their loops changed: some of any sort; few, as those of large tensors; none,
/// since the pass only looks.
enum class Changes { Some, Few, None };

/// A row of the table of passes.
struct Pass {
  std::string_view name;
  PassFunction* run;
  Serves serves;
  Changes changes = Changes::Some;
};

/// Is told the kernel after each pass; for printing, timing and tests. A test may change it, to see
/// that a mistake of the pass would be found.
class LoweringObserver {
 public:
  virtual ~LoweringObserver() = default;
  virtual void after(std::string_view pass, ir::Kernel& kernel) {}
};

/// The rows of a table that serve one target, and running them.
class PassTable {
 public:
  /// A row by its own name: with :1, :2 where a pass stands twice.
  struct Row {
    std::string name;
    const Pass* pass;
  };

  /// `first` is what has been done to a kernel before the first row.
  PassTable(std::string_view first, std::span<const Pass> table, TargetKind target);

  /// Names in order, that of what comes before the first row included.
  std::vector<std::string> names() const;

  /// The row's own name, of `asked` or of the last one that runs this pass. Throws InvalidArgument
  /// PASS listing the names when there is none.
  std::string resolve(std::string_view asked) const;

  /// Runs the passes up to the row called `last`, all of them when there is none, and verifies the
  /// result. Bounds and shows what each leaves.
  ir::Kernel run_until(std::string_view last, const ir::Kernel& kernel, const PassContext& context,
                       LoweringObserver& observer) const;

 private:
  ir::Kernel run(std::string_view last, ir::Kernel kernel, const PassContext& context,
                 LoweringObserver& observer) const;

  std::string first_;
  TargetKind target_;
  std::vector<Row> rows_;
};

/// Bounds what a pass left, and shows it.
void finish_pass(std::string_view pass, ir::Kernel& kernel, const PassContext& context,
                 LoweringObserver& observer);

}  // namespace kiln
