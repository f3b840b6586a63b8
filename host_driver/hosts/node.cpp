// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/node.h"

#include <cerrno>
#include <functional>
#include <systemc>
#include <utility>

#include "firmware/bus/network_card.h"
#include "host_driver/dcb/qcn.h"
#include "host_driver/dcb/service.h"
#include "host_driver/hosts/driver_parameters.h"
#include "host_driver/hosts/gid_source_twin.h"
#include "host_driver/hosts/gid_twin.h"
#include "model/host/root_complex_socket.h"
#include "model/icrc/icrc_model.h"
#include "model/payload/ethernet_socket.h"
#include "rtl/harness/lockstep.h"
#include "rtl/icrc/icrc_rtl.h"

namespace rnic::hosts {

namespace {

/// Model and RTL side by side. The first difference is an error of the kernel's report handler, which ends the run.
template <class Pins>
class shadow final : public rtl::twin<Pins> {
 public:
  shadow(const std::string& block, const sim::clock_domain& clock, rtl::twin_ptr<Pins> reference,
         const typename rtl::lockstep<Pins>::factory& make)
      : both_(block, std::move(reference), make, [&clock] { return clock.now(); }) {}
  typename Pins::outputs clock(const typename Pins::inputs& in) override {
    try {
      return both_.clock(in);
    } catch (const rtl::difference& d) {
      SC_REPORT_ERROR(rtl_difference, d.what());
    }
    return {};
  }
  typename Pins::outputs sample() const override { return both_.sample(); }
  bool start_trace(const std::string& path, std::function<rtl::cycle_times()> times = {}) override {
    return both_.start_trace(path, std::move(times));
  }
  void stop_trace() override { both_.stop_trace(); }

