// The metrics of metrics.def, kept by prometheus-cpp. What others count already is not counted here
// again: it comes as samples when somebody asks.
//
//   count(Metric::Calls, {"Run", "OK"})  ->  kiln_calls_total{method="Run",status="OK"} 1
#include "server/metrics/metrics.h"

#include <map>
#include <shared_mutex>
#include <unordered_map>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

/// From what an idle device answers to what a compilation may take: half decades.
const prometheus::Histogram::BucketBoundaries& buckets() {
  static const prometheus::Histogram::BucketBoundaries bounds = {
      1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};
  return bounds;
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

const std::vector<MetricRow>& rows() {
  static const std::vector<MetricRow> table = {
#define METRIC(id, kind, name, labels, help) {MetricKind::kind, name, words_of(labels), help},
#include "server/metrics/metrics.def"
#undef METRIC
  };
  return table;
}

template <typename Values>
prometheus::Labels labels_of(const MetricRow& row, const Values& values) {
  KILN_CHECK(row.labels.size() == values.size());
  prometheus::Labels labels;
  auto name = row.labels.begin();
  for (const auto& value : values)
    labels.emplace(*name++, std::string(value));
  return labels;
}

prometheus::MetricFamily family_of(const MetricRow& row) {
  prometheus::MetricFamily family;
  family.name = row.name;
  family.help = row.help;
  family.type = row.kind == MetricKind::Counter ? prometheus::MetricType::Counter
                                                : prometheus::MetricType::Gauge;
  return family;
}

void add_sample(prometheus::MetricFamily& family, const MetricRow& row, const Sample& sample) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  for (const auto& [name, value] : labels_of(row, sample.labels))
    metric.label.push_back({name, value});
  if (row.kind == MetricKind::Counter) {
    metric.counter.value = sample.value;
  } else {
    metric.gauge.value = sample.value;
  }
}

}  // namespace

const MetricRow& row_of(Metric metric) { return rows().at(static_cast<size_t>(metric)); }

struct Metrics::Parts {
  /// One family with the metrics that it has by now: to find one by its labels the library makes
  /// another, and each call of a kernel counts in three.
  template <typename T>
  class Series {
   public:
    explicit Series(prometheus::Family<T>& family) : family_(family) {}

    template <typename... Args>
    T& of(const MetricRow& row, Metrics::Labels labels, const Args&... args) {
      std::string key;
      for (const std::string_view label : labels)
        key.append(label).push_back('\0');
      {
        const std::shared_lock lock(mutex_);
        if (const auto at = known_.find(key); at != known_.end()) return *at->second;
      }
      T& found = family_.Add(labels_of(row, labels), args...);
      const std::lock_guard lock(mutex_);
      known_.emplace(std::move(key), &found);
      return found;
    }

   private:
    prometheus::Family<T>& family_;
    std::shared_mutex mutex_;
    std::unordered_map<std::string, T*> known_;
  };

  prometheus::Registry registry;
  std::map<Metric, Series<prometheus::Counter>> counters;
  std::map<Metric, Series<prometheus::Histogram>> histograms;
};

Metrics::Metrics() : parts_(std::make_unique<Parts>()) {
  for (size_t i = 0; i < rows().size(); ++i) {
    const MetricRow& row = rows()[i];
    const auto metric = static_cast<Metric>(i);
    const std::string name(row.name);
    const std::string help(row.help);
    if (row.kind == MetricKind::Counter) {
      parts_->counters.try_emplace(
          metric, prometheus::BuildCounter().Name(name).Help(help).Register(parts_->registry));
    } else if (row.kind == MetricKind::Histogram) {
      parts_->histograms.try_emplace(
          metric, prometheus::BuildHistogram().Name(name).Help(help).Register(parts_->registry));
    }
  }
}

Metrics::~Metrics() = default;

void Metrics::count(Metric counter, Labels labels, double by) {
  parts_->counters.at(counter).of(row_of(counter), labels).Increment(by);
}

void Metrics::observe(Metric histogram, Labels labels, double seconds) {
  parts_->histograms.at(histogram).of(row_of(histogram), labels, buckets()).Observe(seconds);
}

std::string Metrics::text(std::span<const Sample> samples) const {
  std::vector<prometheus::MetricFamily> families = parts_->registry.Collect();
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  std::map<Metric, prometheus::MetricFamily> sampled;
  for (const Sample& sample : samples) {
    const MetricRow& row = row_of(sample.metric);
    const auto [at, is_new] = sampled.try_emplace(sample.metric);
    if (is_new) at->second = family_of(row);
    add_sample(at->second, row, sample);
  }
  for (auto& [metric, family] : sampled)
    families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kiln::server
