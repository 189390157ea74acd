// Tests cuDNN's planning for graphics cards, which need not be in this machine: which engines cuDNN proposes for the
// convolutions of the models, and which of these engines Cairn uses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/precision.h"
#include "cairn/cuda/internal/conv_plans.h"
#include "cairn/cuda/internal/conv_variants.h"
#include "cairn/models/registry.h"
#include "cairn/runtime/device/call.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::conv_planning_test {

using namespace core;
using namespace cuda;
using namespace runtime::device;

namespace {

constexpr std::array kCards = {"a100", "h100", "h200", "b200", "rtx4090"};

struct Precision {
  const char* name;
  ElementType type;
  bool tf32;
};
constexpr std::array<Precision, 3> kPrecisions = {
    {{"fp32", ElementType::f32, false}, {"tf32", ElementType::f32, true}, {"bf16", ElementType::bf16, false}}};
constexpr std::array kKinds = {ConvKind::forward, ConvKind::grad_input, ConvKind::grad_weight};
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string properties_of(const std::string& card) {
  return read_file(std::string(CAIRN_SOURCE_DIR) + "/cuda/cards/" + card + ".json");
}

/// Returns whether cuDNN cannot plan here. In that case it prints a line from which ctest recognizes that the test was
/// skipped.
bool cannot_plan() {
  const std::string reason = CardPlanner::why_not();
  if (reason.empty()) return false;
  std::printf("skipped: %s\n", reason.c_str());
  return true;
}

/// Returns whether cuDNN must not plan for this card. In that case it prints why. The line does not begin with
/// "skipped: ", because ctest would then count the whole test as skipped, even if the test fails for another card.
bool left_out(const std::string& card) {
  const std::string reason = CardPlanner::why_not(properties_of(card));
  if (reason.empty()) return false;
  std::printf("%s is left out: %s\n", card.c_str(), reason.c_str());
  return true;
}

/// Returns the distinct convolutions of a model's forward pass, in fp32.
std::set<ConvShape> forward_shapes(const Graph& graph) {
  std::set<ConvShape> shapes;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const Op* op = graph.op(v);
    if (op == nullptr || op->kind != OpKind::conv2d) continue;
    const std::vector<Shape> args = arg_shapes(graph, v);
    const Shape &x = args[0], &w = args[1], &y = op->shape;
    shapes.insert({.images = x[0],
                   .in_h = x[1],
                   .in_w = x[2],
                   .in_c = x[3],
                   .kernel_h = w[1],
                   .kernel_w = w[2],
                   .out_h = y[1],
                   .out_w = y[2],
                   .out_c = y[3],
                   .stride = op->attrs.stride,
                   .pad = op->attrs.pad});
  }
  return shapes;
}

std::set<ConvShape> resnet50_shapes() {
  return forward_shapes(models::build_model("resnet50", {.values = {{"batch", 128}, {"image", 224}}}));
}

/// Returns the distinct convolutions of all models with their default options.
std::set<ConvShape> zoo_shapes() {
  std::set<ConvShape> shapes;
  for (const models::ModelInfo& model : models::registry())
    shapes.merge(forward_shapes(models::build_model(model.name, {})));
  return shapes;
}

ConvShape with(ConvShape shape, ConvKind kind, const Precision& precision) {
  shape.kind = kind;
  shape.type = precision.type;
  shape.tf32 = precision.tf32;
  return shape;
}

/// The engine that is used for a shape: the first proposed engine that may be used and stays within a limit on
/// workspace.
struct Taken {
  /// Number of proposals before this engine, without those that are refused because they round to TF32.
  std::int64_t place = 0;
  std::int64_t workspace = 0;
};

/// Returns the first engine that may be used with at most `limit` bytes of workspace. Proposals that are refused
/// because they round factors to TF32 do not count in `place`. With NVIDIA_TF32_OVERRIDE=0, cuDNN would not propose
/// them at all.
std::optional<Taken> take(const std::vector<ConvProposal>& proposals, std::int64_t limit) {
  std::int64_t place = 0;
  for (const ConvProposal& proposal : proposals) {
    if (proposal.refusal.empty() && proposal.workspace <= limit) return Taken{place, proposal.workspace};
    if (proposal.refusal != kRoundsToTf32) ++place;
  }
  return std::nullopt;
}

/// Statistics of Taken::place over several shapes. `none` is the number of shapes without any usable engine.
struct Places {
  std::int64_t count = 0, sum = 0, worst = 0, none = 0;

  void add(const std::optional<Taken>& taken) {
    if (!taken) {
      ++none;
      return;
    }
    ++count;
    sum += taken->place;
    worst = std::max(worst, taken->place);
  }
  double mean() const { return static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(count, 1)); }
};

std::string describe(const ConvShape& s) {
  return fmt::format("kind {} x {}x{}x{}x{} kernel {}x{} to {} stride {} pad {}", static_cast<int>(s.kind), s.images,
                     s.in_h, s.in_w, s.in_c, s.kernel_h, s.kernel_w, s.out_c, s.stride, s.pad);
}

}  // namespace

