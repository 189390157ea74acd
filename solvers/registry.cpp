// Holds the table of all solvers, and calls them with checked options (registry.h).

#include "cairn/solvers/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/internal/auto.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/solvers/remat/baselines/baselines.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/solvers/remat/hiremate/hiremate.h"
#include "cairn/solvers/remat/kumar/pw_remat.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"
#include "cairn/solvers/remat/rotor/rotor.h"
#include "cairn/solvers/remat/stages/checkmate.h"
#include "cairn/solvers/remat/stages/moccasin.h"

namespace cairn::solvers {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Implements SolverOption::store for an option that is a member of a structure. kField points to the member.
template <auto kField>
struct Member;
template <class Own, class Field, Field Own::*kField>
struct Member<kField> {
  static void store(SolveOptions& own, std::int64_t value) {
    static_cast<Own&>(own).*kField = static_cast<Field>(value);
  }
};
template <auto kField>
constexpr auto kIn = Member<kField>::store;

/// Calls a solver that has a structure of options of its own, which the table kOptions describes.
template <const auto& kOptions, class Own, Solution (*solver)(const core::Graph&, const Own&)>
Solution run_with(const core::Graph& graph, const SolveOptions& options) {
  Own own{options};
  store_own(kOptions, own);
  return solver(graph, own);
}

constexpr SolverOption kTwOptions[] = {
    {"k", "bags", 0, 0, kUnlimited,
     "the recursion stops at fewer than this number of bags; 1: least memory; n: every node runs once; 0: searches "
     "for k",
     kIn<&TwRematOptions::k>},
    {"retain", "0 or 1", 1, 0, 1, "1: keep freed values in memory where the budget allows; 0: Algorithm 1 unchanged",
     kIn<&TwRematOptions::retain>},
    {"steps", "steps", 0, 0, kUnlimited,
     "largest number of steps of a schedule that is written out; 0: 64 per node, or 4 million if k is given",
     kIn<&TwRematOptions::most_steps>}};

constexpr SolverOption kPwOptions[] = {
    {"k", "bags", 0, 0, kUnlimited,
     "the recursion stops at fewer than this number of bags; 1: least memory; n: every node runs once; 0: searches "
     "for k",
     kIn<&PwRematOptions::k>},
    {"order", "order", 0, 0, 2,
     "1: the order of a spine (Algorithm 2), for which a length is proved; 2: input order; 0: both",
     kIn<&PwRematOptions::order>},
    {"retain", "0 or 1", 1, 0, 1, "1: keep freed values in memory where the budget allows; 0: Algorithm 3 unchanged",
     kIn<&PwRematOptions::retain>}};

constexpr SolverOption kMoccasinOptions[] = {
    {"c", "runs", 2, 1, 1000, "C_v of every node: how often it may run; the paper's experiments have 2",
     kIn<&MoccasinOptions::c>},
    {"staged", "0 or 1", 1, 0, 1,
     "1: input order, divided into stages (section 2.3), as in the paper's experiments; 0: any order (section 2.1), "
     "for small graphs, unless the input order is asked for",
     kIn<&MoccasinOptions::staged>},
    {"threads", "threads", 0, 0, 4096, "number of threads of CP-SAT; 0: one per core, or one if a work limit is given",
     kIn<&MoccasinOptions::threads>}};

constexpr SolverOption kRotorOptions[] = {
    {"slots", "levels", 0, 0, 1'000'000,
     "levels of memory in the dynamic program; more are finer, slower and larger; 0: as many as a few seconds allow",
     kIn<&RotorOptions::slots>},
    {"blocks", "blocks", 200, 2, 400, "largest number of blocks of a chain; beyond it, neighbouring blocks are merged",
     kIn<&RotorOptions::blocks>},
    {"retain", "0 or 1", 1, 0, 1,
     "1: afterwards keep values in memory where the budget allows; 0: the paper's persistent schedules",
     kIn<&RotorOptions::retain>}};

constexpr SolverOption kCheckmateOptions[] = {
    {"engine", "engine", 0, 0, 2, "1: HiGHS, 2: CP-SAT; 0: HiGHS, then CP-SAT where tolerances matter",
     kIn<&CheckmateOptions::engine>},
    {"threads", "threads", 0, 0, 4096, "number of threads of CP-SAT; 0: one per core, or one if a work limit is given",
     kIn<&CheckmateOptions::threads>}};

constexpr std::span<const SolverOption> kNoOptions;

std::string both_engines_missing() { return cp_sat_missing().empty() ? "" : highs_missing(); }

constexpr SolverOption kHirematOptions[] = {
    {"partition", "partition", 0, 0, 2,
     "1: H-Partition, 2: runs of consecutive nodes, cut where few bytes are alive; 0: both, as long as time is left",
     kIn<&HirematOptions::partition>},
    {"top", "groups", 28, 1, 1000, "largest number of groups on the top level (M^t)", kIn<&HirematOptions::most_top>},
    {"lower", "nodes", 20, 2, 1000, "largest number of nodes (or groups) in a group (M^l)",
     kIn<&HirematOptions::most_lower>},
    {"alpha", "hundredths", 50, 0, 1000, "the exponent in the score of H-Partition", kIn<&HirematOptions::alpha_pct>},
    {"options", "options", 300, 1, 100'000, "largest number of options of all groups of one level (N_o)",
     kIn<&HirematOptions::most_options>},
    {"budgets", "budgets", 8, 1, 1000, "number of budgets that each group is solved for, up to three times each",
     kIn<&HirematOptions::budgets>},
    {"others", "0 or 1", 1, 0, 1, "TWRemat and RK-ROTOR beside H-ILP, on every level; 0: H-ILP alone",
     kIn<&HirematOptions::others>},
    {"highs", "0 or 1", 0, 0, 1, "1: HiGHS instead of CP-SAT; 0: HiGHS only if CP-SAT is missing",
     kIn<&HirematOptions::highs>},
    {"threads", "threads", 0, 0, 4096,
     "number of threads; 0: one per core, or one per program if a work limit is given", kIn<&HirematOptions::threads>},
    {"retain", "0 or 1", 1, 0, 1,
     "1: afterwards keep values in memory where the budget allows; 0: the schedules as programs give them",
     kIn<&HirematOptions::retain>}};

constexpr SolverOption kOrderOptions[] = {
    {"threads", "threads", 0, 0, 4096,
     "number of threads of tables and searches; 0: one per core, or one if a work limit is given",
     kIn<&OrderOptions::threads>}};

template <Solution (*solver)(const core::Graph&, const OrderOptions&)>
constexpr auto run_order = run_with<kOrderOptions, OrderOptions, solver>;

/// Describes a solver that accepts only one class of graphs, never recomputes, and finds an optimal order of every
/// graph of that class.
template <Solution (*solver)(const core::Graph&, const OrderOptions&)>
constexpr SolverInfo of_class(std::string_view name, std::string_view paper, std::string_view graphs) {
  return {.name = name,
          .paper = paper,
          .guarantee = "least peak without recomputation",
          .run = run_order<solver>,
          .can = {.recomputes = false, .exact = true, .accelerator = true},
          .scope = kWithoutRecomputation,
          .graphs = graphs,
          .options = kOrderOptions};
}

constexpr SolverInfo kSolvers[] = {
    {.name = "auto",
     .paper = "the others, then annealing of order and recomputation at once, and windows solved exactly",
     .guarantee = "the cheapest schedule within budget and time limit that any of them found",
     .run = auto_remat,
     .can = {.input_order = true, .max_occurrences = true, .accelerator = true, .any_means = true}},
    {.name = "tw",
     .paper = "Kumar et al. 2019, Algorithm 1: TWRemat(k)",
     .guarantee = "peak O((M_in + w M_max) log n) for tree decompositions of width w, if k = 1",
     .run = run_with<kTwOptions, TwRematOptions, tw_remat>,
     .can = {.decomposition = true},
     .turn = {.turn = 3, .share = 0.35, .setup_seconds = 2e-7},
     .options = kTwOptions},
    {.name = "pw",
     .paper = "Kumar et al. 2019, Algorithm 3: PWRemat",
     .guarantee = "length n polylog n and peak O(p M_max log^2 b + M_in log b) for b bags of at most p nodes",
     .run = run_with<kPwOptions, PwRematOptions, pw_remat>,
     .turn = {.turn = 4, .share = 0.25, .setup_seconds = 4e-7},
     .options = kPwOptions},
    {.name = "greedy",
     .paper = "Kumar et al. 2019, section 4: GreedyRemat (XLA)",
     .guarantee = "no bound on peak or cost",
     .run = greedy_remat,
     .can = {.input_order = true, .max_occurrences = true},
     .turn = {.turn = 1, .share = 0.25}},
    {.name = "chen",
     .paper = "Chen et al. 2016: sublinear memory checkpointing, on DAGs",
     .guarantee = "O(sqrt n) values in memory, on a chain of n values of equal size",
     .run = chen_remat,
     .can = {.input_order = true, .max_occurrences = true},
     .turn = {.turn = 2, .share = 0.25}},
    {.name = "exact-remat",
     .paper = "best-first search over sets of values in memory",
     .guarantee = "the cheapest schedule within the budget, or that there is none, if it ends within the time limit",
     .run = exact_remat,
     .can = {.exact = true},
     .turn = {.turn = 6, .share = 0.35},
     .graphs = "64 values",
     .most_values = kMostExactRematValues},
    {.name = "moccasin",
     .paper = "Bartan et al. 2023: constraint programming over retention intervals",
     .guarantee =
         "the cheapest schedule of stages with c runs a node within the budget, if it ends within the time limit",
     .run = run_with<kMoccasinOptions, MoccasinOptions, moccasin>,
     .can = {.input_order = true, .max_occurrences = true, .exact = true},
     .scope = {OrderRule::stages, 0},
     .turn = {.rest = true, .least_seconds = 1, .most_values = 400},
     .options = kMoccasinOptions,
     .missing = cp_sat_missing},
    {.name = "rotor",
     .paper = "Beaumont et al. 2019: heterogeneous chains; blocks as in Rockmate (Zhao et al. 2023)",
     .guarantee = "the cheapest persistent schedule where blocks are single nodes; no bound on others",
     .run = run_with<kRotorOptions, RotorOptions, rotor>,
     .turn = {.turn = 5, .share = 0.25},
     .graphs = kTrainingGraphs,
     .options = kRotorOptions},
    {.name = "hiremate",
     .paper = "Gusak et al. 2025: H-Partition, H-ILP, options from TWRemat and RK-ROTOR",
     .guarantee = "no bound; solved level by level, in time near-linear in the nodes",
     .run = run_with<kHirematOptions, HirematOptions, hiremate>,
     .turn = {.rest = true, .least_seconds = 2},
     .options = kHirematOptions,
     .missing = both_engines_missing},
    {.name = "checkmate",
     .paper = "Jain et al. 2020: Checkmate, the integer program",
     .guarantee =
         "the cheapest schedule in stages within the budget, or that there is none, if it ends within the time limit",
     .run = run_with<kCheckmateOptions, CheckmateOptions, checkmate>,
     .can = {.input_order = true, .max_occurrences = true, .exact = true},
     .scope = {OrderRule::stages, 0},
     .turn = {.rest = true, .least_seconds = 3, .most_values = 150},
     .options = kCheckmateOptions,
     .missing = both_engines_missing},
    {.name = "checkmate-lp",
     .paper = "Jain et al. 2020: Checkmate, the relaxation rounded in two phases",
     .guarantee = "a bound on the cost in stages; its schedule may exceed the budget, and the answer then says so",
     .run = run_with<kNoOptions, CheckmateOptions, checkmate_lp>,
     .can = {.input_order = true, .max_occurrences = true},
     .scope = {OrderRule::stages, 0},
     .missing = highs_missing},
    {.name = "order",
     .paper = "Jin et al.: dominance, linearization; then exact or anytime search",
     .guarantee = "least peak without recomputation where it says optimal; never above the input order",
     .run = run_order<order>,
     .can = {.recomputes = false, .exact = true, .accelerator = true},
     .scope = kWithoutRecomputation,
     .turn = {.turn = 1, .share = 0.15, .rest = true},
     .options = kOrderOptions},
    of_class<series_parallel>("sp", "Jin et al., Theorem 7.2: series-parallel graphs", "series-parallel"),
    of_class<pumpkin>("pumpkin", "Jin et al., Theorem 8.2: parallel chains", "pumpkin"),
    of_class<in_tree>("in-tree", "Liu 1987", "in-tree"),
    of_class<out_tree>("out-tree", "Jin et al., Theorem 8.3", "out-tree"),
    {.name = "exact",
     .paper = "bottleneck search over topological cuts",
     .guarantee = "least peak without recomputation if it ends within the time limit",
     .run = run_order<exact>,
     .can = {.recomputes = false, .exact = true},
     .scope = kWithoutRecomputation,
     .options = kOrderOptions},
    {.name = "none",
     .paper = "Kumar et al. 2019, section 4: NoRemat",
     .guarantee = "every node once, in the input order",
     .run = no_remat,
     .can = {.recomputes = false, .input_order = true}},
};

/// Lists the solver's own options, for example "it has k=bags, retain=0 or 1".
std::string options_of(const SolverInfo& solver) {
  std::vector<std::string> texts;
  for (const SolverOption& option : solver.options) texts.push_back(fmt::format("{}={}", option.name, option.unit));
  return texts.empty() ? "it has none" : fmt::format("it has {}", fmt::join(texts, ", "));
}

const SolverOption& find_option(const SolverInfo& solver, std::string_view name) {
  std::vector<std::string_view> names;
  for (const SolverOption& option : solver.options) {
    if (option.name == name) return option;
    names.push_back(option.name);
  }
  throw core::InputError(fmt::format("solver '{}' has no option '{}'{} ({})", solver.name, name,
                                     core::did_you_mean(name, names), options_of(solver)));
}

[[noreturn]] void refuse_value(const SolverInfo& solver, const SolverOption& option, std::string_view value) {
  const std::string range = option.most == kUnlimited ? fmt::format("of at least {}", option.least)
                                                      : fmt::format("from {} to {}", option.least, option.most);
  throw core::InputError(fmt::format("option '{}' of solver '{}' is '{}', but must be a whole number {} ({})",
                                     option.name, solver.name, value, range, option.unit));
}

}  // namespace

