/// Gradients of random definitions against central differences.

#include <gtest/gtest.h>

#include "tests/autodiff/gradient_check.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

/// A definition drawn at random, of smooth functions: one to three stages over tensors of one or
/// two dimensions, each reading what stands before it at indices of a few kinds.
class RandomDefinition {
 public:
  explicit RandomDefinition(Random& random) : random_(random) {}

  std::string text() {
    tensors_ = {{"X", {4, 6}}, {"V", {5}}};
    const int stages = random_.between(1, 3);
    for (int i = 0; i < stages; ++i)
      add_stage(i);
    std::string declared;
    std::string output;
    for (size_t i = 2; i < tensors_.size(); ++i) {
      const bool is_last = i + 1 == tensors_.size();
      (is_last ? output : declared) += (is_last ? "" : "  ") + tensors_[i].name + ": float64" +
                                       brackets(tensors_[i].shape) + (is_last ? "" : "\n");
    }
    return "kernel k(X: float64[4, 6], V: float64[5]) -> (" + output + ") {\n" + declared + body_ +
           "}\n";
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<int> shape;
  };
  struct Axis {
    std::string name;
    int extent;
  };

  static std::string brackets(const std::vector<int>& shape) {
    std::string text;
    for (const int extent : shape)
      text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return "[" + text + "]";
  }

  void add_stage(int number) {
    Tensor made{"T" + std::to_string(number), {}};
    std::vector<Axis> axes;
    const int rank = random_.between(0, 2);
    for (int d = 0; d < rank; ++d) {
      made.shape.push_back(random_.between(2, 5));
      axes.push_back({d == 0 ? "i" : "j", made.shape.back()});
    }
    std::string names;
    for (const Axis& axis : axes)
      names += (names.empty() ? "" : ", ") + axis.name;
    std::string value;
    if (random_.chance(0.5)) {
      const std::vector<Axis> outer = axes;
      axes.push_back({"r", random_.between(2, 4)});
      const std::string reducer = random_.chance(0.7)   ? "sum"
                                  : random_.chance(0.5) ? "prod"
                                                        : "max";
      value =
          reducer + "[r < " + std::to_string(axes.back().extent) + "](" + expression(axes, 2) + ")";
      if (random_.chance(0.3)) value = "tanh(" + value + ") * " + expression(outer, 1);
    } else {
      value = expression(axes, 3);
    }
    body_ += "  " + made.name + "[" + names + "] = " + value + "\n";
    tensors_.push_back(made);
  }

  std::string expression(const std::vector<Axis>& axes, int depth) {
    if (depth == 0 || random_.chance(0.2)) return read(axes);
    const std::string a = expression(axes, depth - 1);
    switch (random_.between(0, 7)) {
      case 0: return "(" + a + " + " + expression(axes, depth - 1) + ")";
      case 1: return "(" + a + " - " + expression(axes, depth - 1) + ")";
      case 2: return "(" + a + " * " + expression(axes, depth - 1) + ")";
      case 3: return "tanh(" + a + ")";
      case 4: return "sin(" + a + ")";
      case 5: return "(" + a + " / (2 + sigmoid(" + expression(axes, depth - 1) + ")))";
      case 6:
        return axes.empty() ? a : "select(" + axes[0].name + " < 2, " + a + ", " + read(axes) + ")";
      default: return "exp(0.5 * sin(" + a + "))";
    }
  }

  std::string read(const std::vector<Axis>& axes) {
    const Tensor& tensor =
        tensors_[static_cast<size_t>(random_.between(0, static_cast<int>(tensors_.size()) - 1))];
    std::string indices;
    for (const int extent : tensor.shape)
      indices += (indices.empty() ? "" : ", ") + index(axes, extent);
    return tensor.name + "[" + indices + "]";
  }

  /// Inside of the tensor whatever the axes are.
  std::string index(const std::vector<Axis>& axes, int extent) {
    const std::string end = std::to_string(extent);
    if (axes.empty() || random_.chance(0.1)) return std::to_string(random_.between(0, extent - 1));
    const auto drawn = [&]() -> const Axis& {
      return axes[static_cast<size_t>(random_.between(0, static_cast<int>(axes.size()) - 1))];
    };
    const Axis& a = drawn();
    const Axis& b = drawn();
    const int room = extent - a.extent;
    if (room >= 0 && random_.chance(0.5)) {
      if (random_.chance(0.2)) return std::to_string(a.extent - 1) + " - " + a.name;
      return a.name + " + " + std::to_string(random_.between(0, room));
    }
    if (a.extent + b.extent - 1 <= extent && a.name != b.name) return a.name + " + " + b.name;
    if (2 * a.extent - 1 <= extent) return "2 * " + a.name;
    if (a.extent * b.extent <= extent && a.name != b.name)
      return a.name + " * " + std::to_string(b.extent) + " + " + b.name;
    if (random_.chance(0.3)) return "(" + a.name + " // 2) % " + end;
    return "(" + a.name + " + " + std::to_string(random_.between(0, 3)) + ") % " + end;
  }

  Random& random_;
  std::vector<Tensor> tensors_;
  std::string body_;
};

TEST(GradientFuzz, AreCentralDifferences) {
  const uint64_t end = fuzz_seed() + static_cast<uint64_t>(fuzz_rounds(150));
  for (uint64_t seed = fuzz_seed(); seed < end && !HasFailure(); ++seed) {
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed));
    Random random(seed);
    expect_gradients({.text = RandomDefinition(random).text(), .sizes = {}, .values = {}});
  }
}

TEST(GradientFuzz, OfGradientsAreCentralDifferences) {
  const uint64_t end = fuzz_seed() + static_cast<uint64_t>(fuzz_rounds(20));
  for (uint64_t seed = fuzz_seed(); seed < end && !HasFailure(); ++seed) {
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed));
    Random random(seed);
    expect_second_gradients({.text = RandomDefinition(random).text(), .sizes = {}, .values = {}});
  }
}

}  // namespace
}  // namespace kiln::testing