TEST_CASE("engines are refused for what their notes say and the shape's precision forbids") {
  const auto refused = [](const Precision& precision, EngineNote note) {
    EngineNotes notes;
    notes.add(EngineNote::strict_nan_propagation);
    notes.add(note);
    return !refusal(with({}, ConvKind::forward, precision), notes).empty();
  };
  for (const Precision& precision : kPrecisions) {
    INFO(precision.name);
    const bool exact = precision.type == ElementType::f32 && !precision.tf32;
    CHECK(refused(precision, EngineNote::nondeterministic));
    CHECK(refused(precision, EngineNote::down_convert_inputs));
    CHECK(refused(precision, EngineNote::reduced_precision_reduction));
    CHECK(refused(precision, EngineNote::winograd_13x13));
    CHECK(refused(precision, EngineNote::tensor_core) == exact);
    CHECK(refused(precision, EngineNote::fft) == exact);
    CHECK_FALSE(refused(precision, EngineNote::winograd_4x4));
    CHECK_FALSE(refused(precision, EngineNote::winograd_6x6));
    CHECK(refusal(with({}, ConvKind::forward, precision), EngineNotes()).empty());
  }
}

TEST_CASE("properties that describe no device are refused in one line") {
  if (cannot_plan()) return;
  const std::string text = error_of<DeviceError>([] { CardPlanner planner("{}"); });
  CHECK(!text.empty());
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("no card is planned for that is newer than a visible device, because cuDNN would crash") {
  constexpr int kNone = 0, kHopper = 900, kBlackwell = 1000;
  for (const std::string card : kCards) {
    INFO(card);
    const std::string properties = properties_of(card);
    CHECK(card_refusal(properties, kNone).empty());
    CHECK(card_refusal(properties, kBlackwell).empty());
    const std::string reason = card_refusal(properties, kHopper);
    CHECK(reason.empty() == (card != "b200"));
    if (card == "b200") CHECK(reason.find("capability 10.0 where a device of 9.0 is visible") != std::string::npos);
  }
  const std::string ada = card_refusal(properties_of("rtx4090"), 860);
  CHECK(ada.find("capability 8.9 where a device of 8.6 is visible") != std::string::npos);
  CHECK(card_refusal("{}", kHopper).empty());
}

// A convolution without an engine is computed by im2col, which is slow. So every convolution should have an engine.
TEST_CASE("every convolution of every model has an engine on every card") {
  if (cannot_plan()) return;
  const std::string card = GENERATE(from_range(kCards));
  if (left_out(card)) return;
  const CardPlanner planner(properties_of(card));
  const std::set<ConvShape> shapes = zoo_shapes();
  REQUIRE(shapes.size() > 40);
  for (const Precision& precision : kPrecisions) {
    for (const ConvKind kind : kKinds) {
      for (const ConvShape& shape : shapes) {
        INFO(card << ", " << precision.name << ": " << describe(with(shape, kind, precision)));
        const std::vector<ConvProposal> proposals = planner.proposals(with(shape, kind, precision));
        CHECK(take(proposals, kSmallWorkspace));
        for (const ConvProposal& proposal : proposals) {
          CHECK(proposal.workspace >= 0);
          if (!proposal.refusal.empty()) continue;
          CHECK_FALSE(proposal.notes.has(EngineNote::nondeterministic));
          CHECK_FALSE(
              (precision.type == ElementType::f32 && !precision.tf32 && proposal.notes.has(EngineNote::tensor_core)));
        }
      }
    }
  }
}

TEST_CASE("ResNet-50 takes one of the first five engines that its precision permits, on every card") {
  if (cannot_plan()) return;
  const std::string card = GENERATE(from_range(kCards));
  if (left_out(card)) return;
  const CardPlanner planner(properties_of(card));
  const std::set<ConvShape> shapes = resnet50_shapes();
  REQUIRE(shapes.size() == 23);
  for (const Precision& precision : kPrecisions) {
    for (const ConvKind kind : kKinds) {
      INFO(card << ", " << precision.name << ", kind " << static_cast<int>(kind));
      Places in_256_mib, large;
      for (const ConvShape& shape : shapes) {
        const std::vector<ConvProposal> proposals = planner.proposals(with(shape, kind, precision));
        in_256_mib.add(take(proposals, 256 * kMiB));
        large.add(take(proposals, kLargeWorkspace));
      }
      CHECK(in_256_mib.none == 0);
      CHECK(in_256_mib.mean() < 5);
      CHECK(large.none == 0);
      CHECK(large.worst < 5);
    }
  }
}

// Prints a table for docs/cuda.md, which shows the places of the engines that ResNet-50 uses in cuDNN's lists of
// proposals.
TEST_CASE("table of the places that ResNet-50 takes", "[.][table]") {
  if (cannot_plan()) return;
  constexpr std::array kLimits = {kSmallWorkspace, 256 * kMiB, kLargeWorkspace};
  std::printf("| Card | Precision | 32 MiB | 256 MiB | 1 GiB |\n| --- | --- | --- | --- | --- |\n");
  for (const std::string card : kCards) {
    if (left_out(card)) continue;
    const CardPlanner planner(properties_of(card));
    for (const Precision& precision : kPrecisions) {
      std::array<std::string, kLimits.size()> cells;
      for (const ConvKind kind : kKinds) {
        std::array<Places, kLimits.size()> places;
        for (const ConvShape& shape : resnet50_shapes()) {
          const std::vector<ConvProposal> proposals = planner.proposals(with(shape, kind, precision));
          for (std::size_t i = 0; i < kLimits.size(); ++i) places[i].add(take(proposals, kLimits[i]));
        }
        for (std::size_t i = 0; i < kLimits.size(); ++i)
          cells[i] += fmt::format("{}{:.1f}", cells[i].empty() ? "" : ", ", places[i].mean());
      }
      std::printf("%s\n", fmt::format("| {} | {} | {} |", card, precision.name, fmt::join(cells, " | ")).c_str());
    }
  }
}

}  // namespace cairn::tests::conv_planning_test
