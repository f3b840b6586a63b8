// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/memory_wave.h"

#include <algorithm>
#include <string>

#include "testbenches/bench/wave/wave_names.h"

namespace rnic::bench {

namespace {

constexpr std::array<const char*, 3> names_of_accesses{"reads", "writes", "updates"};
constexpr std::array<const char*, 3> names_of_ports{"read_ports", "write_ports", "read_write_ports"};

bool has_kind(const sim::memory_ports& m, sim::access_kind kind) {
  return std::any_of(m.users().begin(), m.users().end(), [kind](const auto& u) { return u.kind == kind; });
}

}  // namespace

memory_wave::memory_wave(wave_file& to, const sim::memory_ports& of) : memory_(of), users_(of.users().size()) {
  declare_ports(to);
  for (std::size_t k = 0; k < kinds; ++k)
    if (has_kind(of, static_cast<sim::access_kind>(k)))
      made_[k] = to.add(of.name() + "." + names_of_accesses[k], bits_for(of.ports()));
  for (std::size_t i = 0; i < users_.size(); ++i) {
    const std::string name = of.name() + "." + name_in_wave(of.users()[i].name);
    users_[i].access = to.add(name + ".access", bits_for(of.has_own_ports() ? 1 : of.ports()));
    if (!of.has_own_ports()) users_[i].wait = to.add(name + ".wait", 1);
  }
}

/// A port that users share is as good as what the most demanding of them asks for.
void memory_wave::declare_ports(wave_file& to) const {
  std::array<std::uint64_t, kinds> ports{};
  if (memory_.has_own_ports()) {
    for (const auto& u : memory_.users()) ++ports[static_cast<std::size_t>(u.kind)];
  } else {
    std::size_t kind = static_cast<std::size_t>(memory_.users().front().kind);
    for (const auto& u : memory_.users())
      if (u.kind != memory_.users().front().kind) kind = static_cast<std::size_t>(sim::access_kind::update);
    ports[kind] = memory_.ports();
  }
  to.add_constant(memory_.name() + ".ports", memory_.ports());
  for (std::size_t k = 0; k < kinds; ++k)
    if (ports[k] != 0) to.add_constant(memory_.name() + "." + names_of_ports[k], ports[k]);
  to.add_constant(memory_.name() + ".shared", memory_.has_own_ports() ? 0 : 1);
}

void memory_wave::begin() {
  for (std::size_t i = 0; i < users_.size(); ++i) {
    users_[i].accesses = memory_.users()[i].accesses;
    users_[i].waits = memory_.users()[i].waits;
  }
}

void memory_wave::look() {
  std::array<std::uint64_t, kinds> made{};
  const sim::cycle_t now = clock_->clock().now();
  for (std::size_t i = 0; i < users_.size(); ++i) {
    user& u = users_[i];
    const auto& is = memory_.users()[i];
    if (const std::uint64_t n = is.accesses - u.accesses; n != 0) {
      clock_->pulse(now, u.access, n);
      made[static_cast<std::size_t>(is.kind)] += n;
      u.accesses = is.accesses;
    }
    if (is.waits == u.waits) continue;
    clock_->pulse(now, u.wait, 1);
    u.waits = is.waits;
  }
  for (std::size_t k = 0; k < kinds; ++k)
    if (made[k] != 0) clock_->pulse(now, made_[k], made[k]);
}

}  // namespace rnic::bench
