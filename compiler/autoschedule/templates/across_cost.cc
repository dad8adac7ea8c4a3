// What it takes to read tensors across. Each line of them has several rows of the result, and is to
// be there still when the next of these are computed:
//
//   Y[i, j] = X[j, i], float32, 1024 x 1024, on Zen 3    cycles
//   row by row              each line comes 16 times, from L3: they lie in few sets     10 million
//   blocks of 16 x 16       16 times, from L2: there are 8 ways for 16 lines            2 million
//   the same, with squares of 8 x 8 turned in registers     2 loads of a line           0.9 million
#include "compiler/autoschedule/templates/across_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr double kLineBytes = Transfers::kLineBytes;
constexpr int64_t kLargeExtent = 1024;
// An element that is loaded by itself and put into a vector of 64 bytes, in those of shorter ones:
// 2 cycles on a Zen 4.
constexpr double kByElement = 2.5;
// An element that no vector has is loaded and stored by itself; where squares are turned, twice and
// behind a guard, in the rows that they leave over but once.
constexpr double kRest = 0.6;
constexpr double kRestOfColumns = 4;
constexpr double kRestOfRows = 2;
// Loads that do not wait for each other find their pages at once: so much of what one waits.
constexpr double kPageShare = 0.3;
// Streams that come before they are read, by who follows them. Relu of a transpose of 1513 x 2218
// takes 1.9 ms on a Zen 4 with 16 columns at once and 2.4 and 2.6 with 32 and 64.
constexpr double kMostStreams = 16;
constexpr double kSooner = 0.5;
// Of what takes less than the longest of instructions and caches this much is not beside it.
constexpr double kHeldUp = 0.5;

double extent_of(const StageGraph& graph, AxisId axis) {
  return static_cast<double>(
      std::max<int64_t>(constant_extent(graph, axis).value_or(kLargeExtent), 1));
}

/// Lines that a piece of neighbours touches, of pieces that are so far apart.
double lines_of(double piece, double distance, double element) {
  if (std::fmod(distance, kLineBytes) == 0) return std::ceil(piece / kLineBytes);
  return 1 + (piece - element) / kLineBytes;
}

double pages_of(double lines, double distance) {
  return std::min(lines, lines * distance / Transfers::kPageBytes);
}

}  // namespace

AcrossCost::AcrossCost(const Chooser& chooser, StageId id, AxisId across,
                       const std::vector<AxisId>& line)
    : machine_(chooser.machine),
      rows_(extent_of(chooser.graph, across)),
      columns_(1),
      elements_(1) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const AxisId last = line.back();
  for (const AxisId axis : line)
    columns_ *= extent_of(graph, axis);
  bool is_inside = false;
  for (const AxisId axis : columns_of(stage)) {
    elements_ *= extent_of(graph, axis);
    const bool is_of_line = std::ranges::find(line, axis) != line.end();
    if (is_inside && !is_of_line) between_ *= extent_of(graph, axis);
    is_inside = is_inside || axis == across;
  }
  const auto size = [&](DType type) { return static_cast<double>(size_of(type)); };
  for (const DType type : stage.types)
    along_.push_back({size(type), columns_ * size(type), elements_ * size(type)});
  written_ = along_.size();
  const std::vector<ir::Expr> bodies = schedule::expanded_bodies(graph, id);
  const int64_t lanes = register_lanes(chooser, id);
  const ElementWork work = element_work(graph, bodies, machine_, lanes);
  const auto of_vector = static_cast<double>(lanes);
  busy_ = {work.busy.multiply_adds / of_vector, work.busy.all / of_vector,
           work.busy.chain / of_vector};
  for (const ir::TensorRead* read : work.reads) {
    const double bytes = size(read->type.element);
    const std::optional<int64_t> distance = distance_along(graph, *read, last);
    if (distance == 0) continue;
    if (distance == 1) {
      along_.push_back({bytes, columns_ * bytes, elements_ * bytes});
    } else {
      const auto apart = static_cast<double>(std::abs(distance.value_or(kLargeExtent)));
      across_.push_back({bytes, apart * bytes, elements_ * bytes});
    }
  }
  for (const auto* tensors : {&across_, &along_})
    for (const Tensor& tensor : *tensors)
      bytes_of_element_ += tensor.bytes;
}

/// Of elements that vectors and squares leave over.
double AcrossCost::rest(const ElementBlock& block) const {
  const auto left = [](double extent, double part) { return std::fmod(extent, part) / extent; };
  if (block.square == 0) return elements_ * left(columns_, block.lanes) * kRest;
  return elements_ *
         (left(columns_, block.columns) * kRestOfColumns + left(rows_, block.rows) * kRestOfRows);
}

double AcrossCost::instructions(const ElementBlock& block) const {
  const auto registers = [&](const Tensor& tensor) {
    return std::max(1 / block.lanes, tensor.bytes / static_cast<double>(machine_.vectors.bytes));
  };
  double loads = 0;
  double stores = 0;
  double moves = 0;
  for (size_t i = 0; i < along_.size(); ++i)
    (i < written_ ? stores : loads) += registers(along_[i]);
  for (const Tensor& tensor : across_) {
    if (block.square == 0) {
      moves += (machine_.has_masks() ? kByElement : 1) * machine_.transposed_cycles;
    } else {  // loaded, turned, stored where it is loaded from in the other order
      loads += 1 / block.square + registers(tensor);
      stores += 1 / block.square;
      moves += std::log2(block.square) / block.square / machine_.operations;
    }
  }
  const double side_by_side = static_cast<double>(machine_.chained_vectors);
  const double element = std::max({busy_.multiply_adds, busy_.all, busy_.chain / side_by_side,
                                   loads / machine_.loads, stores}) +
                         moves;
  double loops = 1 / std::min(block.columns, columns_);
  if (block.square > 0) loops += static_cast<double>(across_.size()) / block.square / block.square;
  return elements_ * (element + loops * machine_.loop_cycles) + rest(block);
}