 private:
  rtl::lockstep<Pins> both_;
};

std::unique_ptr<icrc::icrc_engine_if> make_engine(adapter::implementation what, const std::string& block,
                                                  const sim::clock_domain& clock, unsigned width,
                                                  std::vector<rtl_block>& all) {
  if (what == adapter::implementation::model) return std::make_unique<icrc::icrc_model>(width);
  auto engine = rtl::make_icrc_rtl(width);
  if (engine == nullptr)
    throw sim::config_error("rtl.icrc: adapter.datapath_bytes must be 16 or 64, of which there is RTL, not " +
                            std::to_string(width));
  if (what == adapter::implementation::shadow)
    engine = std::make_unique<shadow<rtl::icrc_pins>>(
        block, clock, std::make_unique<rtl::icrc_reference>(std::make_unique<icrc::icrc_model>(width)),
        [width] { return rtl::make_icrc_rtl(width); });
  all.push_back({block, &clock, engine.get()});
  return std::make_unique<rtl::icrc_rtl>(std::move(engine), width);
}

std::unique_ptr<gid::gid_match_if> make_gid_match(const adapter::config& c, const std::string& block,
                                                  const sim::clock_domain& clock, const gid::gid_table& entries,
                                                  std::vector<rtl_block>& all) {
  if (c.gid == adapter::implementation::model) return nullptr;
  constexpr std::uint8_t cycles = gid_match_reference::compare_cycles;
  if (c.gid_match.method != gid::match_method::parallel || c.gid_match.compare_cycles != cycles)
    throw sim::config_error("rtl.gid: adapter.gid.match must be parallel and adapter.gid.compare_cycles " +
                            std::to_string(cycles) + ", of which there is RTL");
  auto engine = c.gid == adapter::implementation::rtl
                    ? rtl::make_gid_match_rtl()
                    : std::make_unique<shadow<rtl::gid_match_pins>>(block + ".gid_match", clock,
                                                                    std::make_unique<gid_match_reference>(),
                                                                    [] { return rtl::make_gid_match_rtl(); });
  all.push_back({block + ".gid_match", &clock, engine.get()});
  return std::make_unique<gid_match_rtl>(std::move(engine), entries);
}

std::unique_ptr<gid::gid_source_if> make_gid_source(const adapter::config& c, const std::string& name,
                                                    const sim::clock_domain& clock, const gid::gid_table& entries,
                                                    std::vector<rtl_block>& all) {
  if (c.gid == adapter::implementation::model) return nullptr;
  if (c.gid_source.source_cycles != gid_source_reference::source_cycles)
    throw sim::config_error("rtl.gid: adapter.gid.source_cycles must be " +
                            std::to_string(gid_source_reference::source_cycles) + ", of which there is RTL");
  auto engine = c.gid == adapter::implementation::rtl ? rtl::make_gid_source_rtl()
                                                      : std::make_unique<shadow<rtl::gid_source_pins>>(
                                                            name, clock, std::make_unique<gid_source_reference>(),
                                                            [] { return rtl::make_gid_source_rtl(); });
  all.push_back({name, &clock, engine.get()});
  return std::make_unique<gid_source_rtl>(std::move(engine), entries);
}

adapter::icrc_engine_factory engine_factory(const node_config& of, std::vector<rtl_block>& all) {
  if (of.icrc_engine) return of.icrc_engine;
  return [what = of.adapter.icrc, width = of.adapter.datapath_bytes, &all](const std::string& block,
                                                                           const sim::clock_domain& clock) {
    return make_engine(what, block, clock, width, all);
  };
}

adapter::gid_match_factory match_factory(const node_config& of, std::vector<rtl_block>& all) {
  if (of.gid_match) return of.gid_match;
  return
      [&c = of.adapter, &all](const std::string& block, const sim::clock_domain& clock, const gid::gid_table& entries) {
        return make_gid_match(c, block, clock, entries, all);
      };
}

adapter::gid_source_factory source_factory(const node_config& of, std::vector<rtl_block>& all) {
  if (of.gid_source) return of.gid_source;
  return
      [&c = of.adapter, &all](const std::string& name, const sim::clock_domain& clock, const gid::gid_table& entries) {
        return make_gid_source(c, name, clock, entries, all);
      };
}

}  // namespace

/// One link: what its parameters say holds for both of its ends.
static host::root_complex_config root_config(const node_config& cfg) {
  host::root_complex_config c = cfg.root_complex;
  c.link = cfg.adapter.pcie.link;
  return c;
}

node_config make_node_config(const std::string& profile) {
  node_config c;
  c.adapter = adapter::profile(profile);
  return c;
}

node_config of_side(node_config c, unsigned side) {
  const auto of_this = [](std::uint8_t own, sim::parameter<adapter::implementation>& what) {
    if (own != 0) what = static_cast<adapter::implementation>(own - 1);
  };
  const rtl_of_side& own = c.sides[side % 2];
  of_this(own.icrc, c.adapter.icrc);
  of_this(own.gid, c.adapter.gid);
  return c;
}

std::string short_pauses(const std::string& of, std::uint16_t quanta, const mac::refresh_margin& m) {
  return of + ": what is left of a pause of " + std::to_string(quanta) + " quanta when it is to be repeated are " +
         std::to_string(m.left_ps / sim::ps_per_ns) + " ns, and a frame before that can take " +
         std::to_string(m.needed_ps / sim::ps_per_ns) + " ns: pauses end too early";
}

std::vector<std::string> warnings(const node_config& c) {
  std::vector<std::string> all;
  if (!c.driver.lossless_global_pause && c.driver.pfc_mask == 0) return all;
  for (unsigned i = 0; i < c.adapter.ports; ++i) {
    mac::port_config p = c.adapter.port;
    p.rate_mbps = c.adapter.rate_mbps(i);
    const std::uint32_t needed = mac::most_after_stop(p), xoff = mac::ingress_thresholds(p).xoff;
    if ((c.cabled >> i & 1) != 0 && p.ingress_bytes - std::min<std::uint32_t>(xoff, p.ingress_bytes) < needed)
      all.push_back("port " + std::to_string(i + 1) + ": " + std::to_string(p.ingress_bytes - xoff) +
                    " bytes of headroom (adapter.port.ingress_bytes " + std::to_string(p.ingress_bytes) + ", XOFF at " +
                    std::to_string(xoff) + "); " + std::to_string(needed) + " can still come over " +
                    std::to_string(p.metres) + " m at " + std::to_string(p.rate_mbps) + " Mb/s: pauses come too late");
    if (const mac::refresh_margin m = mac::pause_margin(p); (c.cabled >> i & 1) != 0 && !m.is_enough())
      all.push_back(short_pauses("port " + std::to_string(i + 1), p.pause_quanta, m));
  }
  return all;
}

void announce(sim::parameter_set& to, node_config& c) {
  adapter::announce(to, c.adapter);
  to.add("a.rtl", c.sides[0]);
  to.add("b.rtl", c.sides[1]);
  to.add("tlm.sockets", c.tlm_sockets);
  to.add("host", c);
  announce(to, c.driver);
}

/// The rims of an adapter whose sides are TLM sockets.
struct node::sockets {
  sockets(host::root_complex& root, adapter::adapter& nic, unsigned cabled) : slot("slot", root) {
    slot.socket.bind(nic.pcie_socket());
    for (unsigned i = 0; i < nic.num_ports(); ++i)
      if ((cabled >> i & 1) != 0)
        wires[i] = std::make_unique<payload::ethernet_connector>(i == 0 ? "wire" : "wire2", nic.port_socket(i),
                                                                 root.domain().base());
  }
  host::root_complex_socket slot;
  std::array<std::unique_ptr<payload::ethernet_connector>, 2> wires;
};

namespace {

/// Shares are of one whole.
void check_shares(const host_driver::dcb::settings& s) {
  using algorithm = host_driver::dcb::settings::algorithm;
  unsigned sum = 0;
  std::string classes;
  for (unsigned i = 0; i < 8; ++i) {
    if (s.classes[i].select != algorithm::ets) continue;
    sum += s.classes[i].percent;
    classes += (classes.empty() ? "driver.dcb.ets.tc" : ", driver.dcb.ets.tc") + std::to_string(i) + ".percent";
  }
  if (s.enabled && !classes.empty() && sum != 100)
    throw sim::config_error(classes + ": " + std::to_string(sum) + " together, expected 100 %");
}

/// The numbers of functions that several parts have to agree on.
node_config with_functions(node_config c) {
  if (c.function > c.functions)
    throw sim::config_error("host.function: " + std::to_string(c.function) +
                            ": expected 0 to host.functions, which is " + std::to_string(c.functions));
  const unsigned one = c.driver.functions_port_1, two = c.driver.functions_port_2;
  if (one + two > c.functions)
    throw sim::config_error("driver.functions.port1, driver.functions.port2: " + std::to_string(one) + " and " +
                            std::to_string(two) + " are more than host.functions, which is " +
                            std::to_string(c.functions));
  if (two != 0 && c.adapter.ports < 2)
    throw sim::config_error("driver.functions.port2: " + std::to_string(two) + ": expected 0 where adapter.ports is 1");
  if (c.functions > c.adapter.pcie.space.total_vfs)
    c.adapter.pcie.space.total_vfs = static_cast<std::uint16_t>(c.functions);
  c.driver.virtual_functions = c.functions;
  check_shares(c.driver.dcb);
  return c;
}

host_driver::function_ports ports_of_functions(const node_config& c) {
  const unsigned one = c.driver.functions_port_1, two = c.driver.functions_port_2;
  return {{one, two, c.functions - one - two}, c.adapter.ports};
}

/// The host's name is what its neighbours get to know. With fewer vectors than one for asynchronous events and one for
/// completions there are wires, as Linux does it (mlx4/main.c:mlx4_enable_msi_x).
host_driver::config own_driver(const node_config& c, const std::string& host) {
  host_driver::config d = c.driver;
  if (d.dcb.system_name.empty()) d.dcb.system_name = host;
  const unsigned vectors = c.adapter.pcie.space.msix_vectors;
  d.use_msix = d.use_msix && vectors > 1;
  if (d.use_msix) d.completion_vectors = std::min(d.completion_vectors, vectors - 1);
  return d;
}

host_driver::config guest_driver(const node_config& c) {
  host_driver::config d = c.driver;
  d.virtual_functions = 0;
  d.completion_vectors = std::min(d.completion_vectors, c.adapter.pcie.space.vf_msix_vectors - 1u);
  return d;
}

void add_mad_counters(sim::statistics& to, const std::string& prefix, const host_driver::mad_tunnel::counters& c) {
  namespace rules = host_driver::mad_rules;
  to.add(prefix + "to_wire", c.to_wire);
  to.add(prefix + "to_functions", c.to_functions);
  for (std::size_t i = 1; i < rules::faults; ++i) {
    const std::string why = rules::to_string(static_cast<rules::fault>(i));
    to.add(prefix + "from_function.drop." + why, c.from_function[i]);
    to.add(prefix + "from_wire.drop." + why, c.from_wire[i]);
  }
}

host_driver::systemc_bus::config guest_bus(const node_config& c, unsigned function) {
  host_driver::systemc_bus::config b = c.bus;
  b.function = static_cast<std::uint16_t>(function);
  return b;
}

}  // namespace

node::guest::guest(unsigned function, const node_config& c, sim::timebase& base, host::host_memory& memory,
                   host_driver::program_turns& turns)
    : bus(("bus_vf" + std::to_string(function)).c_str(), base, memory, turns, guest_bus(c, function)),
      device(bus, guest_driver(c)) {}

void node::interrupt_router::interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data,
                                       sim::time_ps at) {
  if (function == 0 || function > owner.guests_.size()) return owner.bus_.interrupt(function, address, data, at);
  owner.guests_[function - 1]->bus.interrupt(function, address, data, at);
}

