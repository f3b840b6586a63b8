// SPDX-License-Identifier: Apache-2.0
// --topology of `rnic serve`: adapters and links at the ports of modelled switches.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host_driver/hosts/network.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/serve/serve_notices.h"
#include "testbenches/serve/links/link_port.h"

namespace rnic::program {

/// Which hosts of the network are real peers, at the far end of a link, and which are adapters.
struct serve_places {
  fabric::topology shape;
  std::vector<unsigned> adapters;       ///< hosts without a link, in the order of the network
  std::vector<unsigned> peers;          ///< by serve_options::links
  std::vector<serve::link_spec> links;  ///< the same
};
/// From options with a topology, of which it becomes known which `hosts` are adapters. Throws usage_error for links
/// that are not HOST=LINK, a network with loops (addresses of real peers are learnt), or hosts with no port to use.
serve_places places_from(serve_options& options, const fabric::topology& shape);

/// Switches that learn and flood, cables, and the links. Adapters are plugged in by plug().
class serve_network {
 public:
  serve_network(const hosts::network_config& config, serve_places places, const adapter::environment& env,
                boost::asio::io_context& io, serve::real_time& clock, serve_notices& notices);

  /// The cable of an adapter, by its number in serve_places::adapters.
  fabric::cable& plug(unsigned adapter, payload::frame_port_if& connector);
  const std::vector<std::unique_ptr<serve::link_port>>& links() const { return links_; }
  void print_start() const;  ///< a line for each link
  void print_end() const;    ///< what went through links and switches
  /// Members links and ports.
  nlohmann::json results() const;

 private:
  fabric::cable& join(const fabric::network_link& w, payload::frame_port_if* host);
  const std::string& peer(std::size_t link) const { return places_.shape.hosts()[places_.peers[link]]; }
  nlohmann::json ports() const;

  serve_places places_;
  std::uint32_t ps_per_metre_;
  const sim::statistics& statistics_;
  sim::clock_domain clock_;
  const sim::timebase& base_;
  std::vector<std::unique_ptr<fabric::network_switch>> switches_;
  std::vector<std::unique_ptr<serve::link_port>> links_;
  std::vector<std::unique_ptr<fabric::cable>> cables_;
};

}  // namespace rnic::program
