#include "cairn/pipeline/internal/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/tensors.h"
#include "cairn/core/support/random.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::pipeline {
namespace {

using core::Resident;
using ParsedJson = nlohmann::json;

constexpr const char* kFormat = "cairn.checkpoint";
constexpr const char* kVersion = "1";
constexpr const char* kHash = "hash";            ///< name of the text with hash_of()
constexpr const char* kLosses = "cairn.losses";  ///< name of the tensor of losses

/// Returns the names of the resident tensors that training changes, in the order of the graph. These tensors are read
/// and set as fp32.
std::vector<std::string> trained_tensors(const core::Graph& graph) {
  const std::vector<bool> executed = runtime::executed_residents(graph);
  const auto residents = graph.residents();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < residents.size(); ++i) {
    const Resident& resident = residents[i];
    // The fp32 copy of a bf16 weight is read and set by the weight's name, so the copy's own name is left out.
    const bool trained = resident.role == Resident::Role::weight || resident.role == Resident::Role::optimizer;
    if (executed[i] && trained && resident.master_of < 0) names.push_back(resident.name);
  }
  return names;
}

core::Shape shape_of(const core::Graph& graph, const std::string& name) {
  return graph.residents()[static_cast<std::size_t>(runtime::find_resident(graph, name))].shape;
}

std::vector<float> read_floats(runtime::Executor& executor, const std::string& name) {
  std::vector<float> values(static_cast<std::size_t>(core::element_count(shape_of(executor.program().graph, name))));
  executor.get(name, values);
  return values;
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Returns a hash of the bytes, starting from `hash`.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof(word), bytes.size() - i));
    hash = core::Random(hash ^ word).next();
  }
  return hash;
}

/// Returns a hash of a file: of the names and bytes of its tensors, and of its texts except the one that stores this
/// hash. The hash does not depend on the order of the tensors, because programs that copy such a file may change the
/// order.
std::uint64_t hash_of(const core::TensorFile& file) {
  std::uint64_t sum = 0;
  for (const auto& [name, text] : file.texts) {
    if (name != kHash) sum += hash_of(std::as_bytes(std::span(text)), hash_of(std::as_bytes(std::span(name)), 1));
  }
  for (const core::NamedTensor& tensor : file.tensors)
    sum += hash_of(tensor.bytes, hash_of(std::as_bytes(std::span(tensor.name)), 0));
  return sum;
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string to_text(const std::vector<TestResult>& tests) {
  ParsedJson json = ParsedJson::array();
  for (const TestResult& test : tests)
    json.push_back({test.step, test.loss, test.accuracy ? ParsedJson(*test.accuracy) : ParsedJson(nullptr)});
  return json.dump();
}

std::vector<TestResult> tests_of(const std::string& text) {
  std::vector<TestResult> tests;
  for (const ParsedJson& row : ParsedJson::parse(text)) {
    TestResult test{row.at(0).get<std::int64_t>(), row.at(1).get<double>(), {}};
    if (!row.at(2).is_null()) test.accuracy = row.at(2).get<double>();
    tests.push_back(test);
  }
  return tests;
}

void check_settings(const std::string& path, const TrainSettings& wanted, const TrainSettings& found) {
  for (const auto& [name, value] : wanted) {
    if (name == kOpsSetting) continue;
    const auto it = found.find(name);
    const std::string other = it == found.end() ? "none" : it->second;
    if (other == value) continue;
    throw core::InputError(
        fmt::format("{}: the checkpoint is of a training with {} {}, but this one has {}", path, name, other, value));
  }
}

}  // namespace

