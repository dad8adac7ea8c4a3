#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::server {

/// What metrics.def lists.
enum class Metric {
#define METRIC(id, kind, name, labels, help) id,
#include "server/metrics/metrics.def"
#undef METRIC
};

enum class MetricKind { Counter, Gauge, Histogram };

/// A row of metrics.def.
struct MetricRow {
  MetricKind kind;
  std::string_view name;
  std::vector<std::string> labels;
  std::string_view help;
};

const MetricRow& row_of(Metric metric);

/// A value that is looked up when somebody asks, instead of being counted on its way.
struct Sample {
  Metric metric;
  std::vector<std::string> labels;  // values, in the order of the row
  double value = 0;
};

/// Counters with labels, and histograms, in the words of metrics.def. Any thread may use it.
class Metrics {
 public:
  using Labels = std::initializer_list<std::string_view>;  // values, in the order of the row

  Metrics();
  ~Metrics();

  void count(Metric counter, Labels labels, double by = 1);
  void observe(Metric histogram, Labels labels, double seconds);

  /// All of it and `samples`, in Prometheus' text format 0.0.4.
  std::string text(std::span<const Sample> samples) const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::server
