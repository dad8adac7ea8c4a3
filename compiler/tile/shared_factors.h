#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/tile/tensor_places.h"
#include "compiler/tile/thread_layout.h"
#include "compiler/tile/value_uses.h"

namespace kiln::tile {

/// A factor of a product of tiles in memory that all threads of a block read.
struct SharedFactor {
  ir::BufferRef memory;
  bool is_sum_first = false;  // memory[step, place], where the place is along the other side
  int64_t steps = 0;          // of the sum

  std::vector<ir::Expr> indices(const ir::Expr& place, const ir::Expr& step) const;
};

/// The memory of all factors, and how it is filled. Loops that do not run at once have the same.
class SharedFactors {
 public:
  SharedFactors(const Program& program, const TensorPlaces& places, const ThreadLayout& layout)
      : program_(program), places_(places), layout_(layout) {}

  /// Of a tile of a view, whose dimensions that are longer than one are the two of the factor. All
  /// threads copy it. Beyond the end of a sum is 0 where nothing else says so, elsewhere anything.
  SharedFactor copied(const Load& load, const ValueUses::Factor& use, std::vector<ir::Stmt>& out);
  /// Memory for a factor of so many rows and steps that threads compute, its type that of the
  /// factor.
  SharedFactor computed(DType type, int64_t rows, int64_t steps);

  /// What has to be done before anything is copied: what no copy reaches is 0.
  const std::vector<ir::Stmt>& first() const { return first_; }
  const std::vector<ir::BufferRef>& memory() const { return memory_; }

 private:
  struct Shape {
    DType type;
    int64_t outer;
    int64_t inner;
    bool is_zero_at_ends;
  };
  /// Of a use, by its key.
  ir::BufferRef memory_of(const std::string& key, const std::string& name, const Shape& shape);
  DType type_of(DType factor) const { return layout_.has_matrices() ? factor : DType::Float32; }
  /// for each of so many elements, by as many threads as there are: body(number)
  ir::Stmt shared_out(int64_t count, const std::function<ir::Stmt(const ir::Expr&)>& body) const;

  const Program& program_;
  const TensorPlaces& places_;
  const ThreadLayout& layout_;
  std::map<std::string, ir::BufferRef> known_;
  std::vector<ir::BufferRef> memory_;
  std::vector<ir::Stmt> first_;
};

}  // namespace kiln::tile
