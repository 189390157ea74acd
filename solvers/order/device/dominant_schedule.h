#pragma once

#include "cairn/core/host_device.h"

/// Algorithms 1 and 2 of Jin et al. for any class of graphs in which orders of least peak and minimum cuts can be
/// found. `Cuts` is a graph with a cut and an order that grows. The cut is the set of steps that have run, at first the
/// empty set. "Beyond the cut" refers to the steps that have not run. The members of `Cuts` are:
///
///   done()                   returns whether every step to be ordered was appended
///   bool find_optimal()      finds an order of least peak for the steps beyond the cut; returns false if it gave up
///   bool pass_peak()         moves the cut on to the first place at which that order is highest; returns false if the
///                            order is nowhere higher than at the cut
///   move_to_least_cut()      moves the cut on to a cut of least memory; of several, to the largest
///   append_passed()          appends the steps that the cut has passed since find_optimal(), in the order found
///   append_found()           appends the whole order found
///   reversed()               returns the Cuts of the part before the cut, backwards in time
///   append_reversed(cuts)    appends the order of these Cuts, backwards
namespace cairn::solvers {

/// Runs Algorithm 1 (FINDSCHEDULE): appends an order of all steps beyond the cut that dominates all other orders of
/// them. No cut beyond may have less memory than the current one. Takes one call of find_optimal() and one minimum cut
/// for each segment of the result. Returns false if find_optimal() gave up.
template <class Cuts>
CAIRN_HD bool find_schedule(Cuts& cuts) {
  while (!cuts.done()) {
    if (!cuts.find_optimal()) return false;
    // No later cut has less memory than this one. If none has more either, all orders are equally good.
    if (!cuts.pass_peak()) {
      cuts.append_found();
      return true;
    }
    cuts.move_to_least_cut();
    cuts.append_passed();
  }
  return true;
}

/// Runs Algorithm 2 (FINDSCHEDULEGENERAL) with Theorem 3.14, from the empty cut: appends an order of all steps that
/// dominates all other orders. Moves to a minimum cut, then runs Algorithm 1 backwards from that cut and forwards from
/// it. Returns false if find_optimal() gave up.
template <class Cuts>
CAIRN_HD bool find_schedule_general(Cuts& cuts) {
  cuts.move_to_least_cut();
  auto left = cuts.reversed();
  if (!find_schedule(left)) return false;
  cuts.append_reversed(left);
  return find_schedule(cuts);
}

}  // namespace cairn::solvers
