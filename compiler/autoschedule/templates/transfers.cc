// How long caches take to bring what a core reads again, by what has passed since it read it last.
//
//   a panel of 48 columns and 1024 steps, 8 rows at a time, on Zen 5  ->  192 KiB from L2 for each
//   tile of rows, 6144 cycles beside the 12288 of its multiply-adds
#include "compiler/autoschedule/templates/transfers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::autoschedule {
namespace {

// What of a cache is there again when other bytes have passed.
constexpr double kKept = 0.75;
constexpr double kKeptFar = 0.6;
// A line from L3 and one from memory, in what one from L2 holds up: rows of 1024 that come again
// for each panel take 8 % longer on Sapphire Rapids.
constexpr double kFarLine = 4.8;
constexpr double kMemoryLine = 15;
// A piece that comes from memory, in those from L3.
constexpr double kPieceFromMemory = 3;
// Cycles of one that was fetched before: 8 x 4096 x 1024 on a Golden Cove, in 22 tiles of columns
// 726 us, and 630 with 128 steps of all of them at a time.
constexpr double kPieceAhead = 4.5;

}  // namespace

void Transfers::again(double bytes, const Others& others) {
  if (!stays_in_l1(others, machine_)) l2_ += bytes / machine_.from_l2;
  const double held = bytes / kLineBytes * machine_.held_cycles;
  if (is_beyond_l2(others.l2)) {
    l3_ += bytes / machine_.from_l3;
    waits_ += held * kFarLine;
  }
  if (is_beyond_l3(others.l2)) {
    memory_ += bytes / machine_.from_memory;
    waits_ += held * kMemoryLine;
  }
}

void Transfers::first_ahead(double bytes) {
  l2_ += bytes / machine_.from_l2;
  if (is_beyond_l2(touched_)) l3_ += bytes / machine_.ahead_from_l3;
  if (is_beyond_l3(touched_)) memory_ += bytes / machine_.from_memory;
}

/// A core that waits for lines from L2 waits for each of these; others for those of a line, while
/// of wider ones the rest comes.
void Transfers::pieces_again(double count, double others, double distance, double piece) {
  if (!is_beyond_l2(others) || distance - piece <= 2 * kLineBytes) return;
  const double cycles =
      count * machine_.piece_cycles * (is_beyond_l3(others) ? kPieceFromMemory : 1);
  const bool waits = piece <= kLineBytes || machine_.held_cycles > 0;
  (waits ? waits_ : l3_) += cycles;
}

void Transfers::pieces_from_memory(double count, double distance, double piece) {
  if (is_beyond_l3(touched_)) pieces_again(count, touched_, distance, piece);
}

void Transfers::pieces_in_turn(double count, double distance, double piece) {
  if (is_beyond_l3(touched_) && distance - piece > 2 * kLineBytes) {
    waits_ += count * std::max(machine_.far_piece_cycles, machine_.piece_cycles * kPieceFromMemory);
  } else {
    pieces_again(count, touched_, distance, piece);
  }
}

void Transfers::pieces_ahead(double count, double distance, double piece) {
  if (is_beyond_l2(touched_) && distance - piece > 2 * kLineBytes) waits_ += count * kPieceAhead;
}

void Transfers::pages(double count, double steps, double distance) {
  const double pages = steps * distance / kPageBytes;
  if (pages <= static_cast<double>(machine_.tlb_pages)) return;
  waits_ += count * std::min(pages, steps) * machine_.page_cycles;
}

bool Transfers::is_beyond_l2(double others) const {
  return others > kKeptFar * static_cast<double>(machine_.l2_bytes);
}

bool Transfers::is_beyond_l3(double others) const {
  return others > kKeptFar * static_cast<double>(machine_.l3_bytes);
}

bool stays_in_l1(const Transfers::Others& others, const Machine& machine) {
  return others.l1 <= kKept * static_cast<double>(machine.l1_bytes);
}

double lines_kept(int64_t cache, int64_t ways, double distance) {
  constexpr auto kLine = static_cast<int64_t>(Transfers::kLineBytes);
  const int64_t sets = cache / kLine / ways;
  const int64_t used = sets / std::gcd(static_cast<int64_t>(distance) / kLine, sets);
  return static_cast<double>(used * ways);
}

Transfers::Others passed_between(double bytes, double lines, double distance,
                                 const Machine& machine) {
  constexpr double kLine = Transfers::kLineBytes;
  if (distance < kLine || std::fmod(distance, kLine) != 0) return {bytes, bytes};
  const auto with = [&](int64_t cache, int64_t ways) {
    const double kept = lines_kept(cache, ways, distance);
    return lines > kept ? std::max(bytes, static_cast<double>(cache)) : bytes;
  };
  return {with(machine.l1_bytes, machine.l1_ways), with(machine.l2_bytes, machine.l2_ways)};
}

}  // namespace kiln::autoschedule
