#pragma once

#include "cairn/core/host_device.h"

/// Runs Algorithms 1 and 2 of Jin et al., which find an order that dominates all other orders, for any class of graphs
/// in which orders of least peak and minimum cuts can be found. An order dominates another one if the two memory
/// profiles can be walked at such speeds that the first is never above the second (core/dominance.h). `Cuts` stands for
/// a graph with a cut, and for an order that grows. The cut is the set of steps that have run; at first it is empty.
/// All other steps are beyond the cut. `Cuts` has these members:
///
///   done()                   returns whether every step to be ordered was appended
///   bool find_optimal()      finds an order of least peak for the steps beyond the cut; returns false if it gave up
///   bool pass_peak()         extends the cut along that order to the first moment of highest memory; returns false if
///                            memory is nowhere higher than at the cut
///   move_to_least_cut()      extends the cut to a cut of least memory; if there are several, to the largest
///   append_passed()          appends the steps that the cut has passed since find_optimal(), in the order found
///   append_found()           appends the whole order found
///   reversed()               returns the Cuts of the part before the cut, backwards in time
///   append_reversed(cuts)    appends the order of these Cuts, backwards
namespace cairn::solvers {

/// Runs Algorithm 1 (FINDSCHEDULE), which appends an order of all steps beyond the cut that dominates all other orders
/// of these steps. No cut that contains the current cut may have less memory than the current cut. For each segment of
/// the result, calls find_optimal() once and finds one minimum cut. Returns false if find_optimal() gave up.
template <class Cuts>
CAIRN_HD bool find_schedule(Cuts& cuts) {
  while (!cuts.done()) {
    if (!cuts.find_optimal()) return false;
    // No later cut has less memory than this cut. If the remaining steps never need more memory than this cut, their
    // order does not matter.
    if (!cuts.pass_peak()) {
      cuts.append_found();
      return true;
    }
    cuts.move_to_least_cut();
    cuts.append_passed();
  }
  return true;
}

/// Runs Algorithm 2 (FINDSCHEDULEGENERAL) with Theorem 3.14 from the empty cut. Appends an order of all steps that
/// dominates all other orders. Moves to a minimum cut, and runs Algorithm 1 backwards on the part before it, and
/// forwards on the part after it. Returns false if find_optimal() gave up.
template <class Cuts>
CAIRN_HD bool find_schedule_general(Cuts& cuts) {
  cuts.move_to_least_cut();
  auto left = cuts.reversed();
  if (!find_schedule(left)) return false;
  cuts.append_reversed(left);
  return find_schedule(cuts);
}

}  // namespace cairn::solvers
