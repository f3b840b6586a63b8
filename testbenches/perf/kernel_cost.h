// SPDX-License-Identifier: Apache-2.0
// R: what one activation of a SystemC method costs on this machine at this moment.
#pragma once

namespace rnic::perf {

/// CPU nanoseconds of one SC_METHOD activation by a timed notification with `pending` such methods pending. To be
/// called in a process of its own: it builds modules and runs the kernel.
double measure_activation_ns(unsigned pending = 16, unsigned activations = 2'000'000);

/// CPU time of this process in nanoseconds.
double cpu_ns();

}  // namespace rnic::perf
