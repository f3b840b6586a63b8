// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_station.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "host_driver/cm/cma.h"
#include "model/wire/ethernet.h"
#include "testbenches/rnic/host_addresses.h"
#include "testbenches/rnic/measure/bonds.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/serve/serve_dcb.h"
#include "testbenches/rnic/serve/serve_links.h"

namespace rnic::program {

namespace cm = host_driver::cm;

namespace {

/// Runs in the results: a server may have any number of them.
constexpr std::size_t most_runs_told = 1000;
/// What has no reason in the peer may be so the next time too.
constexpr sim::time_ps after_failure_ps = sim::ps_per_s;
/// For the answers of peers that are left.
constexpr sim::time_ps leave_ps = 2 * sim::ps_per_s;

}  // namespace

namespace {

/// Adapters are a and b in turn.
const hosts::node_config& station_node(const hosts::two_nodes_config& system, unsigned index) {
  return index % 2 == 1 && system.node_b ? *system.node_b : system.node;
}

}  // namespace

serve_station::serve_station(const serve_options& options, unsigned index, const hosts::two_nodes_config& system,
                             hosts::system_capture& all_ports, const adapter::environment& env,
                             boost::asio::io_context& io, serve::real_time& clock, serve_notices& notices)
    : options_(options),
      index_(index),
      name_(!options.topology.empty() ? options.hosts[index]
            : index == 0              ? "served"
                                      : "served" + std::to_string(index + 1)),
      notices_(notices),
      prefix_(adapters(options) > 1 ? "adapter " + std::to_string(index + 1) + ": " : ""),
      exchange_(io, env.base, clock),
      host_(std::make_unique<serve::served_host>(host_config(index, system, all_ports), env, io, clock)) {
  if (meets_over_cm(options_)) {
    const int tos = options_.tos >= 0 ? options_.tos : station_node(system, index).driver.cma_roce_tos;
    options_.traffic_class = static_cast<std::uint8_t>(tos);
    if (options_.priority == 0) options_.priority = cm::service_level_of(options_.traffic_class);
  }
  if (is_script(options_)) channel_ = std::make_unique<serve::script::line_channel>(io, env.base, clock);
  if (channel_) open_script();
}

void serve_station::start() {
  host_->start();
  watch_agent();
  if (!options_.app.empty()) gid_index();  // wrong options are told before anything begins
  if (options_.server && (!meets_over_cm(options_) || is_qperf(options_))) listen();
}

bool serve_station::left() const {
  if (service_ != nullptr && !service_->left()) return false;
  return host_->dcb() == nullptr || host_->dcb()->stopped();
}

/// A line for each other agreement.
void serve_station::watch_agent() {
  host_driver::dcb::service* agent = host_->dcb();
  if (agent == nullptr) return;
  agent->when_changed([this, agent] {
    std::string line = dcb_line(agent->current());
    if (line == agreed_) return;
    agreed_ = std::move(line);
    notices_.say(prefix_ + "dcb: " + agreed_);
  });
}

bool serve_station::ok() const { return (options_.app.empty() || runs_made_ != 0) && runs_failed_ == 0; }

serve::host_config serve_station::host_config(unsigned index, const hosts::two_nodes_config& system,
                                              hosts::system_capture& all_ports) const {
  serve::host_config c;
  c.node = hosts::of_side(station_node(system, index), index);
  c.name = name_;
  c.mac = wire::mac_from_u64(options_.default_mac + 2 * index);  // an adapter has two ports, one after the other
  if (options_.topology.empty()) c.link = link_from(options_.link);
  if (!options_.second_link.empty()) c.second_link = link_from(options_.second_link);
  for (const std::string& text : options_.addresses) {
    const auto address = wire::parse_gid(text);
    if (!address || !may_be_hosts(*address))
      throw usage_error("--ip " + text +
                        ": expected a host's IPv4 or IPv6 address: none of everybody's, nobody's, a group's or "
                        "loopback's");
    c.addresses.push_back(*address);
  }
  if (!options_.mac.empty()) {
    c.mac = wire::parse_mac(options_.mac);
    if (!c.mac || wire::is_multicast(*c.mac) || wire::to_u64(*c.mac) == 0)
      throw usage_error("--mac " + options_.mac + ": not a MAC address of a port");
  }
  if (options_.vlan != 0) c.vlan = static_cast<std::uint16_t>(options_.vlan);
  using host_driver::groups::igmp_version;
  c.igmp = options_.igmp_version == 2   ? igmp_version::v2
           : options_.igmp_version == 3 ? igmp_version::v3
                                        : igmp_version::by_querier;
  c.link_event = [this](const std::string& what) { notices_.say(prefix_ + "link: " + what); };
  c.all_ports = &all_ports;
  if (all_ports.of_ports() == nullptr) c.capture = system.capture;
  if (index != 0 && !c.capture.empty()) c.capture += "." + std::to_string(index + 1);
  c.capture_options = system.capture_options;
  return c;
}

/// Over the connection manager and without --roce, rdma_cm's default decides. A server listens even if it has no
/// address of that version, as one does on Linux that has bound to none, and then refuses all who come.
int serve_station::gid_index() {
  int index = options_.gid_index;
  const bool as_rdma_cm = options_.roce.empty() && meets_over_cm(options_);
  const ibv_gid_type type = as_rdma_cm              ? cm::cma(host_->device()).default_roce_mode(1)
                            : options_.roce == "v1" ? IBV_GID_TYPE_ROCE_V1
                                                    : IBV_GID_TYPE_ROCE_V2;
  if (index < 0) index = host_->gid_index(type);
  if (index < 0 && as_rdma_cm && options_.server)
    index = host_->gid_index(type == IBV_GID_TYPE_ROCE_V1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
  if (index < 0 && options_.gid_index < 0)
    throw usage_error(std::string(as_rdma_cm ? "driver.cma_roce_mode" : "--roce") +
                      (type == IBV_GID_TYPE_ROCE_V1 ? " v1" : " v2") + ": the adapter has no address of this version");
  if (index < 0 || !host_->device().port(1).gids[static_cast<std::size_t>(index)].valid)
    throw usage_error("--gid-index " + std::to_string(index) + ": there is no such GID");
  return index;
}

/// Of connections, with --roce or --gid-index.
std::optional<ibv_gid_type> serve_station::only_version() {
  if (options_.roce.empty() && options_.gid_index < 0) return std::nullopt;
  return host_->device().port(1).gids[static_cast<std::size_t>(gid_index())].type;
}

void serve_station::open_script() {
  try {
    script_at_ = channel_->open(serve::script::parse_channel(options_.script));
  } catch (const std::exception& e) {
    throw usage_error(e.what());
  }
}

void serve_station::listen() {
  try {
    const bool perftest = serve::find_perftest(options_.app).has_value();
    exchange_.listen(options_.exchange, listening_port(options_),
                     perftest             ? serve::perftest_first_word
                     : is_qperf(options_) ? serve::qperf_first_word
                                          : serve::first_word_bytes(options_.app));
  } catch (const std::runtime_error& e) {
    throw usage_error(e.what());
  }
}

std::unique_ptr<serve::reception> serve_station::receive_clients() {
  if (service_ == nullptr || channel_ || is_qperf(options_)) return nullptr;  // they listen when they are asked to
  if (serve::find_perftest(options_.app))
    return serve::receive_clients(*host_, *service_, options_.app, perftest_from(options_, gid_index()));
  return serve::receive_clients(*host_, *service_, cm_application_from(options_, gid_index()));
}

serve::application_result serve_station::run_application() {
  const int gid = gid_index();
  if (channel_) return serve::script::run_script(*host_, *service_, *channel_, gid);
  if (is_qperf(options_)) return run_qperf(*host_, exchange_, *service_, qperf_from(options_, gid));
  if (serve::find_perftest(options_.app))
    return run_perftest(*host_, exchange_, service_, clients_, perftest_from(options_, gid));
  if (service_ != nullptr) return run_cm_application(*host_, *service_, clients_, cm_application_from(options_, gid));
  const serve::pingpong_options o = pingpong_from(options_, gid);
  if (options_.app == "xsrq_pingpong") return run_xsrq_pingpong(*host_, exchange_, o);
  return options_.app == "srq_pingpong" ? run_srq_pingpong(*host_, exchange_, o) : run_pingpong(*host_, exchange_, o);
}

/// What goes wrong in a run is the end of this run: the next client is served. Nothing may wait while an exception is
/// handled: processes share the thread that handles it.
serve::application_result serve_station::try_application() {
  serve::application_result failed;
  try {
    serve::application_result r = run_application();
    if (!r.ok && leaving_) r.error = "it was ended before its run was complete";  // and all else follows from that
    return r;
  } catch (const std::exception& e) {
    failed.error = e.what();
  }
  sc_core::wait(sc_core::sc_time::from_value(after_failure_ps));
  return failed;
}

void serve_station::run_applications(const std::function<void()>& ready) {
  std::unique_ptr<serve::cm_service> service;
  if (meets_over_cm(options_)) service = std::make_unique<serve::cm_service>(*host_, only_version());
  service_ = service.get();
  std::unique_ptr<serve::reception> clients = receive_clients();
  clients_ = clients.get();
  ready();
  const unsigned repeat = options_.script == "-" ? 1 : options_.repeat;  // there is one standard input
  for (unsigned n = 0; !leaving_ && (repeat == 0 || n < repeat); ++n) {
    if (clients_ != nullptr && n + 1 == repeat) clients_->set_last();
    report(try_application());
  }
  if (clients) received_ = clients->count();
  clients.reset();
  clients_ = nullptr;
  if (!service) return;
  service->leave(leave_ps);
  managed_ = service->manager().count();
  service_ = nullptr;
}

void serve_station::leave() {
  leaving_ = true;
  if (service_ != nullptr) service_->leave();
  host_driver::dcb::service* agent = host_->dcb();
  if (agent == nullptr || !agreement_.is_null()) return;
  agreement_ = dcb_json(agent->current());
  agreed_at_the_end_ = dcb_show("eth1", agent->current());
  agent->when_changed({});
  agent->stop();
}

void serve_station::report(const serve::application_result& r) {
  if (r.ok && channel_)
    fmt::print("{}script: {} commands, {} of them refused; {} messages sent, {} received\n", prefix_, r.commands,
               r.refused, r.sent, r.received);
  else if (r.ok)
    fmt::print("{}{}: {} messages sent, {} received in {} us, {} us each\n", prefix_, options_.app, r.sent, r.received,
               microseconds(r.took_ps), microseconds(r.took_ps / std::max<std::uint64_t>(r.received, 1)));
  else
    fmt::print("{}{} failed: {}\n", prefix_, options_.app, r.error);
  std::fflush(stdout);
  ++runs_made_;
  if (!r.ok) ++runs_failed_;
  runs_.push_back(r);
  if (runs_.size() > most_runs_told) runs_.pop_front();
}

void serve_station::print_start() {
  fmt::print("serving {} at {}\n", wire::to_string(host_->mac()),
             options_.link.empty()          ? options_.hosts[index_]
             : options_.second_link.empty() ? options_.link
                                            : options_.link + " and " + options_.second_link);
  if (channel_) fmt::print("commands come from {}\n", script_at_);
}

void serve_station::print_link() const {
  if (link() != nullptr) fmt::print("{}{}\n", prefix_, link_text(*link()));
  if (second_link() != nullptr) fmt::print("{}port 2: {}\n", prefix_, link_text(*second_link()));
  if (host_->bond() != nullptr) fmt::print("{}{}\n", prefix_, bond_text(*host_->bond()));
  if (!agreed_at_the_end_.empty()) fmt::print("{}", agreed_at_the_end_);
}

namespace {

nlohmann::json managed_json(const host_driver::cm::connection_manager_counters& c) {
  return {{"received", c.received},
          {"sent", c.sent},
          {"malformed", c.malformed},
          {"unknown_id", c.unknown_id},
          {"wrong_state", c.wrong_state},
          {"duplicates", c.duplicates},
          {"stale", c.stale},
          {"no_service", c.no_service},
          {"no_room", c.no_room},
          {"backlog_full", c.backlog_full},
          {"by_data", c.by_data},
          {"other_version", c.other_version},
          {"not_admitted", c.not_admitted},
          {"paths_refused", c.paths_refused},
          {"retries", c.retries},
          {"timeouts", c.timeouts}};
}

nlohmann::json received_json(const serve::reception_counters& c) {
  return {{"answered", c.answered},
          {"confirmed", c.confirmed},
          {"unconfirmed", c.unconfirmed},
          {"gone", c.gone},
          {"refused", c.refused}};
}

}  // namespace

nlohmann::json serve_station::results() const {
  nlohmann::json result;
  result["mac"] = wire::to_string(host_->mac());
  ibv_device_attr known{};
  if (host_->device().query_device(&known) == 0)
    result["node_guid"] = fmt::format("{:016x}", __builtin_bswap64(known.node_guid));
  if (link() != nullptr) {
    result["link"] = link_json(*link());
    result["link"]["at"] = options_.link;
  } else {
    result["host"] = options_.hosts[index_];
  }
  if (second_link() != nullptr) {
    result["second_link"] = link_json(*second_link());
    result["second_link"]["at"] = options_.second_link;
  }
  if (host_->bond() != nullptr) result["bond"] = bond_json(*host_->bond());
  const host_driver::neighbours::counters a = host_->answered();
  result["network"] = {{"arp_requests", a.arp_requests},
                       {"arp_replies", a.arp_replies},
                       {"solicitations", a.solicitations},
                       {"advertisements", a.advertisements},
                       {"echo_requests", a.echo_requests},
                       {"echo6_requests", a.echo6_requests},
                       {"asked", a.asked},
                       {"malformed", a.malformed},
                       {"not_for_us", a.not_for_us},
                       {"unknown", a.unknown},
                       {"table_full", a.table_full}};
  if (!agreement_.is_null()) {
    result["dcb"] = agreement_;
    result["dcb"]["lldp"]["frames_out"] = host_->dcb()->current().lldp.frames_out;  // with the farewell
  }
  if (exchange_.listens()) {
    const serve::exchange_counters& c = exchange_.count();
    result["exchange"] = {
        {"clients", c.clients}, {"silent", c.silent}, {"gone", c.gone}, {"turned_away", c.turned_away}};
  }
  result["runs_made"] = runs_made_;
  result["runs_failed"] = runs_failed_;
  result["runs"] = nlohmann::json::array();
  for (const serve::application_result& r : runs_) result["runs"].push_back(to_json(options_.app, r));
  if (managed_ || service_ != nullptr)
    result["connection_manager"] = managed_json(managed_ ? *managed_ : service_->manager().count());
  if (received_ || clients_ != nullptr) result["clients"] = received_json(received_ ? *received_ : clients_->count());
  return result;
}

}  // namespace rnic::program
