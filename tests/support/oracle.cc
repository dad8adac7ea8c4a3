// Judges results of kernels of which nothing is known: equal bits need nothing more; else the
// definition is evaluated with random roundings, and results may differ by what those do (Vignes'
// stochastic arithmetic).
#include "tests/support/oracle.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using language::Scalar;

/// Binary digits of a number, the leading one included.
int digits_of(DType type) {
  switch (type) {
    case DType::Float64: return 53;
    case DType::Float32: return 24;
    case DType::Float16: return 11;
    case DType::BFloat16: return 8;
    case DType::Float8E4M3FN: return 4;
    default: return 3;
  }
}

bool same(const Scalar& a, const Scalar& b) {
  if (!is_float(a.type)) return a.integer == b.integer;
  return a.floating == b.floating || (std::isnan(a.floating) && std::isnan(b.floating));
}

double as_number(const Scalar& value) {
  return is_float(value.type) ? value.floating : static_cast<double>(value.integer);
}

std::string text_of(const Scalar& value) {
  return is_float(value.type) ? fmt::format("{}", value.floating)
                              : fmt::format("{}", value.integer);
}

constexpr int kNoisyRuns = 6;

}  // namespace

/// Moves what was rounded by a few units in the last place. Whole numbers that a type holds exactly
/// mostly come from exact operations, and stay. Where a result is not finite, the order of
/// operations may decide that.
struct Oracle::Noise {
  explicit Noise(uint64_t seed) : random(seed) {}

  Scalar operator()(const Scalar& value) {
    if (!is_float(value.type)) return value;
    if (!std::isfinite(value.floating)) {
      overflows = true;
      return value;
    }
    const int digits = digits_of(value.type);
    const double magnitude = std::fabs(value.floating);
    if (value.floating == std::trunc(value.floating) && magnitude < std::ldexp(1.0, digits))
      return value;
    // The smallest normal numbers and below are moved by units that do not shrink any more.
    const double smallest = value.type == DType::Float64 ? 1e-307 : 1e-37;
    const double unit = std::ldexp(std::max(magnitude, smallest), 1 - digits);
    return Scalar::of_float(value.type, value.floating + unit * random.between(-3, 3));
  }

  Random random;
  bool overflows = false;
};

Oracle::Oracle(const language::Kernel& kernel, std::vector<int64_t> sizes,
               std::vector<HostTensor> inputs)
    : kernel_(kernel), sizes_(std::move(sizes)), inputs_(std::move(inputs)) {
  if (!has_memory()) {
    is_too_large_ = true;
    return;
  }
  look_at_stages();
  if (is_too_large_) return;
  outputs_ = run(kernel_.definition);
}

bool Oracle::has_memory() const {
  const language::Definition& definition = kernel_.definition;
  for (language::StageId stage = 0; stage < definition.stages.size(); ++stage) {
    const auto outputs = language::output_count(definition.stages[stage]);
    for (uint32_t output = 0; output < outputs; ++output) {
      double elements = 1;
      for (const language::ExprId extent : definition.shape_of({stage, output})) {
        const int64_t value = language::evaluate_size(definition, extent, sizes_);
        elements *= static_cast<double>(std::max<int64_t>(value, 0));
      }
      if (elements > static_cast<double>(kMaxSteps)) return false;
    }
  }
  return true;
}

void Oracle::look_at_stages() {
  language::Definition whole = kernel_.definition;
  const std::vector<language::TensorId> parameters = whole.parameters;
  for (language::StageId stage = 0; stage < whole.stages.size(); ++stage) {
    if (std::holds_alternative<language::Placeholder>(whole.stages[stage])) continue;
    may_stop_ = may_stop_ || std::holds_alternative<language::Scan>(whole.stages[stage]);
    whole.parameters.clear();
    for (const language::TensorId parameter : parameters) {
      if (!kernel_.definition.is_output(parameter)) whole.parameters.push_back(parameter);
    }
    for (uint32_t output = 0; output < language::output_count(whole.stages[stage]); ++output)
      whole.parameters.push_back({stage, output});
    try {
      may_stop_ = !run(whole) || may_stop_;
    } catch (const Error& error) {
      if (error.reason() != "EVALUATION_LIMIT") throw;
      is_too_large_ = true;
      return;
    }
  }
}

std::optional<std::vector<HostTensor>> Oracle::run(const language::Definition& definition,
                                                   const language::Rounding& rounding) const {
  try {
    return language::evaluate(definition, kernel_.names, sizes_, inputs_, kMaxSteps, rounding);
  } catch (const Error& error) {
    if (error.reason() != "INDEX_OUT_OF_RANGE") throw;
    return std::nullopt;
  }
}

bool Oracle::rounding_decides_stop() const {
  for (uint64_t seed = 0; seed < kNoisyRuns; ++seed) {
    Noise noise(seed);
    const auto outputs = run(kernel_.definition, std::ref(noise));
    if (noise.overflows || outputs.has_value() != outputs_.has_value()) return true;
  }
  return false;
}

std::string Oracle::difference(const std::vector<HostTensor>& actual) const {
  KILN_CHECK(outputs_ && actual.size() == outputs_->size());
  std::vector<std::vector<HostTensor>> noisy;
  for (size_t t = 0; t < actual.size(); ++t) {
    const HostTensor& expected = (*outputs_)[t];
    if (actual[t].type != expected.type || actual[t].shape != expected.shape)
      return fmt::format("the type or shape of output {} differs", t);
    if (actual[t].bytes == expected.bytes) continue;
    for (int64_t i = 0; i < element_count(expected.shape); ++i) {
      const Scalar a = language::read_element(actual[t], i);
      const Scalar b = language::read_element(expected, i);
      if (same(a, b)) continue;
      for (uint64_t seed = noisy.size(); seed < kNoisyRuns; ++seed) {
        Noise noise(seed);
        auto outputs = run(kernel_.definition, std::ref(noise));
        if (!outputs || noise.overflows) return "";
        noisy.push_back(std::move(*outputs));
      }
      // Rounding of the result itself, and what comes from further inside.
      const double wanted = as_number(b);
      double spread = 0;
      for (const auto& outputs : noisy) {
        const double other = as_number(language::read_element(outputs[t], i));
        spread = std::isnan(other - wanted) ? std::numeric_limits<double>::infinity()
                                            : std::max(spread, std::fabs(other - wanted));
      }
      const int digits = is_float(b.type) ? digits_of(b.type) : 60;
      const double last_place = std::ldexp(std::max(std::fabs(wanted), 1e-37), 1 - digits);
      if (std::fabs(as_number(a) - wanted) <= 8 * spread + 8 * last_place) continue;
      return fmt::format("output {}, element {}: {} instead of {}", t, i, text_of(a), text_of(b));
    }
  }
  return "";
}

}  // namespace kiln::testing
