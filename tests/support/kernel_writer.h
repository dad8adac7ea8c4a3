#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/random.h"

namespace kiln::testing {

/// An extent: a constant, or a size variable minus a constant.
struct DrawnExtent {
  std::string variable;  // empty: a constant
  int offset = 0;        // the constant, or what is subtracted
  int value = 0;         // in this case

  std::string text() const;
  /// The same, `by` shorter.
  DrawnExtent less(int by) const;
  bool operator==(const DrawnExtent&) const = default;
};

struct DrawnTensor {
  std::string name;
  std::vector<DrawnExtent> shape;
};

/// Writes the text of one random kernel, stage after stage. What a kind of stage needs to add
/// itself: names, extents, tensors to read and places for text.
class KernelWriter {
 public:
  explicit KernelWriter(Random& source);

  Random& random;

  /// The one type of all tensors.
  const std::string& type() const { return type_; }
  bool is_integral() const { return type_.starts_with("int"); }
  const std::vector<DrawnExtent>& extents() const { return extents_; }
  /// All that may be read, in order.
  const std::vector<DrawnTensor>& tensors() const { return tensors_; }
  /// The computed ones of these.
  const std::vector<DrawnTensor>& computed() const { return computed_; }

  std::string new_name();
  /// A small constant of the type.
  std::string literal();
  /// `count` names of axes.
  static std::vector<std::string> axes_of(size_t count);
  static std::string access(const DrawnTensor& tensor, const std::vector<std::string>& indices);
  /// A read of some tensor whose dimensions all stand among `axes` with `shape`; else a literal.
  std::string read_over(const std::vector<std::string>& axes,
                        const std::vector<DrawnExtent>& shape);

  DrawnTensor add_input(const std::vector<DrawnExtent>& shape);
  /// One more stage: `tensor[axes] = body`.
  void add_compute(const DrawnTensor& tensor, const std::vector<std::string>& axes,
                   const std::string& body);
  /// A tensor that lines of add_lines() define. One that `may_be_read` can be the source of later
  /// stages.
  void declare(const DrawnTensor& tensor, bool may_be_read = true);
  void add_lines(std::string_view lines) { body_ += lines; }
  /// The tensor shall be an output, whatever else is.
  void make_output(const DrawnTensor& tensor) { forced_outputs_.insert(tensor.name); }

  /// The whole text, with an output or two.
  std::string finish();
  /// Values of the size variables that the text has.
  const std::map<std::string, int64_t>& sizes() const { return sizes_; }
  int stages() const { return static_cast<int>(declarations_.size()); }

 private:
  std::vector<std::string> choose_outputs();
  void drop_unused_sizes(const std::vector<std::string>& parameters);
  std::string declaration(const DrawnTensor& tensor) const;

  std::string type_;
  std::vector<DrawnExtent> extents_;
  std::map<std::string, int64_t> sizes_;
  std::vector<DrawnTensor> inputs_;
  std::vector<DrawnTensor> tensors_;
  std::vector<DrawnTensor> computed_;
  std::vector<DrawnTensor> declarations_;
  std::set<std::string> forced_outputs_;
  std::string body_;
  int counter_ = 0;
};

}  // namespace kiln::testing
