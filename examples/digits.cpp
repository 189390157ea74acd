// Trains a small convolutional network on handwritten digits. The schedule of a training step gets half of the memory
// that the step takes if its nodes run in the order in which they were added. The program fails unless the network
// recognises 97% of the test digits.

#include <cmath>
#include <cstdio>
#include <string>

#include "cairn/models/autodiff.h"
#include "cairn/models/builder.h"
#include "cairn/pipeline/train.h"

using namespace cairn;

/// Adds a convolution with a 3 x 3 window, a batch norm and a rectifier.
models::Tensor block(models::ModelBuilder& model, const std::string& name, const models::Tensor& x,
                     std::int64_t channels, std::int64_t stride) {
  const double scale = std::sqrt(2.0 / static_cast<double>(9 * x.channels()));
  const auto w = model.weight(name + ".weight", {channels, 3, 3, x.channels()}, core::Resident::Init::normal, scale);
  const auto norm = model.weight(name + ".norm", {2, channels}, core::Resident::Init::norm_params);
  const auto y = model.conv2d(name + ".conv", x, w, std::nullopt, stride, 1);
  return model.relu(name + ".relu", model.batchnorm(name + ".norm", y, norm));
}

/// Returns the training step of a network for images of 8 x 8 pixels: forward, backward, and an update of every weight.
core::Graph digits_network(std::int64_t batch) {
  models::BuildOptions options;
  options.optimizer = "adamw";
  options.update.decay = 0.1;
  models::ModelBuilder model("digits-network", options);
  models::Tensor x = model.data("images", {batch, 8, 8, 1});
  const models::Tensor labels = model.indices("labels", {batch}, 10);
  for (int i = 0; i < 8; ++i) x = block(model, "block" + std::to_string(i), x, i < 6 ? 32 : 64, i == 6 ? 2 : 1);
  const auto w = model.weight("last.weight", {4 * 4 * 64, 10}, core::Resident::Init::normal, 0.02);
  const auto bias = model.weight("last.bias", {10}, core::Resident::Init::zeros);
  const models::Tensor logits = model.project("last", x, w, {.bias = bias, .shape = {batch, 10}});
  return models::training_step(model, model.cross_entropy("loss", logits, labels));
}

int main() {
  const auto backend = pipeline::open_backend("auto");
  const pipeline::PreparedGraph graph = pipeline::prepare(*backend, digits_network(64));
  const fit::Problem problem(graph.prepared, "50%");
  const fit::Decision decision = fit::decide(problem, "auto", {.search = {.limit = {.seconds = 5}}});

  pipeline::TrainOptions options;
  options.steps = 400;
  options.rate = {.base = 0.005, .warmup = 20, .cosine = options.steps};
  options.progress = [](const pipeline::TrainProgress& progress) {
    if (progress.step % 100 == 0 && progress.test == nullptr)
      std::printf("step %3lld: loss %.4f\n", static_cast<long long>(progress.step), progress.loss);
  };
  const models::Dataset data = models::load_dataset("digits");
  const pipeline::TrainResult result = pipeline::train(*backend, graph, decision, data, options);

  const double accuracy = result.tests.back().accuracy.value();
  std::printf("%.2f%% of the test digits recognised; %lld of %lld bytes, %lld steps run again; %.1f s on %s\n",
              100 * accuracy, static_cast<long long>(result.measured_peak_bytes.value_or(0)),
              static_cast<long long>(problem.baseline.peak), static_cast<long long>(decision.evaluation.recomputed),
              result.seconds, backend->device().c_str());
  return accuracy >= 0.97 && result.measured_peak_bytes <= *problem.budget ? 0 : 1;
}
