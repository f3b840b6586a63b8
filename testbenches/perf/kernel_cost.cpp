// SPDX-License-Identifier: Apache-2.0
#include "testbenches/perf/kernel_cost.h"

#include <ctime>
#include <memory>
#include <systemc>
#include <vector>

namespace rnic::perf {

namespace {

/// A method that notifies itself with a period of its own, so that no two of them fall on one instant for long.
class ticker : public sc_core::sc_module {
 public:
#if !defined(IEEE_1666_SYSTEMC) || IEEE_1666_SYSTEMC < 202301L
  SC_HAS_PROCESS(ticker);
#endif
  ticker(const sc_core::sc_module_name& name, unsigned period_ps, unsigned& left)
      : sc_core::sc_module(name), period_(sc_core::sc_time::from_value(period_ps)), left_(left) {
    SC_METHOD(run);
    sensitive << event_;
  }

 private:
  void run() {
    if (left_ == 0) return;
    --left_;
    event_.notify(period_);
  }
  sc_core::sc_event event_;
  sc_core::sc_time period_;
  unsigned& left_;
};

}  // namespace

double cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double measure_activation_ns(unsigned pending, unsigned activations) {
  unsigned left = activations;
  std::vector<std::unique_ptr<ticker>> tickers;
  for (unsigned i = 0; i < pending; ++i)
    tickers.push_back(std::make_unique<ticker>(sc_core::sc_gen_unique_name("ticker"), 10'000 + 137 * i, left));
  const double start = cpu_ns();
  sc_core::sc_start();
  return (cpu_ns() - start) / static_cast<double>(activations);
}

}  // namespace rnic::perf