void node::interrupt_router::line(bool asserted, sim::time_ps at) { owner.bus_.line(asserted, at); }

node::node(const sc_core::sc_module_name& module_name, const adapter::environment& env, const node_config& config,
           unsigned number)
    : node(module_name, env, with_functions(config), number, 0) {}

/// Behind the blocks, which check their own parameters: software's and the host's are plain numbers.
static void check_ranges(node_config c) {
  sim::parameter_set all;
  announce(all, c);
  all.check();
}

node::node(const sc_core::sc_module_name& module_name, const adapter::environment& env, const node_config& cfg,
           unsigned number, int)
    : sc_core::sc_module(module_name),
      uncore_(std::string(name()) + ".uncore", env.base, {1'000'000'000, cfg.uncore_khz, 0}),
      memory_(cfg.memory),
      root_(std::string(name()) + ".root_complex", uncore_, root_config(cfg), memory_, env.packets, env.spans,
            env.statistics),
      bus_setup_(root_, cfg.bus_setup),
      adapter_("adapter", env, cfg.adapter, engine_factory(cfg, rtl_), match_factory(cfg, rtl_),
               source_factory(cfg, rtl_), cfg.blocks),
      firmware_("firmware", adapter_.firmware_port(), firmware::config_of(cfg.adapter, cfg.firmware, number)),
      turns_(env.base),
      bus_("bus", env.base, memory_, turns_, cfg.bus),
      device_(bus_, own_driver(cfg, basename())) {
  check_ranges(cfg);
  if (cfg.functions != 0 && !cfg.driver.use_msix)
    throw sim::config_error("driver.use_msix: must be true with virtual functions");
  if (cfg.functions != 0 && cfg.adapter.pcie.space.msix_vectors < 2)
    throw sim::config_error("adapter.pcie.msix_vectors: expected 2 or more with virtual functions");
  if (cfg.driver.roce_mode == host_driver::config::roce_versions::v2 && !cfg.adapter.parser.roce_v2)
    throw sim::config_error("driver.roce_mode: v2 needs an adapter that has it (adapter.port.roce_v2)");
  if (cfg.tlm_sockets) {
    sockets_ = std::make_unique<sockets>(root_, adapter_, cfg.cabled);
  } else {
    root_.connect(adapter_.pcie());
    adapter_.pcie().connect(root_);
  }
  bus_.bind(root_);
  env.statistics.add(std::string(name()) + "_bus.busy_ps", bus_.busy_ps());
  root_.set_interrupt_controller(router_);
  for (unsigned f = 1; f <= cfg.functions; ++f) {
    guests_.push_back(std::make_unique<guest>(f, cfg, env.base, memory_, turns_));
    guests_.back()->bus.bind(root_);
    env.statistics.add(name() + ("_bus_vf" + std::to_string(f)) + ".busy_ps", guests_.back()->bus.busy_ps());
  }
  if (cfg.functions != 0) {
    master_ = std::make_unique<host_driver::function_master>(device_, bus_);
    add_mad_counters(env.statistics, std::string(name()) + "_mads.", master_->mads().counts());
  }
  if (cfg.driver.bond != host_driver::config::bond_mode::none)
    bond_ = std::make_unique<host_driver::bond>(device_, bus_, cfg.driver, master_.get());
  function_ports_ = ports_of_functions(cfg);
  function_settings_ = cfg.function_settings;
  program_function_ = cfg.function;
  cabled_ = cfg.cabled;
}

node::~node() = default;

std::vector<unsigned> node::own_ports(const std::vector<unsigned>& physical) const {
  std::vector<unsigned> own;
  for (const unsigned port : physical)
    if (function_ports_.has(program_function_, port)) own.push_back(function_ports_.own_of(program_function_, port));
  return own;
}

node::guest& node::guest_of(unsigned function) {
  if (function > guests_.size())
    throw sim::config_error("function " + std::to_string(function) + ": there are " + std::to_string(guests_.size()) +
                            " virtual ones, numbered from 1; 0 is the physical one");
  return *guests_[function - 1];
}

host_driver::device& node::device(unsigned function) { return function == 0 ? device_ : guest_of(function).device; }

host_driver::bus_if& node::bus(unsigned function) {
  return function == 0 ? static_cast<host_driver::bus_if&>(bus_) : guest_of(function).bus;
}

payload::frame_port_if& node::connector(unsigned port) {
  if (port == 0 || port > adapter_.num_ports())
    throw sim::config_error("adapter.ports: " + std::to_string(adapter_.num_ports()) + ": there is no port " +
                            std::to_string(port) + " for a cable");
  if (sockets_) return *sockets_->wires[port - 1];
  return adapter_.connector(port - 1);
}

namespace {

class setup_done final : public host::bus_setup::listener {
 public:
  explicit setup_done(sim::timebase& base) : base_(base) {}
  void bus_ready(const host::bus_setup::result& r) override {
    present = r.present;
    base_.notify(event);
  }
  sc_core::sc_event event{"bus_ready"};
  bool present = false;

 private:
  sim::timebase& base_;
};

}  // namespace

int node::start() {
  setup_done done(uncore_.base());
  bus_setup_.start(&done);
  sc_core::wait(done.event);
  const int result = done.present ? device_.open() : -ENODEV;
  if (result != 0 && !host_driver::device::knows(device_.device_id()))
    throw sim::config_error(
        "adapter.identity.device_id: the driver knows no such device (0x1003, 0x1005 to 0x1010, 0x1017)");
  if (result != 0) return result;
  check_function_settings();
  if (!guests_.empty())
    if (const int error = start_functions()) return error;
  if (bond_)
    if (const int error = start_bond()) return error;
  if (const int error = host_driver::dcb::start_qcn(device_)) return error;
  return device_.settings().dcb.enabled ? start_dcb() : 0;
}

int node::start_bond() {
  if (const std::string why = host_driver::bond::obstacle(device_); !why.empty())
    throw sim::config_error("driver.bond: " + why);
  if (const int error = bond_->enslave()) return error;
  bus_.share();
  const bool again = std::exchange(was_bonded_, true);
  const auto process = [this, again](const char* what) {
    const std::string usual = std::string(basename()) + what;
    return again ? std::string(sc_core::sc_gen_unique_name(usual.c_str())) : usual;
  };
  sc_core::sc_spawn([this] { bond_->run(); }, process("_bond").c_str());
  if (bond_->lacp() == nullptr) return 0;
  bond_->bring_up();
  sc_core::sc_spawn([this] { bond_->lacp()->run(); }, process("_lacp").c_str());
  // Programs find it as it is later on: free to speak, after the three units a second that it may send
  // (802.1AX 6.4.16).
  constexpr std::uint64_t second_ps = 1'000'000'000'000;
  bus_.sleep_ps(second_ps);
  return 0;
}

/// One agent for each port that has a cable. They and programs use one bus from now on.
int node::start_dcb() {
  bus_.share();
  for (unsigned port = 1; port <= device_.caps().num_ports; ++port) {  // those below a bond too
    if ((cabled_ >> (port - 1) & 1) == 0) continue;
    dcb_.push_back(std::make_unique<host_driver::dcb::service>(device_, bus_, port));
    if (const int error = dcb_.back()->start()) return error;
    sc_core::sc_spawn([agent = dcb_.back().get()] { agent->run(); },
                      (std::string(basename()) + "_dcb" + std::to_string(port)).c_str());
  }
  sc_core::sc_spawn([this] { tell_dcb_of_links(); }, (std::string(basename()) + "_dcb_links").c_str());
  return 0;
}

void node::tell_dcb_of_links() {
  for (unsigned known = device_.links(); device_.wait_links(known);) {
    const unsigned now = device_.links();
    for (const auto& agent : dcb_)
      if (((now ^ known) >> (agent->port() - 1) & 1) != 0) agent->set_link((now >> (agent->port() - 1) & 1) != 0);
    known = now;
  }
}

host_driver::dcb::service* node::dcb(unsigned port) {
  for (const auto& agent : dcb_)
    if (agent->port() == port) return agent.get();
  return nullptr;
}

void node::check_function_settings() const {
  const host_driver::config& said = device_.settings();
  if (said.function_max_rate_mbps != 0 && said.function_vlan == 0)
    throw sim::config_error("driver.functions.max_rate_mbps: must be 0 without driver.functions.vlan");
}

int node::start_functions() {
  const host_driver::config& said = device_.settings();
  if (function_settings_.empty()) {
    function_settings_.resize(guests_.size());
    for (host_driver::function_settings& s : function_settings_) {
      s.vlan = said.function_vlan;
      s.max_rate_mbps = said.function_max_rate_mbps;
    }
  }
  master_->mads().start(
      [this] { sc_core::sc_spawn([this] { master_->mads().run(); }, (std::string(basename()) + "_mads").c_str()); });
  if (const int error = master_->start(function_settings_)) return error;
  bus_.share();
  sc_core::sc_spawn([this] { master_->run(); }, (std::string(basename()) + "_functions").c_str());
  if (!host_driver::device::knows_virtual(device_.function_device_id()))
    throw sim::config_error(
        "adapter.identity.vf_device_id: the driver knows no such virtual function (0x1002, 0x1004, 0x1018)");
  const std::uint32_t id = device_.function_device_id() << 16 | 0x15b3;
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    guests_[i]->bus.assign(id, device_.function_bar() + i * device_.function_bar_bytes());
    if (const int error = guests_[i]->device.open()) return error;
  }
  return 0;
}

}  // namespace rnic::hosts
