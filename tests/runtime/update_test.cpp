// Compares the kernels that update weights, on the host and on a simulated device, with the formulas in core/op.h.
#include <cmath>
#include <limits>

#include "cairn/core/support/bf16.h"
#include "cairn/runtime/support/element.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::update_test {
namespace {

/// A weight w and its optimizer state m and v. sgd does not use v.
template <class T>
struct State {
  std::vector<T> w, m, v;
};

/// The scalars of one training step.
struct Step {
  double rate = 0.1;
  std::int64_t number = 1;     ///< number of the step, from 1
  std::optional<double> norm;  ///< sum of squares of all gradients, or nullopt if gradients are not clipped
};

State<double> random_state(std::size_t count, std::mt19937& random) {
  const Shape shape{static_cast<std::int64_t>(count)};
  return {random_tensor(shape, random).values, Values(count, 0), Values(count, 0)};
}

/// Performs one update element by element, by the formulas in the comments of core::OpKind.
void update_by_definition(const Op& op, const Values& gradient, const Step& step, State<double>& x) {
  const OpAttrs& a = op.attrs;
  const double clip = step.norm ? std::min(1.0, a.limit / (std::sqrt(*step.norm) + 1e-6)) : 1.0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = clip * gradient[i];
    double &w = x.w[i], &m = x.m[i], &v = x.v[i];
    if (op.kind == OpKind::sgd) {
      m = a.beta1 * m + g + a.decay * w;
      w -= step.rate * m;
      continue;
    }
    w -= step.rate * a.decay * w;
    m = a.beta1 * m + (1 - a.beta1) * g;
    v = a.beta2 * v + (1 - a.beta2) * g * g;
    const auto t = static_cast<double>(step.number);
    const double m_hat = m / (1 - std::pow(a.beta1, t)), v_hat = v / (1 - std::pow(a.beta2, t));
    w -= step.rate * m_hat / (std::sqrt(v_hat) + a.eps);
  }
}

std::vector<double> numbers_of(const Op& op, const Step& step) {
  std::vector<double> numbers = {step.rate};
  if (op.kind == OpKind::adamw) numbers.push_back(static_cast<double>(step.number));
  if (step.norm) numbers.push_back(*step.norm);
  return numbers;
}

/// Performs one update by the host's kernel, and checks that the op's output is the new weight. If `in_place` is true,
/// the output is in the memory of the weight.
template <class T>
void update_on_host(const Op& op, const Values& gradient, const Step& step, State<T>& x, bool in_place) {
  const std::vector<T> g(gradient.begin(), gradient.end());
  const std::vector<double> numbers = numbers_of(op, step);
  const std::vector<T> ones(numbers.begin(), numbers.end());
  std::vector<runtime::TensorRef<T>> args = {{g.data(), op.shape}, {x.w.data(), op.shape}, {x.m.data(), op.shape}};
  if (op.kind == OpKind::adamw) args.push_back({x.v.data(), op.shape});
  const Shape one{1};
  for (const T& number : ones) args.push_back({&number, one});
  std::vector<T> out(g.size(), std::numeric_limits<T>::quiet_NaN());
  runtime::run_op<T>(op, args, in_place ? x.w.data() : out.data(), nullptr);
  if (!in_place) CHECK(out == x.w);
}

template <class T>
void check_state(const State<T>& actual, const State<double>& expected, double tolerance) {
  check_close(Values(actual.w.begin(), actual.w.end()), expected.w, tolerance);
  check_close(Values(actual.m.begin(), actual.m.end()), expected.m, tolerance);
  check_close(Values(actual.v.begin(), actual.v.end()), expected.v, tolerance);
}

/// Returns an update op with random attributes. In some ops, a beta or the decay is 0.
Op random_update(std::size_t count, std::mt19937& random) {
  const auto pick = [&](std::initializer_list<double> from) { return from.begin()[random() % from.size()]; };
  const OpKind kind = random() % 2 == 0 ? OpKind::sgd : OpKind::adamw;
  return make_op(kind, {static_cast<std::int64_t>(count)},
                 {.eps = pick({1e-8, 1e-3}),
                  .beta1 = pick({0, 0.5, 0.9}),
                  .beta2 = pick({0, 0.9, 0.999}),
                  .decay = pick({0, 0.01, 0.1}),
                  .limit = pick({0.5, 20})});
}

