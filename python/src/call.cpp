#include "cairn/python/src/call.h"

#include <chrono>
#include <utility>

namespace cairn::python {

void Call::tell(std::int64_t first, std::int64_t second, double seconds) {
  const std::lock_guard lock(mutex_);
  latest_ = {first, second, seconds};
  wake_.notify_all();
}

std::function<void(const solvers::Progress&)> Call::progress() {
  if (!tells()) return {};
  return [this](const solvers::Progress& progress) { tell(progress.peak, progress.cost, progress.seconds); };
}

void Call::keep(nb::python_error&& error) {
  stop_.store(true);
  if (error.matches(PyExc_KeyboardInterrupt)) {
    interrupted_ = true;
  } else if (!raised_) {
    raised_.emplace(std::move(error));
  }
}

void Call::look_around() {
  std::optional<Told> told;
  {
    const std::lock_guard lock(mutex_);
    told = std::exchange(latest_, std::nullopt);
  }
  try {
    if (told && !stop_.load()) {
      const nb::object answer = callback_(told->first, told->second, told->seconds);
      if (answer.is(nb::handle(Py_False))) stop_.store(true);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  } catch (nb::python_error& error) {
    keep(std::move(error));
  }
}

void Call::ask_python(const std::function<void()>& question) {
  std::unique_lock lock(mutex_);
  question_ = &question;
  wake_.notify_all();
  wake_.wait(lock, [this] { return question_ == nullptr; });
  if (refusal_) std::rethrow_exception(std::exchange(refusal_, nullptr));
}

void Call::answer() {
  std::exception_ptr refusal;
  try {
    (*question_)();
  } catch (...) {
    refusal = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  question_ = nullptr;
  refusal_ = std::move(refusal);
  wake_.notify_all();
}

void Call::run(const std::function<void()>& work) {
  constexpr auto kEvery = std::chrono::milliseconds(50);
  std::exception_ptr failure;
  done_ = false;
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    wake_.notify_all();
  });
  {
    const nb::gil_scoped_release release;
    for (bool done = false; !done;) {
      bool asked = false;
      {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kEvery, [this] { return done_ || latest_.has_value() || question_ != nullptr; });
        done = done_;
        asked = question_ != nullptr;
      }
      const nb::gil_scoped_acquire acquire;
      look_around();
      if (asked) answer();
    }
    worker.join();
  }
  if (failure) std::rethrow_exception(failure);
}

void Call::raise_pending() {
  if (raised_) throw std::move(*raised_);
}

}  // namespace cairn::python
