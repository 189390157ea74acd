#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/kernels/softmax.h"
#include "cairn/runtime/device/reductions.h"

namespace cairn::runtime::device {

/// Computes the cross entropy of each row of logits: -log(softmax) of the element at the row's label.
template <class T>
struct CrossEntropyRow {
  static constexpr bool kReadsTwice = false;

  const std::int32_t* labels;
  float* losses;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t row, const Rows<T, 1>& logits, std::int64_t cols, T*) const {
    float chosen = 0;
    if (team.rank() == 0) chosen = to_float(logits.row[0][labels[row]]);
    const Exponentials all = exponentials_of_row(team, logits, cols);
    if (team.rank() == 0) losses[row] = std::log(all.sum) + (all.largest - chosen);
  }
};

template <class T>
struct CrossEntropyGradRow {
  static constexpr bool kReadsTwice = true;

  const std::int32_t* labels;
  float inverse_rows;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t row, const Source& logits, std::int64_t cols, T* out) const {
    const std::int64_t label = labels[row];
    const Exponentials all = exponentials_of_row(team, logits, cols);
    const float factor = inverse_rows / all.sum;
    map_packs<1>(team, logits.again(), out, cols,
                 [&]<int W>(std::int64_t column, const float(&values)[1][W], float(&results)[W]) {
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) results[i] = all.of(values[0][i]) * factor;
                   if (label < column || label >= column + W) return;
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) {
                     if (column + i == label) results[i] -= inverse_rows;
                   }
                 });
  }
};

struct SquaredDifference {
  CAIRN_HD float operator()(const float (&x)[2]) const { return (x[0] - x[1]) * (x[0] - x[1]); }
};
struct Itself {
  CAIRN_HD float operator()(const float (&x)[1]) const { return x[0]; }
};
struct Square {
  CAIRN_HD float operator()(const float (&x)[1]) const { return x[0] * x[0]; }
};

/// Sets out[t] = factor * the sum of term(x) over the elements that team t handles, where x holds the same element of
/// each of the N tensors.
template <class T, int N, class Term>
struct SumElements {
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 4;

  Term term;
  const T* in[N];
  float* out;
  std::int64_t count;
  std::int64_t packs;  ///< number of packs that a team handles
  float factor;
  const float* before = nullptr;  ///< address of a number that is added to out[0], or nullptr

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    float sum = 0;
    visit_elements<kUnroll>(team, in, count, packs, index, [&]<int W>(std::int64_t, const float(&values)[W][N]) {
      float terms[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) terms[i] = term(values[i]);
      sum += sum_values(terms);
    });
    const float total = team.reduce(sum, core::Sum());
    if (team.rank() == 0) out[index] = total * factor + (before == nullptr ? 0.0F : *before);
  }
};

/// Sets *out = factor * the sum of term(x) over all `count` elements, where x holds the same element of each of the N
/// tensors. Adds *before unless `before` is nullptr. In a first launch, every team sums up a part of the elements. A
/// second launch, of one team, adds the sums of the teams.
template <class T, int N, class Machine, class Term>
void sum_elements(Launcher<Machine>& launcher, Scratch& scratch, const Term& term, const T* const (&in)[N], float* out,
                  std::int64_t count, double factor, const float* before = nullptr) {
  constexpr std::int64_t kTeams = 2048;
  constexpr std::int64_t kPacks = SumElements<T, N, Term>::kThreads * SumElements<T, N, Term>::kUnroll;
  const std::int64_t packs = std::max<std::int64_t>(1, count / Pack<T>::kWidth);
  const std::int64_t of_team = std::max(kPacks, blocks_of(packs, kTeams));
  const std::int64_t teams = blocks_of(packs, of_team);
  float* partials = scratch.take<float>(teams);
  SumElements<T, N, Term> parts{term, {}, partials, count, of_team, 1.0F};
  for (int n = 0; n < N; ++n) parts.in[n] = in[n];
  launcher.launch(parts, teams);
  launcher.launch(SumElements<float, 1, Itself>{{}, {partials}, out, teams, teams, static_cast<float>(factor), before},
                  1);
}

template <class Machine>
void loss(Launcher<Machine>& launcher, Call& call) {
  using core::OpKind;
  const std::int64_t rows = row_count(call.shape(0)), cols = last_extent(call.shape(0));
  const double inverse_rows = 1 / static_cast<double>(rows);
  with_storage(call.args[0].type, [&]<class T>(TypeTag<T>) {
    const T* first = call.arg<T>(0);
    switch (call.op.kind) {
      case OpKind::cross_entropy: {
        auto* losses = call.scratch.take<float>(rows);
        launch_rows(launcher, CrossEntropyRow<T>{call.arg<std::int32_t>(1), losses}, {first}, static_cast<T*>(nullptr),
                    rows, cols);
        return sum_elements<float, 1>(launcher, call.scratch, Itself{}, {losses}, call.output<float>(), rows,
                                      inverse_rows);
      }
      case OpKind::cross_entropy_grad:
        return launch_rows(launcher,
                           CrossEntropyGradRow<T>{call.arg<std::int32_t>(1), static_cast<float>(inverse_rows)}, {first},
                           call.output<T>(), rows, cols);
      case OpKind::mse: {
        const std::int64_t count = elements(call.shape(0));
        return sum_elements<T, 2>(launcher, call.scratch, SquaredDifference{}, {first, call.arg<T>(1)},
                                  call.output<float>(), count, 1 / static_cast<double>(count));
      }
      case OpKind::sum_of_squares:
        return sum_elements<T, 1>(launcher, call.scratch, Square{}, {first}, call.output<float>(),
                                  elements(call.shape(0)), 1, call.args.size() > 1 ? call.arg<float>(1) : nullptr);
      default:
        return;
    }
  });
}

}  // namespace cairn::runtime::device
