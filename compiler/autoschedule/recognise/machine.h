#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/vector_unit.h"

namespace kiln::autoschedule {

/// Cycles of dot products beside their multiply-adds and loads. Measured on a Zen 4 with 784 steps
/// and tiles from 2 x 5 to 5 x 5.
struct DotCycles {
  double loop = 1.5;        // of the end of an iteration
  double sum = 8;           // of a sum whose lanes are added
  double far_vector = 0.4;  // of a vector of columns that comes from L2
  double transposed = 1.5;  // of an element of columns that are transposed before
  // Of a vector of a row that comes from memory, over how many rows are read side by side, each of
  // which prefetchers follow: 349 us with 4 rows of a tile, 299 with 8, where the caches have all
  // in 155 and 164.
  double streamed = 30;
};

/// Cycles of tiles of a matrix unit beside their products. Measured on an Emerald Rapids.
struct UnitCycles {
  double tile = 16;           // of its sums, which are set to zero
  double stored_row = 0.9;    // of a row of them that is stored
  double vector = 3;          // of a group of steps of what has no tile, in vectors
  double spilled_vector = 9;  // the same where its sums have no registers
  double setting = 1200;      // of setting tiles for other shapes, and back
};

/// How rows come fastest that are reduced and lie in memory.
struct MemoryRows {
  int64_t along = 4;  // side by side, each of which becomes one number
  int64_t down = 4;   // side by side, whose columns are added up
  // Of each of these before the next. With as many that are loaded, and the comparisons of
  // extremes, all registers that there are without AVX-512: on a Zen 3 maxima of 4096 x 4096
  // take 2.9 ms with 4 and 3.9 with 8, of 64 of 96 x 576 280 us and 660.
  int64_t down_vectors = 4;
};

/// What schedules are chosen for: a core of a CPU, by its name alone, so that equal names have
/// equal plans, and these equal bits.
struct Machine {
  std::string_view name = {};  // of the microarchitecture
  ir::VectorUnit vectors = {};
  // Of full vectors of float32: how many multiply-adds begin each cycle, after how many cycles one
  // is ready for the next, and how many are loaded each cycle.
  double multiply_adds = 2;
  double operations = 2;  // vector instructions of any kind that begin each cycle
  double latency = 4;
  double loads = 2;
  // Vectors side by side that keep a core busy where each operation waits for the one before, as in
  // functions like exp. A core with more ports than that waits.
  int64_t chained_vectors = 2;
  // Bytes of the caches of one core.
  int64_t l1_bytes = 48 * 1024;
  int64_t l2_bytes = 2048 * 1024;
  int64_t l1_ways = 12;
  int64_t l2_ways = 16;
  int64_t l3_bytes = int64_t{32} << 20;
  int64_t cores = 4;  // that plans share work among, so many at most
  // Bytes a cycle that one core has from behind each cache, and all cores together.
  double from_l2 = 32;
  double from_l3 = 12;
  double from_memory = 5;
  double from_memory_of_all = 8;
  // And two cores of what they write and read again, by where it stays meanwhile, and of what comes
  // while they add products of something else.
  double passed_in_l2 = 20;
  double passed_in_l3 = 10;
  double passed_in_memory = 6.25;
  double passed_beside_products = 37.5;
  // Of the start and the end of a tile's loop, which are not foreseen, and of a sum that comes and
  // goes there.
  double tile_cycles = 30;
  double element_cycles = 2;
  DotCycles dots = {};
  UnitCycles unit = {};
  // Cycles for which the end of an iteration holds up a loop that computes, and a line from L2.
  double loop_cycles = 1.5;
  double held_cycles = 0.6;
  // Of what comes from behind L2 and does not follow what came before.
  double piece_cycles = 40;
  // The same of columns that come from memory; 0: as others of what comes from there.
  double far_piece_cycles = 0;
  // How many steps before its tiles need them columns in place are fetched where L2 does not hold
  // them, and how many bytes a cycle come from L3 then; 0: they are not.
  int64_t steps_ahead = 0;
  double ahead_from_l3 = 0;
  // And how many times as long as product_cost.cc says other ways take where it is right about
  // this.
  double not_ahead = 1;
  // Pages that the first TLB holds, and what it takes to find another one.
  int64_t tlb_pages = 64;
  double page_cycles = 2;
  MemoryRows memory_rows = {};
  // Less than this is done before other cores are awake; and what a loop takes that is handed to
  // them, though one runs all of it.
  double wake_cycles = 12000;
  double handed_cycles = 400;
  // Of a copy: of a line, of an element that is gathered for a vector, or transposed, and of one of
  // rows that lie across.
  double copied_line_cycles = 7.5;
  double gathered_cycles = 1.5;
  double transposed_cycles = 0.7;
  double copied_row_cycles = 1.1;
  // Of a convolution: of an element that is laid out in a patch, and of one of a filter that is
  // copied next to other channels; each where all of them are in L2, and where they are not.
  double patch_cycles = 1.2;
  double far_patch_cycles = 5;
  double filter_cycles = 1.2;
  double far_filter_cycles = 5;
  // Of an element of an image that serves a vector of channels, and of one of the result that is
  // turned into columns; of an element of a vector whose elements are apart.
  double spread_cycles = 0.35;
  double turned_cycles = 1;
  double apart_cycles = 0.2;
  std::string_view source = {};  // where the figures are from

  /// Whether any lanes of a vector may be left out, and comparisons have registers of their own, as
  /// with AVX-512.
  bool has_masks() const { return vectors.bytes == 64; }
};

/// The machine that a CPU of this name is ("znver4"). A CPU that is not in the table is planned as
/// the least that its vectors promise, and its name says so; without a name, for loops that are
/// only looked at, it is the one that the figures of docs/performance/sapphire_rapids.md are of.
Machine machine_of(std::string_view arch);

/// "Zen 4: vectors of 64 bytes, ..": in a line, for people.
std::string text_of(const Machine& machine);

}  // namespace kiln::autoschedule
