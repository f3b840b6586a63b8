// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/network_pair.h"

#include <algorithm>
#include <utility>

#include "host_driver/hosts/meeting.h"

namespace rnic::hosts {

network_pair::network_pair(network& of, const std::array<std::vector<unsigned>, 2>& ports)
    : network_(of),
      ports_(ports),
      meeting_(std::make_unique<meeting>()),
      ends_{make_ends(of.host(number_of(0)), ports[0]), make_ends(of.host(number_of(1)), ports[1])} {}

network_pair::~network_pair() = default;

void network_pair::meet() { meeting_->arrive(2); }

std::string network_pair::neighbour(unsigned side) const {
  const fabric::topology& shape = network_.config().shape;
  return "switch " + shape.switches()[shape.beyond_host(number_of(side), ports_[side].front()).number];
}

/// The host's line, and of each switch on a way to the other host's port those on it, in the order of their distance.
void network_pair::add_way(unsigned from, std::size_t nth, std::vector<place>& to) const {
  const fabric::topology& shape = network_.config().shape;
  const unsigned host = number_of(from), peer = number_of(1 - from), port = ports_[from][nth];
  const auto& ways = network_.ways_to(peer, ports_[1 - from][nth]);
  const fabric::plug_place first = shape.beyond_host(host, port);
  const auto add = [&](const fabric::plug_place& at, const fabric::plug_place& behind) {
    const auto same = [&](const place& p) {
      return p.at.is_switch == at.is_switch && p.at.number == at.number && p.at.port == at.port;
    };
    if (std::any_of(to.begin(), to.end(), same)) return;
    std::string name = "wire, " + network_.name_of(at) + " to " + network_.name_of(behind);
    if (std::any_of(to.begin(), to.end(), [&](const place& p) { return p.carried.name == name; }))
      name += " at port " + std::to_string(at.port);
    to.push_back({at, {name, line_busy_ps(network_, at, behind)}});
  };
  add({false, host, port}, first);
  std::vector<unsigned> open{first.number};
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const unsigned out : ways[open[i]]) {
      const fabric::plug_place next = shape.beyond(open[i], out);
      add({true, open[i], out}, next);
      if (next.is_switch && std::find(open.begin(), open.end(), next.number) == open.end()) open.push_back(next.number);
    }
  }
}

std::vector<pair_if::line> network_pair::lines() const {
  std::vector<place> places;
  for (std::size_t nth = 0; nth < ports_[0].size(); ++nth)
    for (unsigned from = 0; from < 2; ++from) add_way(from, nth, places);
  std::vector<line> all;
  for (place& p : places) all.push_back(std::move(p.carried));
  return all;
}

}  // namespace rnic::hosts