/// Returns the scalars of step t for this gradient. `clips` says whether gradients are clipped.
Step random_step(const Values& gradient, std::int64_t t, bool clips, std::mt19937& random) {
  Step step{.rate = 0.001 * static_cast<double>(1 + random() % 100), .number = t, .norm = {}};
  if (!clips) return step;
  step.norm = 0;
  for (const double g : gradient) *step.norm += g * g;
  return step;
}

/// Returns the elements of a tensor that the device stores as f32.
std::vector<float> floats_at(DeviceBytes& memory) {
  const Values values = stored_values(memory.bytes(), ElementType::f32);
  return {values.begin(), values.end()};
}

/// Performs one update by the device's kernel. The gradient and the op's output have the type `storage`. Returns the
/// elements of the output.
Values update_on_device(Threads threads, Op op, ElementType storage, const Values& gradient, const Step& step,
                        State<float>& x) {
  op.type = storage;
  std::vector<Tensor> args = {{op.shape, gradient, {}}};
  const auto add = [&](const Shape& shape, const auto& values) {
    args.push_back({shape, Values(values.begin(), values.end()), {}});
  };
  add(op.shape, x.w);
  add(op.shape, x.m);
  if (op.kind == OpKind::adamw) add(op.shape, x.v);
  for (const double number : numbers_of(op, step)) add({1}, Values{number});
  core::check_op(op, shapes_of(args));
  std::vector<DeviceBytes> memory;
  std::vector<runtime::device::Tensor> tensors;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ElementType type = core::arg_type(op.kind, i, storage);
    memory.emplace_back(core::element_bytes(type) * core::element_count(args[i].shape));
    write_values(memory[i].data(), type, args[i]);
  }
  for (std::size_t i = 0; i < args.size(); ++i)
    tensors.push_back({memory[i].data(), core::arg_type(op.kind, i, storage), args[i].shape});
  DeviceBytes copy(core::output_bytes(op, 0));
  DeviceBytes& out = storage == ElementType::f32 ? memory[1] : copy;
  HostLibrary library;
  FiberMachine machine(threads);
  runtime::device::Call call{op, tensors, out.data(), library, false, {out.data(), 0}};
  runtime::device::run_op(machine, call);
  for (DeviceBytes& bytes : memory) CHECK(bytes.margin_is_whole());
  CHECK(out.margin_is_whole());
  x.w = floats_at(memory[1]);
  x.m = floats_at(memory[2]);
  if (op.kind == OpKind::adamw) x.v = floats_at(memory[3]);
  return stored_values(out.bytes(), storage);
}

}  // namespace

TEST_CASE("many steps of sgd and adamw on the host follow their definitions") {
  std::mt19937 random(1);
  for (int round = 0; round < 80; ++round) {
    const std::size_t count = round < 4 ? static_cast<std::size_t>(round) + 1 : 1 + random() % 5000;
    const Op op = random_update(count, random);
    const bool clips = random() % 2 == 0;
    INFO(core::to_string(op.kind) << " of " << count << " elements, betas " << op.attrs.beta1 << " and "
                                  << op.attrs.beta2 << ", decay " << op.attrs.decay << ", clips " << clips);
    State<double> expected = random_state(count, random);
    State<double> exact = expected;
    State<float> single{{exact.w.begin(), exact.w.end()}, std::vector<float>(count, 0), std::vector<float>(count, 0)};
    for (std::int64_t t = 1; t <= 15; ++t) {
      const Values gradient = random_tensor(op.shape, random).values;
      const Step step = random_step(gradient, t, clips, random);
      update_by_definition(op, gradient, step, expected);
      update_on_host(op, gradient, step, exact, t % 2 == 0);
      update_on_host(op, gradient, step, single, t % 2 == 1);
    }
    check_state(exact, expected, 1e-11);
    check_state(single, expected, 1e-4);
  }
}

TEST_CASE("the sum of squares, with and without another sum") {
  std::mt19937 random(2);
  for (const std::int64_t count : {1, 2, 7, 64, 1000, 4999}) {
    const Tensor x = random_tensor({count}, random);
    double sum = 0;
    for (const double value : x.values) sum += value * value;
    const Op op = make_op(OpKind::sum_of_squares, {1});
    check_op_equals(op, {x}, {sum});
    check_op_equals(op, {x, Tensor{{1}, {123.5}, {}}}, {sum + 123.5});
  }
}

