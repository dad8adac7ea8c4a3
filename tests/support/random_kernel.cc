#include "tests/support/random_kernel.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::testing {
namespace {

/// An extent: a constant, or a size variable minus a constant.
struct Extent {
  std::string variable;  // empty: a constant
  int offset = 0;        // the constant, or what is subtracted
  int value = 0;         // in this case
  std::string text() const {
    if (variable.empty()) return std::to_string(offset);
    return offset == 0 ? variable : fmt::format("{} - {}", variable, offset);
  }
  bool operator==(const Extent&) const = default;
};

struct Tensor {
  std::string name;
  std::vector<Extent> shape;
};

const std::vector<std::string> kAxes = {"i", "j", "l"};

/// Writes the text of one kernel, stage after stage.
class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {
    type_ =
        random_.pick(std::vector<std::string>{"float32", "float32", "int32", "float64", "int64"});
  }

  RandomKernel write() {
    choose_extents();
    const int inputs = random_.between(1, 3);
    for (int i = 0; i < inputs; ++i)
      add_input();
    if (random_.chance(0.25)) add_scan();
    const int stages = random_.between(result_.has_scan ? 0 : 1, 4);
    for (int i = 0; i < stages; ++i)
      add_stage();
    finish();
    return std::move(result_);
  }

 private:
  void choose_extents() {
    const std::vector<int> values = {1, 2, 3, 5, 7, 8, 12, 16, 17, 31, 33};
    for (const char* name : {"n", "m", "k"}) {
      const int value = random_.pick(values);
      if (random_.chance(0.5)) {
        extents_.push_back({name, 0, value});
        result_.sizes[name] = value;
      } else {
        extents_.push_back({"", value, value});
      }
    }
  }

  void add_input() {
    Tensor tensor{fmt::format("X{}", inputs_.size()), {}};
    const int rank = random_.between(1, 3);
    for (int d = 0; d < rank; ++d)
      tensor.shape.push_back(random_.pick(extents_));
    inputs_.push_back(tensor);
    tensors_.push_back(tensor);
  }

  std::string new_name() { return fmt::format("T{}", counter_++); }

  std::string literal() {
    const int value = random_.between(-3, 3);
    const bool integral = type_.starts_with("int");
    return integral ? fmt::format("({})", value) : fmt::format("({}.0)", value);
  }

  static std::string access(const Tensor& tensor, const std::vector<std::string>& indices) {
    return fmt::format("{}[{}]", tensor.name, fmt::join(indices, ", "));
  }

  /// A read of some tensor whose dimensions all stand among `axes` with `shape`; empty if none
  /// does.
  std::string read_over(const std::vector<std::string>& axes, const std::vector<Extent>& shape) {
    std::vector<std::string> candidates;
    for (const Tensor& tensor : tensors_) {
      std::vector<std::string> indices;
      for (const Extent& extent : tensor.shape) {
        std::vector<int> fitting;
        for (size_t d = 0; d < shape.size(); ++d) {
          if (shape[d] == extent) fitting.push_back(static_cast<int>(d));
        }
        if (fitting.empty()) break;
        indices.push_back(axes[random_.pick(fitting)]);
      }
      if (indices.size() == tensor.shape.size()) candidates.push_back(access(tensor, indices));
    }
    return candidates.empty() ? literal() : random_.pick(candidates);
  }

  std::string combine(const std::string& a, const std::string& b) {
    switch (random_.below(7)) {
      case 0: return fmt::format("{} + {}", a, b);
      case 1: return fmt::format("{} - {}", a, b);
      case 2: return fmt::format("{} * {}", a, literal());
      case 3: return fmt::format("min({}, {})", a, b);
      case 4: return fmt::format("max({}, {})", a, b);
      case 5: return fmt::format("select({} < {}, {}, {})", a, b, b, a);
      default: return fmt::format("({} + {}) * {}", a, b, literal());
    }
  }

  void add_stage() {
    const bool chain = !stage_tensors_.empty() && random_.chance(0.7);
    const Tensor source = chain ? stage_tensors_.back() : random_.pick(tensors_);
    switch (random_.below(6)) {
      case 0:
      case 1: return add_pointwise(source);
      case 2: return add_stencil(source);
      case 3: return add_row_reduction(source);
      case 4: return add_product(source);
      default: return add_guarded(source);
    }
  }

  void emit(const Tensor& tensor, const std::vector<std::string>& axes, const std::string& body) {
    std::vector<std::string> shape;
    for (const Extent& extent : tensor.shape)
      shape.push_back(extent.text());
    computed_.push_back(fmt::format("{}: {}[{}]", tensor.name, type_, fmt::join(shape, ", ")));
    body_ += fmt::format("  {}[{}] = {}\n", tensor.name, fmt::join(axes, ", "), body);
    tensors_.push_back(tensor);
    stage_tensors_.push_back(tensor);
    ++result_.stages;
  }