/// Its lines are as many as a block has columns, each for the rows of the block.
void AcrossCost::add_across(const Tensor& tensor, const ElementBlock& block,
                            Transfers& transfers) const {
  const double columns = std::min(block.columns, columns_);
  const double rows = std::min(block.rows, rows_);
  const auto others = static_cast<double>(along_.size());
  const auto passed = [&](double lines) {
    // A line of each of the others may lie where these do.
    return passed_between(lines * (kLineBytes + bytes_of_element_), lines + others, tensor.distance,
                          machine_);
  };
  // In a block: a line comes again for the next row, or the next square.
  const double piece = rows * tensor.bytes;
  const double lines = elements_ / rows * lines_of(piece, tensor.distance, tensor.bytes);
  const double reads = elements_ / std::max(block.square, 1.0);
  const double between = block.square > 0 ? block.square : columns;
  if (reads > lines) transfers.again((reads - lines) * kLineBytes, passed(between));
  // And for the next block, where it has more rows than one.
  const double once = tensor.size / kLineBytes;
  if (lines > once)
    transfers.again((lines - once) * kLineBytes,
                    passed(block.is_down ? columns : columns_ * block.between));
}

/// Its lines are the rows, of each of which a block has a piece.
void AcrossCost::add_along(const Tensor& tensor, const ElementBlock& block,
                           Transfers& transfers) const {
  const double columns = std::min(block.columns, columns_);
  const double piece = columns * tensor.bytes;
  const double lines = elements_ / columns * lines_of(piece, tensor.distance, tensor.bytes);
  const double once = tensor.size / kLineBytes;
  if (lines <= once) return;
  const double rows = block.is_down ? rows_ : std::min(block.rows, rows_);
  const double bytes = rows * columns * bytes_of_element_;
  transfers.again((lines - once) * kLineBytes,
                  passed_between(bytes, rows, tensor.distance, machine_));
}

/// What comes from memory in pieces that do not go on with those before: a core waits for what it
/// reads, and half as long where it goes on soon, or is written.
void AcrossCost::add_pieces(const ElementBlock& block, Transfers& transfers) const {
  const auto add = [&](const Tensor& tensor, double length, double part) {
    const double pieces = std::min(elements_ / length, tensor.size / kLineBytes);
    transfers.pieces_from_memory(part * pieces, tensor.distance, length * tensor.bytes);
  };
  const double columns = std::min(block.columns, columns_);
  // Down the rows each column is a stream.
  if (!block.is_down || columns > kMostStreams)
    for (const Tensor& tensor : across_)
      add(tensor, std::min(block.rows, rows_), 1);
  for (size_t i = block.is_down ? written_ : 0; i < along_.size(); ++i)
    add(along_[i], columns, block.is_down ? 1 : kSooner);
}

/// Blocks keep the pages of one side while they go along the other, as far as both fit.
double AcrossCost::new_pages(const ElementBlock& block) const {
  const auto pages = [](const std::vector<Tensor>& tensors, double lines) {
    double sum = 0;
    for (const Tensor& tensor : tensors)
      sum += pages_of(lines, tensor.distance);
    return sum;
  };
  const double columns = std::min(block.columns, columns_);
  const double rows = std::min(block.rows, rows_);
  const auto most = static_cast<double>(machine_.tlb_pages);
  const double across = pages(across_, columns);
  const double along = pages(along_, rows);
  double found = across + along > most ? (block.is_down ? across : along) : 0;
  if (block.is_down) {
    if (pages(along_, rows_) > most) found += along;
  } else if (pages(across_, columns_) > most) {
    // Of more columns than there are pages, each row finds them anew.
    found += across * (block.square == 0 && across > most ? rows : 1);
  }
  return elements_ / rows / columns * found;
}

double AcrossCost::row_by_row(double lanes) const {
  return cycles({.columns = columns_, .lanes = lanes, .between = between_});
}

/// What comes for the first time comes in order, beside what is computed; what comes again does
/// not.
double AcrossCost::cycles(const ElementBlock& block) const {
  Transfers first(machine_, elements_ * bytes_of_element_);
  Transfers again(machine_, elements_ * bytes_of_element_);
  for (const Tensor& tensor : across_) {
    first.first(tensor.size);
    add_across(tensor, block, again);
  }
  for (const Tensor& tensor : along_) {
    first.first(tensor.size);
    add_along(tensor, block, again);
  }
  add_pieces(block, again);
  const std::array beside = {instructions(block), first.l2(), first.l3(), first.memory()};
  const double longest = std::ranges::max(beside);
  const double all = std::accumulate(beside.begin(), beside.end(), 0.0);
  return longest + (all - longest) * kHeldUp + first.waits() + again.l2() + again.l3() +
         again.memory() + again.waits() + new_pages(block) * machine_.page_cycles * kPageShare;
}

}  // namespace kiln::autoschedule
