// Collects the vectors that a loop loads from neighbouring elements and those that it stores.
//
//   for i in 0..1024 { C[ramp(i*16, 1, 16)] = exp(A[ramp(i*16, 1, 16)]) }
//     ->  rows: A from i*16 on, 16; stores: C from i*16 on, 16; work: 256
#include "compiler/passes/read_streams.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"

namespace kiln::passes {

using namespace ir;

namespace {

std::optional<Row> row_of(const BufferRef& buffer, const Expr& index) {
  const auto* ramp = as<Ramp>(index);
  // Where data says where a row begins, the next one lies somewhere else.
  if (ramp == nullptr || as_const_int(ramp->stride) != 1 || reads_memory(ramp->base))
    return std::nullopt;
  return Row{buffer, ramp->base, index->type.lanes};
}

}  // namespace

ReadStreams::ReadStreams(const For& loop) { (*this)(loop.body); }

std::vector<Row> ReadStreams::stored_and_loaded() const {
  std::vector<Row> both;
  for (const Row& store : stores) {
    const auto is_same = [&](const Row& row) { return row.buffer == store.buffer; };
    if (std::ranges::any_of(rows, is_same)) both.push_back(store);
  }
  return both;
}

void ReadStreams::visit(const For& loop) {
  if (depth_ == 0) loops.push_back(&loop);
  ++depth_;
  Visitor::visit(loop);
  --depth_;
}

void ReadStreams::visit(const Load& load) {
  if (const auto row = row_of(load.buffer, load.indices[0])) rows.push_back(*row);
  Visitor::visit(load);
}

void ReadStreams::visit(const Store& store) {
  if (const auto row = row_of(store.buffer, store.indices[0])) stores.push_back(*row);
  Visitor::visit(store);
}

void ReadStreams::visit(const Binary& node) {
  work += node.type.lanes;
  Visitor::visit(node);
}

void ReadStreams::visit(const Call& node) {
  const bool chooses = node.op == Operator::Select || node.op == Operator::IfThenElse;
  work += node.type.lanes * (chooses ? 1 : kFunction);
  Visitor::visit(node);
}

}  // namespace kiln::passes
