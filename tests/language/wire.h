#pragma once

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/language/wire/decode.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::language {

/// A kernel on the wire, for a test to spoil.
struct Wire {
  v1::Definition definition;
  v1::SourceMap names;

  explicit Wire(const TextKernel& kernel)
      : definition(encode(kernel.kernel.definition)), names(encode(kernel.kernel.names)) {}
  explicit Wire(std::string_view text) : Wire(testing::kernel_of(text)) {}

  Kernel decode(const Limits& limits = {}) const {
    return language::decode(definition, names, limits);
  }

  uint32_t stage(std::string_view name) const { return find(names.stages(), name); }
  uint32_t axis(std::string_view name) const { return find(names.axes(), name); }

  uint32_t add(const v1::Expression& expression) {
    *definition.add_expressions() = expression;
    return static_cast<uint32_t>(definition.expressions_size()) - 1;
  }
  uint32_t integer(int64_t value, v1::DataType type = v1::DATA_TYPE_INT64) {
    v1::Expression expression;
    expression.mutable_integer()->set_type(type);
    expression.mutable_integer()->set_value(value);
    return add(expression);
  }
  uint32_t floating(double value, v1::DataType type) {
    v1::Expression expression;
    expression.mutable_floating()->set_type(type);
    expression.mutable_floating()->set_value(value);
    return add(expression);
  }
  uint32_t axis_use(std::string_view name) {
    v1::Expression expression;
    expression.set_axis(axis(name));
    return add(expression);
  }
  uint32_t apply(const char* op, std::vector<uint32_t> operands) {
    v1::Expression expression;
    expression.mutable_operation()->set_operator_(op);
    expression.mutable_operation()->mutable_operands()->Add(operands.begin(), operands.end());
    return add(expression);
  }
  uint32_t read(std::string_view tensor, std::vector<uint32_t> indices) {
    v1::Expression expression;
    expression.mutable_read()->mutable_tensor()->set_stage(stage(tensor));
    expression.mutable_read()->mutable_indices()->Add(indices.begin(), indices.end());
    return add(expression);
  }
  uint32_t reduce(const char* combiner, uint32_t source, std::vector<uint32_t> axes) {
    v1::Expression expression;
    expression.mutable_reduction()->set_combiner(combiner);
    expression.mutable_reduction()->add_sources(source);
    expression.mutable_reduction()->mutable_axes()->Add(axes.begin(), axes.end());
    return add(expression);
  }
  v1::Compute& compute(std::string_view name) {
    return *definition.mutable_stages(static_cast<int>(stage(name)))->mutable_compute();
  }
  v1::Scan& scan(std::string_view name) {
    return *definition.mutable_stages(static_cast<int>(stage(name)))->mutable_scan();
  }
  void set_body(std::string_view name, uint32_t body) { compute(name).set_bodies(0, body); }

 private:
  static uint32_t find(const google::protobuf::RepeatedPtrField<std::string>& names,
                       std::string_view name) {
    for (int i = 0; i < names.size(); ++i) {
      if (names[i] == name) return static_cast<uint32_t>(i);
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }
};

/// A way to spoil a kernel, and what is said of it.
struct Case {
  const char* kernel;
  void (*spoil)(Wire&);
  const char* message;
  ErrorKind kind = ErrorKind::InvalidArgument;
};

inline void expect_refused(const Case& test) {
  SCOPED_TRACE(test.message);
  Wire wire(test.kernel);
  wire.decode();  // right before it is spoilt
  test.spoil(wire);
  const Error error = testing::expect_error([&] { wire.decode(); }, test.kind, test.message);
  EXPECT_FALSE(error.reason().empty());
}

}  // namespace kiln::language
