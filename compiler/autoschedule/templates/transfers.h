#pragma once

#include "compiler/autoschedule/recognise/machine.h"

namespace kiln::autoschedule {

/// What comes to a core from behind L1 while it computes, in cycles of each cache and of the core
/// where that waits.
class Transfers {
 public:
  static constexpr double kLineBytes = 64;
  static constexpr double kPageBytes = 4096;

  /// `touched`: all bytes that a call reads and writes.
  Transfers(const Machine& machine, double touched) : machine_(machine), touched_(touched) {}

  /// Bytes that pass between two uses of others, as each cache has to make room for them.
  struct Others {
    double l1 = 0;
    double l2 = 0;
  };

  /// Bytes that come again when so many others have passed.
  void again(double bytes, double others) { again(bytes, Others{others, others}); }
  void again(double bytes, const Others& others);

  /// Bytes that come for the first time in a call: from where the last one left them.
  void first(double bytes) { again(bytes, touched_); }

  /// The same of what is fetched before.
  void first_ahead(double bytes);

  /// Bytes that come again in pieces of so many, each so far from the one before.
  void pieces_again(double count, double others, double distance, double piece);

  /// Pieces that come for the first time in a call, where that is from memory: of those from caches
  /// many are under way at once.
  void pieces_from_memory(double count, double distance, double piece);

  /// Pieces of columns that a product reads once, one after the other.
  void pieces_in_turn(double count, double distance, double piece);

  /// Pieces that are fetched before.
  void pieces_ahead(double count, double distance, double piece);

  /// Steps so far apart, of which each needs the address of its page where these are more than the
  /// first TLB holds.
  void pages(double count, double steps, double distance);

  double l2() const { return l2_; }
  double l3() const { return l3_; }
  double memory() const { return memory_; }
  double waits() const { return waits_; }

 private:
  bool is_beyond_l2(double others) const;
  bool is_beyond_l3(double others) const;

  const Machine& machine_;
  const double touched_;
  double l2_ = 0;
  double l3_ = 0;
  double memory_ = 0;
  double waits_ = 0;
};

/// Whether L1 still has what was read before so many others passed.
bool stays_in_l1(const Transfers::Others& others, const Machine& machine);

/// Lines that a cache keeps of those that lie so many bytes apart, whole lines: they share sets.
double lines_kept(int64_t cache, int64_t ways, double distance);

/// So many bytes, and lines this far apart. Where these lie in so few sets of a cache that they
/// evict each other, it has no room for them.
Transfers::Others passed_between(double bytes, double lines, double distance,
                                 const Machine& machine);

}  // namespace kiln::autoschedule
