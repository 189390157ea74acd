#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/models/random_graphs.h"

namespace cairn::cli {
namespace {

struct GenerateArguments {
  Console console;
  GraphOutputs outputs;
  std::string family;
  core::NodeId nodes = 100, degree = 3, branches = 8, length = 8;
  std::int64_t edges = 200, most = std::int64_t{1} << 20, sum = 1000;
  int groups = 3;
  double scratch = 0, in_place = 0, keep = 0;
  models::LayeredOptions layered;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> numbers;
};

/// A generated graph. Some graphs encode a 3-Partition problem. If the problem has a solution, the least peak of the
/// graph's schedules is `feasible_peak`; if it has none, their least peak is higher. All other graphs have no
/// `feasible_peak`.
struct Generated {
  core::Graph graph;
  std::optional<std::int64_t> feasible_peak;
};

struct GeneratorInfo {
  std::string_view name, options;
  Generated (*make)(const GenerateArguments&);
};

models::GeneratedSizes sizes(const GenerateArguments& a) {
  return {.least = std::min<std::int64_t>(1, a.most),
          .most = a.most,
          .scratch = a.scratch,
          .in_place = a.in_place,
          .keep = a.keep};
}

Generated three_partition(const GenerateArguments& a) {
  const auto numbers = a.numbers.empty() ? models::feasible_three_partition(a.groups, a.sum, a.seed) : a.numbers;
  models::ThreePartition instance = models::three_partition_pumpkin(numbers);
  return {std::move(instance.graph), instance.feasible_peak};
}

/// Calls a generator that has the options --nodes and --degree.
template <auto generate>
Generated of_degree(const GenerateArguments& a) {
  return {generate(a.nodes, a.degree, sizes(a), a.seed), {}};
}

constexpr GeneratorInfo kGenerators[] = {
    {"pumpkin", "--branches --length",
     [](const GenerateArguments& a) -> Generated {
       return {models::generate_pumpkin(a.branches, a.length, sizes(a), a.seed), {}};
     }},
    {"valley-pumpkin", "--branches --length",
     [](const GenerateArguments& a) -> Generated {
       return {models::generate_valley_pumpkin(a.branches, a.length, a.seed), {}};
     }},
    {"rising-pumpkin", "--branches --length",
     [](const GenerateArguments& a) -> Generated {
       return {models::generate_valley_pumpkin(a.branches, a.length, a.seed, models::Valleys::rising), {}};
     }},
    {"three-partition", "--numbers, or --groups --sum", three_partition},
    {"in-tree", "--nodes --degree", of_degree<models::generate_in_tree>},
    {"out-tree", "--nodes --degree", of_degree<models::generate_out_tree>},
    {"series-parallel", "--nodes --degree", of_degree<models::generate_series_parallel>},
    {"starborescence", "--nodes --degree", of_degree<models::generate_starborescence>},
    {"random", "--nodes --edges",
     [](const GenerateArguments& a) -> Generated {
       return {models::generate_random(a.nodes, a.edges, sizes(a), a.seed), {}};
     }},
    {"random-layered", "--nodes --width --layers-variance --edge-density --skip-density",
     [](const GenerateArguments& a) -> Generated {
       models::LayeredOptions options = a.layered;
       options.nodes = a.nodes;
       options.seed = a.seed;
       return {models::generate_layered(options), {}};
     }},
};

std::vector<std::string_view> generator_names() {
  std::vector<std::string_view> names;
  for (const GeneratorInfo& info : kGenerators) names.push_back(info.name);
  return names;
}

const GeneratorInfo& find_generator(const std::string& name) {
  for (const GeneratorInfo& info : kGenerators) {
    if (info.name == name) return info;
  }
  const std::vector<std::string_view> names = generator_names();
  throw core::InputError(fmt::format("there is no generator '{}'{} (known: {})", name, core::did_you_mean(name, names),
                                     fmt::join(names, ", ")));
}

/// Throws InputError if the graph would be too large. Must be called before any memory is allocated for the graph.
void require_size(const GenerateArguments& a) {
  constexpr std::int64_t kMost = 20'000'000;
  const std::int64_t chains = static_cast<std::int64_t>(a.branches) * a.length;
  for (const auto& [options, count] :
       {std::pair{"--nodes", std::int64_t{a.nodes}}, std::pair{"--edges", a.edges},
        std::pair{"--branches times --length", chains},
        std::pair{"three times --groups, squared", std::int64_t{9} * a.groups * a.groups}}) {
    if (count > kMost)
      throw core::InputError(
          fmt::format("{} is {}; more than {} nodes or edges are not generated", options, count, kMost));
  }
}

int generate(const GenerateArguments& arguments) {
  const GeneratorInfo& generator = find_generator(arguments.family);
  require_size(arguments);
  require_outputs(arguments.outputs.paths(), {});
  const Generated generated = generator.make(arguments);
  arguments.outputs.write(generated.graph);
  const core::Graph& graph = generated.graph;
  const auto baseline = core::evaluate(graph, core::baseline_schedule(graph));
  Json json;
  json["graph"] = graph.name();
  json["fingerprint"] = graph.fingerprint();
  json["nodes"] = graph.node_count();
  json["edges"] = graph.edge_count();
  json["baseline_peak_bytes"] = baseline.peak;
  json["feasible_peak_bytes"] = generated.feasible_peak ? Json(*generated.feasible_peak) : Json(nullptr);
  if (!arguments.outputs.json.empty()) json["output"] = arguments.outputs.json;
  Rows rows = {{"graph", graph.name()},
               {"nodes, edges", fmt::format("{}, {}", graph.node_count(), graph.edge_count())},
               {"baseline peak", bytes_text(baseline.peak)}};
  if (generated.feasible_peak)
    rows.push_back({"least peak", bytes_text(*generated.feasible_peak) + " if the numbers can be split, else more"});
  rows.push_back({"written to", written_to(arguments.outputs.json)});
  arguments.console.print(json, format_table(rows));
  return kDone;
}

}  // namespace

Subcommand add_generate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("generate", "write a random graph of a class: for solvers and benchmarks");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateArguments& a = *arguments;
  a.console.add_to(*app);
  a.outputs.add_to(*app);
  app->add_option("FAMILY", a.family, fmt::format("one of {}", fmt::join(generator_names(), ", ")))->required();
  const auto number = [&](const char* name, auto& value, const char* help) {
    app->add_option(name, value, help)->capture_default_str()->check(at_least_one());
  };
  number("--nodes", a.nodes, "nodes in all");
  number("--edges", a.edges, "edges in all");
  number("--degree", a.degree, "the most readers of a node (in-tree: inputs)");
  number("--branches", a.branches, "parallel chains");
  number("--length", a.length, "nodes of a chain");
  number("--groups", a.groups, "number of groups of 3-Partition, three numbers each");
  number("--sum", a.sum, "sum of the numbers of each group of 3-Partition");
  app->add_option("--numbers", a.numbers, "numbers to partition (3-Partition), as 4,5,6,4,5,6")->delimiter(',');
  number("--most", a.most, "bytes of the largest output; sizes are uniform");
  const auto part = [&](const char* name, double& value, const char* help) {
    app->add_option(name, value, help)->capture_default_str()->check(CLI::Range(0.0, 1.0));
  };
  part("--scratch", a.scratch, "share of nodes with scratch");
  part("--in-place", a.in_place, "share of nodes that take over an input's storage, where they can");
  part("--keep", a.keep, "share of nodes that are kept");
  const auto layered = [&](const char* name, double& value, const char* help) {
    app->add_option(name, value, help)->capture_default_str();
  };
  layered("--width", a.layered.width, "of random-layered: a layer has 2 * width * sqrt(nodes) nodes on average");
  layered("--layers-variance", a.layered.layers_variance, "sizes of layers are within this share of the average");
  layered("--edge-density", a.layered.edge_density, "share of the pairs of neighbouring layers that have an edge");
  layered("--skip-density", a.layered.skip_density, "share of edges that pass over a layer or more");
  app->add_option("--seed", a.seed, "of the random numbers")->capture_default_str();
  std::string footer = "Families and their options:\n";
  for (const GeneratorInfo& info : kGenerators) footer += fmt::format("  {:<16} {}\n", info.name, info.options);
  app->footer(footer +
              "Examples:\n"
              "  cairn generate series-parallel --nodes 1000 --degree 6 -o sp.json && cairn solve sp.json --solver sp\n"
              "  cairn generate random-layered --nodes 500 --width 0.36 --seed 1 -o rl500.json\n"
              "  cairn generate three-partition --groups 5 --sum 100 --seed 7 -o p.json");
  return {app, [arguments] { return generate(*arguments); }};
}

}  // namespace cairn::cli