void store_own(std::span<const SolverOption> options, SolveOptions& own) {
  for (const SolverOption& option : options) {
    const auto given = own.own.find(option.name);
    option.store(own, given == own.own.end() ? option.initial : given->second);
  }
}

bool SolverInfo::honours(const Scope& asked) const {
  return (asked.order == OrderRule::free || can.input_order) &&
         (asked.order != OrderRule::stages || !can.recomputes || scope.order == OrderRule::stages) &&
         (asked.max_occurrences == 0 || !can.recomputes || can.max_occurrences);
}

Solution SolverInfo::solve(const core::Graph& graph, const SolveOptions& asked) const {
  if (const std::string why = why_missing(); !why.empty())
    throw core::InputError(fmt::format("solver '{}' is not available: {}", name, why));
  if (asked.scope.max_occurrences < 0)
    throw core::InputError(
        fmt::format("at most {} occurrences of a node is not a limit; give 1 or more, or 0 for any number",
                    asked.scope.max_occurrences));
  if (!honours(asked.scope)) {
    std::vector<std::string_view> able;
    for (const SolverInfo& other : registry()) {
      if (other.graphs == "any" && other.honours(asked.scope)) able.push_back(other.name);
    }
    throw core::InputError(fmt::format("solver '{}' cannot keep to: {}; these can: {}", name, describe(asked.scope),
                                       fmt::join(able, ", ")));
  }
  if (asked.decomposition != nullptr && !can.decomposition) {
    std::vector<std::string_view> able;
    for (const SolverInfo& other : registry()) {
      if (other.can.decomposition) able.push_back(other.name);
    }
    throw core::InputError(
        fmt::format("solver '{}' uses no tree decomposition; these do: {}", name, fmt::join(able, ", ")));
  }
  for (const auto& [key, value] : asked.own) {
    const SolverOption& option = find_option(*this, key);
    if (value < option.least || value > option.most) refuse_value(*this, option, std::to_string(value));
  }
  Solution solution = run(graph, asked);
  if (solution.least_peak_by.empty()) solution.least_peak_by = name;
  return solution;
}

void SolverInfo::set_option(SolveOptions& into, std::string_view assignment) const {
  const std::size_t equals = assignment.find('=');
  const std::string_view key = assignment.substr(0, equals);
  const SolverOption& option = find_option(*this, key);
  const std::string_view text = equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const bool whole = !text.empty() && std::from_chars(text.data(), end, value) == std::from_chars_result{end, {}};
  if (!whole || value < option.least || value > option.most) refuse_value(*this, option, text);
  into.own.insert_or_assign(std::string(key), value);
}

std::span<const SolverInfo> registry() { return kSolvers; }

const SolverInfo& find_solver(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SolverInfo& solver : kSolvers) {
    if (solver.name == name) return solver;
    names.push_back(solver.name);
  }
  throw core::InputError(fmt::format("there is no solver '{}'{} (known: {})", name, core::did_you_mean(name, names),
                                     fmt::join(names, ", ")));
}

}  // namespace cairn::solvers
