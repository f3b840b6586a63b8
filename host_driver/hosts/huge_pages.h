// SPDX-License-Identifier: Apache-2.0
// Memory of the simulator itself, for networks.
#pragma once

namespace rnic::hosts {

/// Asks for pages of 2 MiB for what a network of so many hosts will take from the heap: its state is more than a
/// processor has translations for, so that a step of another host begins with misses. For programs, before they build
/// the network; results do not depend on it. Nothing happens where the C library or the kernel has no such pages.
void use_huge_pages(unsigned hosts);

}  // namespace rnic::hosts
