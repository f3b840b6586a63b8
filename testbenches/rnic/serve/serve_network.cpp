// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "testbenches/rnic/fabric/network_results.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/serve/serve_links.h"

namespace rnic::program {

namespace {

/// The cable of a host's port 1, or of the only one that it has.
const fabric::network_link& link_of(const fabric::topology& shape, unsigned host) {
  const auto at = std::find_if(shape.links().begin(), shape.links().end(), [&](const fabric::network_link& w) {
    return !w.ends[0].is_switch && w.ends[0].number == host;
  });
  return *at;
}

}  // namespace

serve_places places_from(serve_options& options, const fabric::topology& shape) {
  serve_places p;
  p.shape = shape;
  const std::vector<std::string>& names = shape.hosts();
  for (const std::string& text : options.links) {
    const std::size_t equals = text.find('='), colon = text.find(':');
    if (equals == std::string::npos || equals > colon)
      throw usage_error(fmt::format("--link {}: expected HOST=LINK with --topology, as in {}=tap:tap0", text,
                                    names.empty() ? "h1" : names.back()));
    const std::string name = text.substr(0, equals);
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      throw usage_error(fmt::format("--link {}: there is no host {} in {}, expected one of {}", text, name,
                                    options.topology, fmt::join(names, ", ")));
    const auto host = static_cast<unsigned>(at - names.begin());
    if (std::find(p.peers.begin(), p.peers.end(), host) != p.peers.end())
      throw usage_error(fmt::format("--link {}: {} has a link", text, name));
    p.peers.push_back(host);
    p.links.push_back(link_from(text.substr(equals + 1)));
  }
  for (unsigned h = 0; h < names.size(); ++h) {
    if (shape.cabled(h) == 3)
      throw usage_error(
          fmt::format("--topology: {}: {} has two cables, expected one of each host", options.topology, names[h]));
    const bool is_peer = std::find(p.peers.begin(), p.peers.end(), h) != p.peers.end();
    if (is_peer) continue;
    if (shape.cabled(h) != 1)
      throw usage_error(
          fmt::format("--topology: {}: the cable of {} is not at port 1, which is served", options.topology, names[h]));
    p.adapters.push_back(h);
    options.hosts.push_back(names[h]);
  }
  if (p.adapters.empty())
    throw usage_error(
        fmt::format("--link: all {} hosts of {} have one, expected one host or more without, which are "
                    "the adapters",
                    names.size(), options.topology));
  if (!shape.is_tree())
    throw usage_error(
        fmt::format("--topology: {}: there is more than one way between two switches, and addresses of "
                    "real peers are learnt by flooding",
                    options.topology));
  return p;
}

serve_network::serve_network(const hosts::network_config& config, serve_places places, hosts::system_capture& all_ports,
                             const adapter::environment& env, boost::asio::io_context& io, serve::real_time& clock,
                             serve_notices& notices)
    : places_(std::move(places)),
      all_ports_(all_ports),
      ps_per_metre_(config.ps_per_metre),
      statistics_(env.statistics),
      clock_("fabric_clock", env.base, hosts::fabric_clock),
      base_(env.base) {
  for (unsigned s = 0; s < places_.shape.switches().size(); ++s)
    switches_.push_back(hosts::make_switch(config, s, true, clock_, env.frames, env.statistics));
  for (const fabric::network_link& w : places_.shape.links())
    if (w.ends[0].is_switch) join(w, nullptr, false);
  for (std::size_t i = 0; i < places_.links.size(); ++i) {
    const fabric::network_link& w = link_of(places_.shape, places_.peers[i]);
    serve::link_port_config c;
    c.name = peer(i) + ".bridge";
    c.clock = peer(i) + ".bridge_clock";
    c.link = places_.links[i];
    c.rate_mbps = w.rate_mbps;
    c.event = [&notices, name = peer(i)](const std::string& what) { notices.say(name + ": " + what); };
    links_.push_back(std::make_unique<serve::link_port>(c, env, io, clock));
    join(w, &links_.back()->connector(), true);
  }
}

/// `host`: the connector at the first end; nullptr where it is a switch.
fabric::cable& serve_network::join(const fabric::network_link& w, payload::frame_port_if* host, bool is_peer) {
  fabric::cable::config c;
  c.metres = w.metres;
  c.ps_per_metre = ps_per_metre_;
  const auto port = [this](const fabric::plug_place& e) -> payload::frame_port_if& {
    return switches_[e.number]->port(e.port);
  };
  cables_.push_back(
      {std::make_unique<fabric::cable>(host != nullptr ? *host : port(w.ends[0]), port(w.ends[1]), c), &w});
  const auto name = [this](const fabric::plug_place& e) { return name_of(e) + ".port" + std::to_string(e.port); };
  all_ports_.add(*cables_.back().cable, is_peer ? "" : name(w.ends[0]), name(w.ends[1]));
  return *cables_.back().cable;
}

fabric::cable& serve_network::plug(unsigned adapter, payload::frame_port_if& connector) {
  return join(link_of(places_.shape, places_.adapters[adapter]), &connector, false);
}

void serve_network::follow(sim::span_recorder& spans) {
  for (const auto& s : switches_) s->follow(spans);
  for (const joined& c : cables_) c.cable->follow(spans, name_of(c.between->ends[0]), name_of(c.between->ends[1]));
}

void serve_network::print_start() const {
  for (std::size_t i = 0; i < links_.size(); ++i) fmt::print("{} is at {}\n", peer(i), places_.links[i].text);
}

nlohmann::json serve_network::ports() const {
  nlohmann::json all = nlohmann::json::array();
  const nlohmann::json counters = statistics_json(statistics_);
  for (unsigned s = 0; s < switches_.size(); ++s)
    for (nlohmann::json& p : ports_of(places_.shape, s, *switches_[s], counters, base_.now_ps())) {
      const std::string port = places_.shape.switches()[s] + ".port" + std::to_string(p["port"].get<unsigned>()) + ".";
      for (const char* counter : {"rx_frames", "tx_frames", "rx_bytes", "tx_bytes"})
        p[counter] = counters.at(port + counter);
      all.push_back(p);
    }
  return all;
}

void serve_network::print_end() const {
  for (std::size_t i = 0; i < links_.size(); ++i) fmt::print("{}: {}\n", peer(i), link_text(*links_[i]));
  fmt::print("\n{:<10} {:>4} {:<8} {:>10} {:>10} {:>12} {:>9} {:>9} {:>9}\n", "switch", "port", "to", "frames in",
             "out", "most queued", "pauses rx", "tx", "dropped");
  for (const nlohmann::json& p : ports())
    fmt::print("{:<10} {:>4} {:<8} {:>10} {:>10} {:>12} {:>9} {:>9} {:>9}\n", p["switch"].get<std::string>(),
               p["port"].get<unsigned>(), p["to"].get<std::string>(), p["rx_frames"].get<std::uint64_t>(),
               p["tx_frames"].get<std::uint64_t>(), p["most_queued_bytes"].get<std::uint64_t>(),
               p["rx_pause"].get<std::uint64_t>(), p["tx_pause"].get<std::uint64_t>(), dropped_at(p));
}

nlohmann::json serve_network::results() const {
  nlohmann::json result;
  result["links"] = nlohmann::json::object();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    result["links"][peer(i)] = link_json(*links_[i]);
    result["links"][peer(i)]["at"] = places_.links[i].text;
  }
  result["ports"] = ports();
  return result;
}

}  // namespace rnic::program
