// SPDX-License-Identifier: Apache-2.0
// Two hosts of a network that are measured.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/pair_if.h"

namespace rnic::hosts {

class meeting;

/// Their programs are run by those of the network. Frames of other hosts count in lines().
class network_pair final : public pair_if {
 public:
  /// `of`: with network_config::sides, outlives it. `ports`: of each side those that are used, which have a cable, and
  /// of which the first has the first's of the other side as its peer.
  network_pair(network& of, const std::array<std::vector<unsigned>, 2>& ports);
  ~network_pair() override;

  node& host(unsigned side) override { return network_.host(number_of(one_of("host", side, 2))); }
  endpoint& end(unsigned side) override { return ends_[one_of("end", side, 2)].front(); }
  const node_config& built_from(unsigned side) const override { return network_.built_from(number_of(side)); }
  unsigned number(unsigned side) const override { return number_of(side) + 1; }
  std::string neighbour(unsigned side) const override;
  std::vector<line> lines() const override;
  void meet() override;
  sim::timebase& base() override { return network_.base(); }
  sim::span_recorder& spans() override { return network_.spans(); }
  sim::statistics& statistics() override { return network_.statistics(); }
  bool under_way() const override { return network_.under_way(); }

 private:
  unsigned number_of(unsigned side) const { return (*network_.config().sides)[side]; }
  struct place {
    fabric::plug_place at;
    line carried;
  };
  void add_way(unsigned from, std::size_t nth, std::vector<place>& to) const;

  network& network_;
  std::array<std::vector<unsigned>, 2> ports_;
  std::unique_ptr<meeting> meeting_;
  std::array<std::vector<endpoint>, 2> ends_;
};

}  // namespace rnic::hosts
