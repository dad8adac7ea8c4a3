// Pointers to parameters, and the views of them that instructions use, each written once.
#include "compiler/tile/bytecode_views.h"

#include <optional>

#include "compiler/tile/bytecode_sizes.h"
#include "compiler/tile/tensor_floats.h"

namespace kiln::tile {
namespace {

constexpr int64_t kAlignment = 16;    // bytes, of a parameter
constexpr int kTensorFloatBytes = 3;  // of a constant: it has 19 bits, in memory 32

}  // namespace

BytecodeViews::BytecodeViews(CodeWriter& code, const Program& program)
    : code_(code), program_(program), tensor_floats_(tensor_floats(program)) {}

void BytecodeViews::write(std::span<const Value> pointers, std::span<const Value> sizes) {
  sizes_ = sizes;
  for (size_t i = 0; i < pointers.size(); ++i) {
    const DType type = program_.parameters[i].type;
    sources_.push_back({code_.types.element(type), size_of(type), pointers[i]});
  }
  for (Source& source : sources_)
    source.pointer = aligned(source);
  add_views(program_.body);
}

TypeNumber BytecodeViews::element_of(ValueId value) const {
  return tensor_floats_[value] ? code_.types.tensor_float()
                               : code_.types.element(program_.values[value].element);
}

TypeNumber BytecodeViews::pointer_type(TypeNumber element) const {
  return code_.types.tile(code_.types.pointer(element), {});
}

Value BytecodeViews::aligned(const Source& source) {
  return code_.multiple(pointer_type(source.element), kAlignment, source.pointer);
}

Source BytecodeViews::source_of(uint32_t parameter, ValueId value) {
  if (!tensor_floats_[value]) return sources_[parameter];
  const auto known = tensor_float_.find(parameter);
  if (known != tensor_float_.end()) return known->second;
  const TypeNumber element = code_.types.tensor_float();
  const Value pointer =
      code_.plain(kPtrToPtr, pointer_type(element), {}, {sources_[parameter].pointer});
  Source source{element, kTensorFloatBytes, pointer};
  source.pointer = aligned(source);
  return tensor_float_[parameter] = source;
}

void BytecodeViews::add_views(const std::vector<Instruction>& body) {
  for (const Instruction& each : body) {
    if (const auto* loop = std::get_if<For>(&each.what)) add_views(loop->body);
    const auto* load = std::get_if<Load>(&each.what);
    const auto* store = std::get_if<Store>(&each.what);
    if (load == nullptr && store == nullptr) continue;
    const ViewId number = load != nullptr ? load->view : store->view;
    const ValueId value = load != nullptr ? each.results[0] : each.operands[0];
    const View& view = program_.views[number];
    const Source source = source_of(view.parameter, value);
    const std::pair key(number, source.element);
    if (!views_.contains(key)) views_[key] = view_of(view, source);
  }
}

/// Extents that the call brings are operands, and so are the strides they are part of.
Value BytecodeViews::view_of(const View& view, const Source& source) {
  const Parameter& parameter = program_.parameters[view.parameter];
  const size_t rank = parameter.shape.size();
  std::vector<int64_t> shape;
  std::vector<Value> open_extents;
  for (const Extent& extent : parameter.shape) {
    shape.push_back(extent.size < 0 ? extent.constant : kOpen);
    if (extent.size >= 0) open_extents.push_back(sizes_[static_cast<size_t>(extent.size)]);
  }
  std::vector<int64_t> strides(rank, 1);
  std::vector<Value> open_strides;
  std::optional<Value> open;
  for (size_t d = rank; d-- > 1;) {
    const SizeExpr length = length_in_memory(parameter, d);
    const bool is_known = parameter.shape[d].size < 0;
    if (!is_known || open) {
      const Value factor = write_size(code_, length, sizes_);
      const Value inner = open ? *open : code_.integer(DType::Int64, strides[d]);
      open = code_.arithmetic(kMulI, DType::Int64, {kNoWrap}, inner, factor);
      // So that copies without threads take it.
      if (parameter.row_multiple > 0)
        open = code_.multiple(code_.scalar(DType::Int64), parameter.row_multiple, *open);
      open_strides.insert(open_strides.begin(), *open);
    }
    strides[d - 1] = open ? kOpen : strides[d] * length.evaluate({});
  }
  const uint64_t tensor = code_.types.tensor(source.element, shape, strides);
  const Value whole = code_.tensor_view(tensor, source.pointer, open_extents, open_strides);
  const std::vector<int64_t> order(view.order.begin(), view.order.end());
  return code_.plain(kMakePartitionView, code_.types.partition(tensor, view.tile, order), {},
                     {whole});
}

}  // namespace kiln::tile
