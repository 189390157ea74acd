#include "cairn/solvers/remat/bound/cut/certificate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/support/saturating.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"

namespace cairn::solvers {
namespace {

/// Returns a simple proof that no schedule is within the budget, or nothing if there is no simple proof. The proof
/// shows that one node alone needs more bytes than the budget while it runs, or that all kept values together need
/// more. In the first case, the first run of this node is the only moment of the proof. In the second case, the proof
/// has no moments.
std::optional<MomentsProof> proof_by_size(const core::Graph& graph, std::int64_t budget) {
  const core::PeakBound needs = core::explain_peak_lower_bound(graph);
  if (needs.bytes <= budget) return std::nullopt;
  MomentsProof proof{.infeasible = true, .moments = {}, .prices = {}};
  if (needs.node != core::kNoNode) {
    proof.moments = {needs.node};
    proof.prices = {0.0};
  }
  return proof;
}

}  // namespace

Certificate certify(const core::Graph& graph, std::int64_t budget, OrderRule order, std::int64_t enough,
                    core::Stopwatch& watch) {
  const std::int64_t base = cost_of(graph, graph.input_order());
  if (std::optional<MomentsProof> proof = proof_by_size(graph, budget)) return {budget, order, {}, std::move(*proof)};
  const MomentCutOptions options{.budget = budget, .order = order, .link = {}, .host_budget = {}};
  CutBound bound = cut_bound(graph, options, enough, {}, watch);
  if (bound.infeasible && !bound.proof.infeasible) {
    const Moments moments(graph, Moment(graph, bound.moment, budget, order));
    bound.proof = moments_optimum(graph, moments, 0, enough - base - 1, {0.0}, watch).proof;
  }
  Certificate certificate{budget, order, base, {}};
  const std::int64_t proved = core::saturating_add(base, bound.proof.extra);
  if (bound.proof.infeasible) {
    certificate.least_cost.reset();
  } else {
    certificate.least_cost = std::min(proved, std::max(enough, base));
  }
  if (certificate.least_cost != base) certificate.proof = std::move(bound.proof);
  return certificate;
}

}  // namespace cairn::solvers
