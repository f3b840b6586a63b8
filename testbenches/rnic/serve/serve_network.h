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
  /// `all_ports`: has the ports of hosts and switches, but not those of real peers.
  serve_network(const hosts::network_config& config, serve_places places, hosts::system_capture& all_ports,
                const adapter::environment& env, boost::asio::io_context& io, serve::real_time& clock,
                serve_notices& notices);

  /// The cable of an adapter, by its number in serve_places::adapters.
  fabric::cable& plug(unsigned adapter, payload::frame_port_if& connector);
  /// Spans of messages tell of switches and cables from now on.
  void follow(sim::span_recorder& spans);
  std::vector<std::string> switches() const { return places_.shape.switches(); }
  const std::vector<std::unique_ptr<serve::link_port>>& links() const { return links_; }
  void print_start() const;  ///< a line for each link
  void print_end() const;    ///< what went through links and switches
  /// Members links and ports.
  nlohmann::json results() const;

 private:
  fabric::cable& join(const fabric::network_link& w, payload::frame_port_if* host, bool is_peer);
  std::string name_of(const fabric::plug_place& e) const {
    return (e.is_switch ? places_.shape.switches() : places_.shape.hosts())[e.number];
  }
  const std::string& peer(std::size_t link) const { return places_.shape.hosts()[places_.peers[link]]; }
  nlohmann::json ports() const;

  serve_places places_;
  hosts::system_capture& all_ports_;
  std::uint32_t ps_per_metre_;
  const sim::statistics& statistics_;
  sim::clock_domain clock_;
  const sim::timebase& base_;
  std::vector<std::unique_ptr<fabric::network_switch>> switches_;
  std::vector<std::unique_ptr<serve::link_port>> links_;
  struct joined {
    std::unique_ptr<fabric::cable> cable;
    const fabric::network_link* between;
  };
  std::vector<joined> cables_;
};

}  // namespace rnic::program