TEST_CASE("clipping: small gradients keep every bit, large ones get the norm `limit`, NaN shows in the weight") {
  const Op op = make_op(OpKind::sgd, {3}, {.beta1 = 0, .limit = 2});
  const State<double> begin{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
  const auto step = [&](const Values& gradient, std::optional<double> norm) {
    State<double> x = begin;
    update_on_host(op, gradient, {.rate = 1, .norm = norm}, x, true);
    return x.w;
  };
  const Values small = {0.5, -1, 1};
  CHECK(step(small, 2.25) == step(small, {}));
  const Values clipped = step({30, 0, -40}, 2500);
  check_close({std::hypot(clipped[0], clipped[2])}, {2}, 1e-6);
  CHECK(std::isnan(step(small, std::nan(""))[0]) == false);
  CHECK(std::isnan(step({std::nan(""), 0, 0}, std::nan(""))[0]));
}

TEST_CASE("device: updates agree with the host, over several steps, for fp32 and bf16 gradients", "[device]") {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const std::size_t count = round < 12 ? static_cast<std::size_t>(round) + 1 : 1 + random() % 5000;
    const Op op = random_update(count, random);
    const bool clips = random() % 2 == 0;
    const ElementType storage = random() % 2 == 0 ? ElementType::f32 : ElementType::bf16;
    INFO(core::to_string(op.kind) << " of " << count << " elements, gradient " << core::to_string(storage));
    State<double> expected = random_state(count, random);
    State<float> one{
        {expected.w.begin(), expected.w.end()}, std::vector<float>(count, 0), std::vector<float>(count, 0)};
    expected.w.assign(one.w.begin(), one.w.end());
    State<float> host = one, forward = one, reverse = one;
    for (std::int64_t t = 1; t <= 4; ++t) {
      const Values gradient = stored(op, {random_tensor(op.shape, random)}, storage)[0].values;
      const Step step = random_step(gradient, t, clips, random);
      update_by_definition(op, gradient, step, expected);
      update_on_host(op, gradient, step, host, true);
      const Values out = update_on_device(Threads::one, op, storage, gradient, step, one);
      CHECK(update_on_device(Threads::forward, op, storage, gradient, step, forward) == out);
      CHECK(update_on_device(Threads::reverse, op, storage, gradient, step, reverse) == out);
      // If the output is bf16, it must be the fp32 weight, rounded to bf16.
      for (std::size_t i = 0; i < count; ++i) {
        const float wanted = storage == ElementType::f32 ? one.w[i] : static_cast<float>(core::Bf16(one.w[i]));
        if (out[i] != static_cast<double>(wanted)) FAIL_CHECK("element " << i << " is " << out[i]);
      }
    }
    check_state(one, expected, 5e-5);
    check_state(one, {{host.w.begin(), host.w.end()}, {host.m.begin(), host.m.end()}, {host.v.begin(), host.v.end()}},
                1e-6);
    for (const State<float>* other : {&forward, &reverse}) {
      CHECK(other->w == one.w);
      CHECK(other->m == one.m);
      CHECK(other->v == one.v);
    }
  }
}

TEST_CASE("device: a gradient that is too small for bf16 weights moves their fp32 copy, and so the weights",
          "[device]") {
  const std::size_t count = 11;
  const Op op = make_op(OpKind::sgd, {static_cast<std::int64_t>(count)}, {.beta1 = 0});
  State<float> x{std::vector<float>(count, 1), std::vector<float>(count, 0), {}};
  Values out;
  // One update of 1e-4 is less than half of the distance between bf16 numbers just below 1.
  for (std::int64_t t = 1; t <= 100; ++t)
    out = update_on_device(Threads::forward, op, ElementType::bf16, Values(count, 1), {.rate = 1e-4, .number = t}, x);
  check_close(Values(x.w.begin(), x.w.end()), Values(count, 0.99), 1e-5);
  CHECK(out == Values(count, static_cast<double>(static_cast<float>(core::Bf16(0.99F)))));
}

TEST_CASE("device: the sum of squares agrees with the host", "[device]") {
  std::mt19937 random(4);
  for (const std::int64_t count : {1, 3, 8, 37, 1024, 4099, 30001}) {
    const Tensor x = random_tensor({count}, random);
    const Op op = make_op(OpKind::sum_of_squares, {1});
    check_device_op(op, {x}, 1e-5);
    check_device_op(op, {x, Tensor{{1}, {77.25}, {}}}, 1e-5);
  }
}

}  // namespace cairn::tests::update_test
