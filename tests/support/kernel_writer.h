#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/drawn_values.h"
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
  Values values = {};

  size_t rank() const { return shape.size(); }
  DType type() const { return values.type; }
};

/// An input, and what to fill it with.
struct DrawnInput {
  enum class Fill : uint8_t {
    Whole,   // whole numbers from low to high
    Sorted,  // the same, rising
    Real,    // any numbers from low to high
    Wild,    // what the type has at its ends, nan and infinities too
  };
  DrawnTensor tensor;
  Fill fill = Fill::Whole;
  int64_t low = 0;
  int64_t high = 0;
};

/// Writes the text of one random kernel, stage after stage. What a kind of stage needs to add
/// itself: names, extents, tensors to read and places for text.
class KernelWriter {
 public:
  explicit KernelWriter(Random& source);

  Random& random;

  /// The type of most tensors.
  DType type() const { return type_; }
  /// Whether values are no whole numbers.
  bool is_rough() const { return is_rough_; }
  const std::vector<DrawnExtent>& extents() const { return extents_; }
  /// All that may be read, in order.
  const std::vector<DrawnTensor>& tensors() const { return tensors_; }
  /// The computed ones of these.
  const std::vector<DrawnTensor>& computed() const { return computed_; }

  std::string new_name();
  /// Any type but bool and those of floating numbers with 8 bits.
  DType random_type();
  /// A small constant.
  Term literal(DType type);
  /// `count` names of axes.
  static std::vector<std::string> axes_of(size_t count);
  static std::string access(const DrawnTensor& tensor, const std::vector<std::string>& indices);
  static Term read(const DrawnTensor& tensor, const std::vector<std::string>& indices);
  /// A read of some tensor whose dimensions all stand among `axes` with `shape`, as a `type`; else
  /// a literal.
  Term read_over(const std::vector<std::string>& axes, const std::vector<DrawnExtent>& shape,
                 DType type);

  /// An input that later stages may read too.
  DrawnTensor add_input(const std::vector<DrawnExtent>& shape, DType type);
  /// An input of small whole numbers that no other stage reads.
  DrawnTensor add_own_input(const std::vector<DrawnExtent>& shape, DType type);
  /// An input of whole numbers from low to high, for indices and bounds.
  DrawnTensor add_index_input(const std::vector<DrawnExtent>& shape, int64_t low, int64_t high,
                              DrawnInput::Fill fill = DrawnInput::Fill::Whole);
  /// One more stage: `T[axes] = body`.
  void add_compute(const std::vector<DrawnExtent>& shape, const std::vector<std::string>& axes,
                   const Term& body);
  /// The same where the body is no operation on terms, such as a reduction.
  void add_compute(const DrawnTensor& tensor, const std::vector<std::string>& axes,
                   const std::string& body);
  /// A tensor that lines of add_lines() define. One that `may_be_read` can be the source of later
  /// stages.
  void declare(const DrawnTensor& tensor, bool may_be_read = true);
  void add_lines(std::string_view lines) { body_ += lines; }
  /// The tensor shall be an output, whatever else is.
  void make_output(const DrawnTensor& tensor) { forced_outputs_.insert(tensor.name); }

  /// An index may be outside of a tensor, which stops a call.
  void allow_outside() { may_stop_ = true; }
  bool may_stop() const { return may_stop_; }

  /// The whole text, with an output or two.
  std::string finish();
  const std::vector<DrawnInput>& inputs() const { return inputs_; }
  /// Values of the size variables that the text has.
  const std::map<std::string, int64_t>& sizes() const { return sizes_; }
  /// How far rounding may move each output; those that finish() has chosen.
  const std::vector<double>& errors() const { return errors_; }
  int stages() const { return static_cast<int>(declarations_.size()); }

 private:
  std::set<std::string> choose_outputs();
  void drop_unused_sizes(const std::vector<std::string>& parameters);
  DrawnInput input_of(DrawnTensor tensor);

  DType type_;
  bool is_rough_ = false;
  bool may_stop_ = false;
  std::vector<DrawnExtent> extents_;
  std::map<std::string, int64_t> sizes_;
  std::vector<DrawnInput> inputs_;
  std::vector<DrawnTensor> tensors_;
  std::vector<DrawnTensor> computed_;
  std::vector<DrawnTensor> declarations_;
  std::set<std::string> forced_outputs_;
  std::vector<double> errors_;
  std::string body_;
  int counter_ = 0;
};

}  // namespace kiln::testing
