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

/// What has channels, registers, a reset, and no caller of its functions.
std::map<std::string, sim::clocked_block*> adapter::places() {
  std::map<std::string, sim::clocked_block*> all;
  for (sim::clocked_block* b : std::initializer_list<sim::clocked_block*>{
           &scheduler_, &doorbell_, &descriptor_fetch_, &gather_, &scatter_, &ack_timers_, &receive_fetch_,
           &atomic_unit_, &answer_transmit_, &cnp_sender_, &cnm_receiver_, &multicast_, &completion_, &icrc_insert_,
           &icrc_check_})
    all.emplace(b->basename(), b);
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
  return {sources,
          {&gids_[0], &gids_[1]},
          icm_map_,
          requester_.descriptors(),
          requester_.withdrawn(),
          requester_.lists(),
          responder_.received(),
          responder_.roce_v2_port(),
          answers ? traffic_.answers_sent : traffic_.requests_sent};
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
  block_place place(of, name_, config_, env, beside(name));
  env.statistics.forget(of.name());
  std::unique_ptr<sim::clocked_block> made = make(place);
  if (made == nullptr) throw sim::config_error(of.name() + ": own block: there is none");
  place.give_to(*made);
  if (auto* registers = dynamic_cast<register_bus::cr_target_if*>(&of)) {
    auto* own = dynamic_cast<register_bus::cr_target_if*>(made.get());
    if (own == nullptr) throw sim::config_error(of.name() + ": own block: has no registers (cr_target_if)");
    cr_bus_.replace(*registers, *own);
  }
  if (auto* reset = dynamic_cast<register_bus::reset_target_if*>(&of)) {
    auto* own = dynamic_cast<register_bus::reset_target_if*>(made.get());
    if (own == nullptr) throw sim::config_error(of.name() + ": own block: cannot be reset (reset_target_if)");
    firmware_port_.replace_reset_target(*reset, *own);
  }
  if (const auto* path = dynamic_cast<sc_core::sc_attribute<std::string>*>(of.get_attribute("parameters"))) {
    parameter_paths_.emplace_back(path->name(), path->value);
    made->add_attribute(parameter_paths_.back());
  }
  own_blocks_.push_back(std::move(made));
}

}  // namespace rnic::adapter