  static std::vector<std::string> axes_of(size_t rank) {
    return {kAxes.begin(), kAxes.begin() + static_cast<long>(rank)};
  }

  /// The same elements, in another order of dimensions, mixed with whatever fits.
  void add_pointwise(const Tensor& source) {
    std::vector<int> order;
    for (size_t d = 0; d < source.shape.size(); ++d)
      order.push_back(static_cast<int>(d));
    if (random_.chance(0.4)) random_.shuffle(order);
    Tensor tensor{new_name(), {}};
    for (const int d : order)
      tensor.shape.push_back(source.shape[d]);
    const std::vector<std::string> axes = axes_of(tensor.shape.size());
    std::vector<std::string> indices(order.size());
    for (size_t d = 0; d < order.size(); ++d)
      indices[order[d]] = axes[d];
    emit(tensor, axes, combine(access(source, indices), read_over(axes, tensor.shape)));
  }

  /// Reads three neighbours along one dimension, which shrinks by two.
  void add_stencil(const Tensor& source) {
    std::vector<int> wide;
    for (size_t d = 0; d < source.shape.size(); ++d) {
      if (source.shape[d].value >= 3) wide.push_back(static_cast<int>(d));
    }
    if (wide.empty()) return add_pointwise(source);
    const int dimension = random_.pick(wide);
    Tensor tensor{new_name(), source.shape};
    Extent& extent = tensor.shape[dimension];
    extent.offset += extent.variable.empty() ? -2 : 2;
    extent.value -= 2;
    const std::vector<std::string> axes = axes_of(tensor.shape.size());
    std::string body;
    for (int shift = 0; shift < 3; ++shift) {
      if (shift == 1 && random_.chance(0.3)) continue;
      std::vector<std::string> indices = axes;
      if (shift > 0) indices[dimension] += fmt::format(" + {}", shift);
      body += (body.empty() ? "" : " + ") + access(source, indices);
    }
    if (extent.variable.empty() || extent.value >= 1) emit(tensor, axes, body);
  }

  void add_row_reduction(const Tensor& source) {
    if (source.shape.size() < 2) return add_pointwise(source);
    const int dimension = random_.below(static_cast<int>(source.shape.size()));
    Tensor tensor{new_name(), source.shape};
    tensor.shape.erase(tensor.shape.begin() + dimension);
    const std::vector<std::string> axes = axes_of(tensor.shape.size());
    std::vector<std::string> indices = axes;
    indices.insert(indices.begin() + dimension, "r");
    const std::string combiner = random_.pick(std::vector<std::string>{"sum", "sum", "max", "min"});
    emit(tensor, axes,
         fmt::format("{}[r < {}]({})", combiner, source.shape[dimension].text(),
                     access(source, indices)));
    result_.has_reduction = true;
  }

  /// sum over the last dimension of `source` times another tensor with that dimension.
  void add_product(const Tensor& source) {
    const Extent inner = source.shape.back();
    std::vector<const Tensor*> partners;
    for (const Tensor& tensor : tensors_) {
      if (tensor.shape.size() <= 2 &&
          std::count(tensor.shape.begin(), tensor.shape.end(), inner) > 0) {
        partners.push_back(&tensor);
      }
    }
    if (partners.empty() || source.shape.size() > 2) return add_row_reduction(source);
    const Tensor partner = *random_.pick(partners);
    Tensor tensor{new_name(), {source.shape.begin(), source.shape.end() - 1}};
    std::vector<std::string> left = axes_of(tensor.shape.size());
    std::vector<std::string> right;
    bool used = false;
    for (const Extent& extent : partner.shape) {
      if (extent == inner && !used) {
        right.push_back("r");
        used = true;
      } else {
        tensor.shape.push_back(extent);
        right.push_back(kAxes[tensor.shape.size() - 1]);
      }
    }
    left.push_back("r");
    if (tensor.shape.empty() || tensor.shape.size() > 3) return add_pointwise(source);
    emit(tensor, axes_of(tensor.shape.size()),
         fmt::format("sum[r < {}]({} * {})", inner.text(), access(source, left),
                     access(partner, right)));
    result_.has_reduction = true;
  }

  /// A read that is in bounds only where a condition holds: padding on the left.
  void add_guarded(const Tensor& source) {
    const int dimension = random_.below(static_cast<int>(source.shape.size()));
    Tensor tensor{new_name(), source.shape};
    const std::vector<std::string> axes = axes_of(tensor.shape.size());
    std::vector<std::string> indices = axes;
    indices[dimension] += " - 1";
    emit(tensor, axes,
         fmt::format("if_then_else({} >= 1, {}, {})", axes[dimension], access(source, indices),
                     literal()));
  }

