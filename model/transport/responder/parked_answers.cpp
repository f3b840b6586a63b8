// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/parked_answers.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/responder/owed_answer.h"

namespace rnic::transport {

namespace {
constexpr std::uint32_t no_number = ~std::uint32_t{0};
}

parked_answers::parked_answers(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows,
                               acknowledgement& answers, answer_port& out)
    : owner_(owner),
      flows_(flows),
      answers_(answers),
      out_(out),
      numbers_(cfg.parked_answers, no_number),
      lines_(cfg.parked_answers) {}

void parked_answers::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".parked_answers", parked_);
}

void parked_answers::park() {
  if (sim::mostly(!flows_.news().short_of_places || !answers_.has_ready())) return;
  const flow_table& present = flows_;
  for (std::uint16_t i = 0; i != present.places(); ++i) {
    if (!has_nothing_but_answer(present[i]) || out_.has_place(present[i].ctx->dest)) continue;
    responder_flow& f = flows_[i];
    answers_.take_out(f);
    f.answers.parks = true;
    ++parked_;
    if (f.requests.held == 0) add(f);  // else it comes back for these
    return;
  }
}

void parked_answers::add(const responder_flow& f) {
  if (std::find(numbers_.begin(), numbers_.end(), f.qpn) != numbers_.end()) return;  // from an earlier time
  const auto free = std::find(numbers_.begin(), numbers_.end(), no_number);
  if (free == numbers_.end()) return;
  *free = f.qpn;
  lines_.put(static_cast<std::uint16_t>(free - numbers_.begin()), f.ctx->dest);
}

void parked_answers::bring_back() {
  if (std::vector<std::uint16_t>& brought = flows_.news().brought_back; sim::seldom(!brought.empty())) {
    answers_.go_on(flows_[brought.front()]);  // and wakes us
    brought.erase(brought.begin());
  }
  if (sim::mostly(back_ == no_link && lines_.empty())) return;
  if (back_ == no_link) begin();
  if (back_ == no_link) return;
  responder_flow& f = flows_[back_];
  using found = flow_table::found;
  const found context = f.stop ? found::unknown : flows_.resolve(f, context_user::answers);
  if (context == found::pending || context == found::no_port) return;
  f.answers.returns = false;
  back_ = no_link;
  owner_.wake_next();  // its answer goes on; the next one
}

void parked_answers::begin() {
  if (flows_.qpns().size() == flows_.places()) return;  // one that leaves wakes us
  const std::uint16_t entry = lines_.take(out_);
  if (entry == answer_lines::none) return;
  const std::uint32_t qpn = numbers_[entry];
  numbers_[entry] = no_number;
  if (!lines_.empty()) owner_.wake_next();
  if (flows_.halts().halted(qpn)) return;
  back_ = flows_.find(qpn);
  if (back_ == no_link) back_ = flows_.open(qpn);
  flows_[back_].answers.returns = true;
}

void parked_answers::forget(std::uint32_t qpn) {
  const auto entry = std::find(numbers_.begin(), numbers_.end(), qpn);
  if (entry == numbers_.end()) return;
  *entry = no_number;
  lines_.remove(static_cast<std::uint16_t>(entry - numbers_.begin()));
}

void parked_answers::clear() {
  for (std::uint32_t& n : numbers_)
    if (n != no_number) forget(n);
}

}  // namespace rnic::transport