void write_checkpoint(const std::string& path, const TrainState& state, const TrainSettings& settings,
                      runtime::Executor& executor) {
  const core::Graph& graph = executor.program().graph;
  core::TensorFile file;
  for (const std::string& name : trained_tensors(graph)) {
    const std::vector<float> values = read_floats(executor, name);
    if (!all_finite(values))
      throw core::InputError(fmt::format("{}: not written after step {}, because '{}' has elements that are not finite",
                                         path, state.step, name));
    file.tensors.push_back({name, core::ElementType::f32, shape_of(graph, name), bytes_of(values)});
  }
  file.tensors.push_back({kLosses, core::ElementType::f32, {std::ssize(state.losses)}, bytes_of(state.losses)});
  file.texts = {{"format", kFormat},
                {"version", kVersion},
                {"step", std::to_string(state.step)},
                {"tests", to_text(state.tests)},
                {"settings", ParsedJson(settings).dump()}};
  file.texts[kHash] = hex(hash_of(file));
  core::write_tensors(path, file);
}

TrainState read_checkpoint(const std::string& path, const TrainSettings& settings, runtime::Executor& executor) {
  const core::TensorFile file = core::read_tensors(path);
  const auto fail = [&](const std::string& what) { throw core::InputError(fmt::format("{}: {}", path, what)); };
  const auto text = [&](const char* name) {
    const auto it = file.texts.find(name);
    if (it == file.texts.end()) fail(fmt::format("is not a checkpoint of a training: it has no \"{}\"", name));
    return it->second;
  };
  if (text("format") != kFormat || text("version") != kVersion)
    fail(fmt::format("is a {} of version {}, not a {} of version {}", text("format"), text("version"), kFormat,
                     kVersion));
  if (text(kHash) != hex(hash_of(file))) fail("it is damaged: its hash is another one");
  TrainState state;
  TrainSettings found;
  try {
    found = ParsedJson::parse(text("settings")).get<TrainSettings>();
    check_settings(path, settings, found);
    state.step = std::stoll(text("step"));
    state.tests = tests_of(text("tests"));
  } catch (const ParsedJson::exception&) {
    fail("its texts are damaged");
  } catch (const std::logic_error&) {  // std::stoll throws it
    fail("its number of steps is not a number");
  }

  const core::Graph& graph = executor.program().graph;
  const std::vector<std::string> names = trained_tensors(graph);
  const auto find = [&](const std::string& name) {
    const auto it = std::ranges::find(file.tensors, name, &core::NamedTensor::name);
    return it == file.tensors.end() ? nullptr : &*it;
  };
  for (const std::string& name : names) {
    const core::NamedTensor* tensor = find(name);
    if (tensor == nullptr) fail(fmt::format("has no tensor '{}', which '{}' needs", name, graph.name()));
    if (tensor->shape != shape_of(graph, name) || tensor->type != core::ElementType::f32)
      fail(fmt::format("tensor '{}' has the shape [{}] of {}, but '{}' needs [{}] of f32", name,
                       fmt::join(tensor->shape, ", "), core::to_string(tensor->type), graph.name(),
                       fmt::join(shape_of(graph, name), ", ")));
  }
  if (found[kOpsSetting] != settings.at(kOpsSetting))
    fail(fmt::format("the checkpoint is of a training of '{}' with other options", graph.name()));
  const core::NamedTensor* losses = find(kLosses);
  if (losses == nullptr || std::ssize(losses->bytes) / std::int64_t{sizeof(float)} != state.step)
    fail("does not hold the loss of every step");
  state.losses.resize(static_cast<std::size_t>(state.step));
  if (state.step > 0) std::memcpy(state.losses.data(), losses->bytes.data(), losses->bytes.size());
  for (const std::string& name : names) {
    const core::NamedTensor& tensor = *find(name);
    executor.set(name, {tensor.bytes.data(), core::ElementType::f32, core::element_count(tensor.shape)});
  }
  return state;
}

std::string digest_of_weights(runtime::Executor& executor) {
  std::uint64_t hash = 0;
  for (const std::string& name : trained_tensors(executor.program().graph))
    hash = hash_of(bytes_of(read_floats(executor, name)), hash);
  return hex(hash);
}

}  // namespace cairn::pipeline