  /// A scan over the first dimension of an input with two dimensions, made when there is none.
  void add_scan() {
    const Extent time = random_.pick(extents_);
    const Extent width = random_.pick(extents_);
    Tensor input{fmt::format("X{}", inputs_.size()), {time, width}};
    inputs_.push_back(input);
    tensors_.push_back(input);
    result_.has_scan = true;

    const std::string state = new_name();
    const std::string type = fmt::format("{}[{}, {}]", type_, time.text(), width.text());
    std::string block = fmt::format("  scan t {{\n    {}[0, i] = {}[0, i]\n", state, input.name);
    const int form = random_.below(4);
    if (form == 0) {
      block += fmt::format("    {0}[t, i] = {0}[t - 1, i] + {1}[t, i]\n", state, input.name);
    } else if (form == 1) {
      const std::string cell = new_name();
      computed_.push_back(fmt::format("{}: {}", cell, type));
      block += fmt::format("    {0}[t, i] = {1}[t - 1, i] * {2}\n", cell, state, literal());
      block += fmt::format("    {0}[t, i] = {1}[t, i] + {2}[t, i]\n", state, cell, input.name);
      ++result_.stages;
    } else if (form == 2) {
      const std::string second = new_name();
      computed_.push_back(fmt::format("{}: {}", second, type));
      block += fmt::format("    {}[0, i] = {}\n", second, literal());
      block += fmt::format("    {0}[t, i] = {0}[t - 1, i] - {1}[t, i]\n", state, input.name);
      block += fmt::format("    {0}[t, i] = max({0}[t - 1, i], {1}[t - 1, 0])\n", second, state);
      also_output_ = second;
      result_.stages += 1;
    } else {
      block += fmt::format("    {0}[t, i] = min({0}[t - 1, {2} - 1 - i], {1}[t, i])\n", state,
                           input.name,
                           width.variable.empty() ? std::to_string(width.offset) : width.variable);
    }
    body_ += block + "  }\n";
    computed_.push_back(fmt::format("{}: {}", state, type));
    const Tensor tensor{state, {time, width}};
    tensors_.push_back(tensor);
    stage_tensors_.push_back(tensor);
    result_.stages += 2;
  }

  void finish() {
    if (stage_tensors_.empty()) add_pointwise(tensors_.front());
    std::vector<std::string> outputs = {stage_tensors_.back().name};
    if (!also_output_.empty()) outputs.push_back(also_output_);
    if (stage_tensors_.size() > 1 && random_.chance(0.25)) {
      const std::string other =
          stage_tensors_[random_.below(static_cast<int>(stage_tensors_.size()) - 1)].name;
      if (std::count(outputs.begin(), outputs.end(), other) == 0) outputs.push_back(other);
    }
    std::vector<std::string> parameters;
    for (const Tensor& input : inputs_) {
      std::vector<std::string> shape;
      for (const Extent& extent : input.shape)
        shape.push_back(extent.text());
      parameters.push_back(fmt::format("{}: {}[{}]", input.name, type_, fmt::join(shape, ", ")));
    }
    std::vector<std::string> results;
    std::string intermediates;
    for (const std::string& declaration : computed_) {
      const std::string name = declaration.substr(0, declaration.find(':'));
      if (std::count(outputs.begin(), outputs.end(), name) > 0) {
        results.push_back(declaration);
      } else {
        intermediates += "  " + declaration + "\n";
      }
    }
    for (auto size = result_.sizes.begin(); size != result_.sizes.end();) {
      const bool used =
          std::any_of(parameters.begin(), parameters.end(), [&](const std::string& text) {
            return text.find("[" + size->first) != std::string::npos ||
                   text.find(", " + size->first) != std::string::npos;
          });
      size = used ? std::next(size) : result_.sizes.erase(size);
    }
    result_.is_symbolic = !result_.sizes.empty();
    result_.text =
        fmt::format("kernel random({}) -> ({}) {{\n{}{}}}\n", fmt::join(parameters, ", "),
                    fmt::join(results, ", "), intermediates, body_);
  }

  Random& random_;
  RandomKernel result_;
  std::string type_;
  std::vector<Extent> extents_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> tensors_;        // all that may be read
  std::vector<Tensor> stage_tensors_;  // computed ones
  std::vector<std::string> computed_;  // declarations
  std::string body_;
  std::string also_output_;
  int counter_ = 0;
};

}  // namespace

RandomKernel random_kernel(Random& random) { return Writer(random).write(); }

}  // namespace kiln::testing
