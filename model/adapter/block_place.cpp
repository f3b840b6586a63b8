// SPDX-License-Identifier: Apache-2.0
#include "model/adapter/block_place.h"

#include <algorithm>

#include "model/adapter/adapter.h"

namespace rnic::adapter {

namespace {

/// Blocks at the ends of a channel.
struct ends_of final : sim::channel_reader_if {
  explicit ends_of(const sim::channel& c) { c.describe(*this); }
  void ends(const sim::clocked_block* producer, const sim::clocked_block* consumer) override {
    from = producer;
    to = consumer;
  }
  void field(const char*, const char*, unsigned, std::uint64_t) override {}
  const sim::clocked_block* from = nullptr;
  const sim::clocked_block* to = nullptr;
};

/// Where a block has this interface, the one that comes into its place must have it as well; then: f(of, own).
template <class If, class F>
void take_over(sim::clocked_block& of, sim::clocked_block& own, const char* missing, F f) {
  auto* old = dynamic_cast<If*>(&of);
  if (old == nullptr) return;
  auto* its = dynamic_cast<If*>(&own);
  if (its == nullptr) throw sim::config_error(of.name() + ": own block: " + missing);
  f(*old, *its);
}

}  // namespace

block_place::block_place(sim::clocked_block& of, std::string adapter, const config& parameters,
                         const environment& around, beside_channels more)
    : of_(of), adapter_(std::move(adapter)), parameters_(parameters), around_(around), more_(more) {
  for (sim::channel* c : of.domain().channels()) {
    const ends_of at(*c);
    if (at.to == &of) ends_.push_back({c, direction::in});
    if (at.from == &of) ends_.push_back({c, direction::out});
  }
}

void block_place::refuse(const std::string& what) const { throw sim::config_error(name() + ": own block: " + what); }

bool block_place::has(const std::string& channel) const {
  return std::any_of(ends_.begin(), ends_.end(),
                     [&](const end& e) { return e.channel->name() == adapter_ + "." + channel; });
}

block_place::end& block_place::find(const std::string& channel, direction to) {
  std::string known;
  for (end& e : ends_) {
    if (e.channel->name() == adapter_ + "." + channel && e.to == to) return e;
    if (e.to == to) known += (known.empty() ? "" : ", ") + e.channel->name().substr(adapter_.size() + 1);
  }
  refuse("no channel " + channel + (to == direction::in ? " comes in here, but " : " goes out here, but ") + known);
}

void block_place::give_to(sim::clocked_block& block) {
  for (const end& e : ends_)
    if (!e.bound) refuse(e.channel->name() + " is not bound");
  block.take_place_of(of_);
  for (const auto& bind : bindings_) bind();
}

/// What has channels, registers, a reset, a connector, and no other caller of its functions.
std::map<std::string, sim::clocked_block*> adapter::places() {
  std::map<std::string, sim::clocked_block*> all;
  for (sim::clocked_block* b : std::initializer_list<sim::clocked_block*>{
           &scheduler_,     &doorbell_,    &descriptor_fetch_, &gather_,          &scatter_,     &ack_timers_,
           &receive_fetch_, &atomic_unit_, &read_generator_,   &answer_transmit_, &cnp_sender_,  &cnm_receiver_,
           &multicast_,     &steering_,    &translation_,      &completion_,      &icrc_insert_, &icrc_check_,
           &command_,       &endpoint_,    &requester_,        &responder_})
    all.emplace(b->basename(), b);
  for (const auto& p : parsers_) all.emplace(p->basename(), p.get());
  for (const auto& p : ports_) all.emplace(p->basename(), p.get());
  for (const auto& e : read_engines_) all.emplace(e->basename(), e.get());
  return all;
}

block_place::beside_channels adapter::beside(const std::string& block) {
  const bool answers = block == answer_transmit_.basename();
  gid::source_access sources;  // as make_gid_sources has given them: gather's, then those of the answers
  sources.shared = config_.gid_source.source_ports == 1;
  sources.turn = answers ? 1 : 0;
  for (unsigned port = 0; port < gids_.size(); ++port)
    sources.by_port[port] = gid_sources_[sources.turn * gids_.size() + port].get();
  const auto parser =
      std::find_if(parsers_.begin(), parsers_.end(), [&](const auto& p) { return block == p->basename(); });
  const auto mac = std::find_if(ports_.begin(), ports_.end(), [&](const auto& p) { return block == p->basename(); });
  const auto port = static_cast<unsigned>(mac != ports_.end()        ? mac - ports_.begin()
                                          : parser != parsers_.end() ? parser - parsers_.begin()
                                                                     : 0);
  const auto match = [&](std::size_t n) {
    return parser == parsers_.end() || n >= gid_matches_.size() ? nullptr : gid_matches_[n].get();
  };
  return {sources,
          {&gids_[0], &gids_[1]},
          icm_map_,
          requester_memories_,
          responder_memories_,
          answers ? traffic_.answers_sent : traffic_.requests_sent,
          block == responder_.basename() ? traffic_.requests_received : traffic_.answers_received,
          match(port),
          match(parsers_.size() + port),
          port,
          {firmware_port_.notices, command_access_, no_registers_, command_access_, dma_clients_}};
}

void adapter::put_in(const std::string& name, const block_factory& make, const environment& env) {
  const auto all = places();
  const auto found = all.find(name);
  if (found == all.end()) {
    std::string known;
    for (const auto& p : all) known += " " + p.first;
    throw sim::config_error(name_ + ": no place for a block " + name + " of one's own, but" + known);
  }
  sim::clocked_block& of = *found->second;
  if (!make) throw sim::config_error(of.name() + ": own block: the function that makes it is not given");
  block_place place(of, name_, config_, env, beside(name));
  env.statistics.forget(of.name());
  std::unique_ptr<sim::clocked_block> made = make(place);
  if (made == nullptr) throw sim::config_error(of.name() + ": own block: there is none");
  place.give_to(*made);
  take_over<register_bus::cr_target_if>(of, *made, "has no registers (cr_target_if)",
                                        [this](const auto& registers, auto& own) { cr_bus_.replace(registers, own); });
  take_over<register_bus::cr_parts>(of, *made, "has not the registers (cr_parts)", [&](auto& parts, auto& own) {
    if (parts.registers().size() != own.registers().size())
      throw sim::config_error(of.name() + ": own block: has registers of " + std::to_string(own.registers().size()) +
                              " parts, not " + std::to_string(parts.registers().size()));
    for (std::size_t n = 0; n < parts.registers().size(); ++n)
      cr_bus_.replace(*parts.registers()[n], *own.registers()[n]);
  });
  take_over<register_bus::reset_target_if>(
      of, *made, "cannot be reset (reset_target_if)",
      [this](auto& reset, auto& own) { firmware_port_.replace_reset_target(reset, own); });
  take_over<icm::translation_control_if>(of, *made, "does not do what registers say (translation_control_if)",
                                         [this](const auto&, auto& own) { icm_registers_.control(own); });
  take_over<mac::port_if>(of, *made, "has no connector (mac::port_if)", [this](mac::port_if& port, mac::port_if& own) {
    std::replace(connectors_.begin(), connectors_.end(), &port, &own);
  });
  take_over<pcie::register_file_if>(of, *made, "answers no reads (pcie::register_file_if)",
                                    [this](const auto&, auto& own) { command_access_.registers = &own; });
  take_over<pcie::function_listener_if>(of, *made, "is not told of functions (pcie::function_listener_if)",
                                        [this](const auto&, auto& own) { command_access_.functions = &own; });
  take_over<pcie::endpoint_if>(of, *made, "has no link (pcie::endpoint_if)",
                               [this](const auto&, pcie::endpoint_if& own) { slot_ = &own; });
  if (const auto* path = dynamic_cast<sc_core::sc_attribute<std::string>*>(of.get_attribute("parameters"))) {
    parameter_paths_.emplace_back(path->name(), path->value);
    made->add_attribute(parameter_paths_.back());
  }
  own_blocks_.push_back(std::move(made));
}

}  // namespace rnic::adapter
