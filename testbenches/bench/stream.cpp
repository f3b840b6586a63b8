// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::bench {

namespace {

constexpr unsigned most_posted = 32;  // requests of a call of post_send
// Of a receiver, until it asks whether anything is under way; and until it does not ask any more.
constexpr sim::time_ps long_silence = 100 * sim::ps_per_us, longest_silence = sim::ps_per_s;
constexpr sim::time_ps look_again = sim::ps_per_us;
constexpr int waited_poll = -1;

}  // namespace

stream::stream(hosts::pair_if& system, hosts::endpoint& sender, hosts::endpoint& receiver,
               const hosts::connection_options& connection, const stream_config& config)
    : system_(system), sender_(sender), receiver_(receiver), connection_(connection), config_(config) {
  connection_.send_sges = connection_.receive_sges = hosts::message_segments::needed(config.largest);
  headroom_ = connection.type == IBV_QPT_UD ? workloads::datagram_headroom : 0;
  stride_ = headroom_ + (std::uint64_t{std::max(config.largest, 64u)} + 63) / 64 * 64;
  if (config.verb->masked)
    masked_.assign(most_posted, host_driver::masked_atomic_wr(host_driver::driver_opcode::masked_compare_swap));
  lanes_.resize(config.qps);
  signal_every_ = config.signal_every != 0 ? config.signal_every : std::max(1u, std::min(config.depth / 2, 100u));
}

void stream::set_up(hosts::endpoint& at) {
  const bool sends = &at == &sender_;
  const std::uint64_t bytes = stride_ * places();
  hosts::buffer& mine = sends ? source_ : destination_;
  mine = hosts::make_buffer(at, bytes);
  // READ brings the receiver's bytes to the sender; counters begin at zero.
  const bool fills = sends != (config_.verb->reads && !config_.verb->atomic);
  for (std::uint64_t i = 0; i < bytes; ++i)
    mine.memory.pointer[i] = fills ? static_cast<std::uint8_t>((i * 2654435761u) >> 13) : std::uint8_t{0};
  const unsigned depth = sends ? config_.depth : connection_.receive_depth;
  const std::uint64_t entries = std::uint64_t{config_.qps} * depth + 64;
  (sends ? send_cq_ : receive_cq_) = workloads::new_cq(at, entries);
  unused_cq_[sends ? 0 : 1] = workloads::new_cq(at, 64);
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].ends[sends ? 0 : 1].create(hosts::in_turn(at, i), connection_, *(sends ? send_cq_ : unused_cq_[1]),
                                         *(sends ? unused_cq_[0] : receive_cq_));
  system_.meet();
  for (std::uint32_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].ends[sends ? 0 : 1].connect(lanes_[i].ends[sends ? 1 : 0], i, i);
  system_.meet();
}

void stream::fill_message(ibv_send_wr& wr, lane& l, std::uint32_t index, std::uint32_t size) {
  const std::uint64_t place = slot(index, l.posted);
  wr.wr_id = index;
  ++l.posted;
  if (l.posted % signal_every_ == 0 || l.posted == l.target) wr.send_flags = IBV_SEND_SIGNALED;
  if (!config_.verb->reads && size <= config_.inline_bytes) wr.send_flags |= IBV_SEND_INLINE;
  wr.imm_data = __builtin_bswap32(index);
  workloads::make_message(wr, *config_.verb, destination_.address(config_.verb->atomic ? slot(index) : place),
                          destination_.region->rkey, l.operations);
  if (config_.verb->atomic) ++l.operations;
  l.ends[0].aim(wr);
}

void stream::post(lane& l, std::uint32_t index, std::uint32_t size, std::uint64_t count) {
  std::array<ibv_send_wr, most_posted> plain;  // as much of it as is used is set below
  std::array<hosts::message_segments, most_posted> segments;
  const bool masked = config_.verb->masked;
  const auto request = [&](std::uint64_t k) -> ibv_send_wr& { return masked ? masked_[k] : plain[k]; };
  for (std::uint64_t k = 0; k < count; ++k) {
    ibv_send_wr& wr = request(k);
    wr = {};
    segments[k] = hosts::message_segments(source_.address(slot(index, l.posted)), size, source_.region->lkey);
    wr.sg_list = segments[k].list.data();
    wr.num_sge = segments[k].count;
    wr.next = k + 1 < count ? &request(k + 1) : nullptr;
    fill_message(wr, l, index, size);
  }
  l.ends[0].post_send(request(0));
}

/// Messages of the next call of post_send, 0: the window has no room for a batch.
std::uint64_t stream::postable(const lane& l) const {
  const std::uint64_t batch = std::clamp<std::uint64_t>(config_.batch, 1, most_posted);
  const std::uint64_t room = std::min<std::uint64_t>(config_.depth - (l.posted - l.completed), l.target - l.posted);
  return room < batch && l.target - l.posted >= batch ? 0 : std::min(room, batch);
}

void stream::note_room(std::uint32_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  with_room_[index / 64] = postable(lanes_[index]) != 0 ? with_room_[index / 64] | bit : with_room_[index / 64] & ~bit;
}

/// Posts what fits into the windows of all queue pairs; true when something was posted.
bool stream::fill(std::uint32_t size) {
  bool any = false;
  for (std::uint32_t word = 0; word < with_room_.size(); ++word) {
    for (std::uint64_t rest = with_room_[word]; rest != 0; rest &= rest - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest));
      post(lanes_[i], i, size, postable(lanes_[i]));
      note_room(i);
      any = true;
    }
  }
  return any;
}

bool stream::take_completions() {
  std::array<ibv_wc, workloads::poll_batch> wc{};
  const int n = sender_.device->poll_cq(send_cq_, workloads::poll_batch, wc.data());
  hosts::require(n, "poll_cq");
  note_poll(0, n);
  for (int i = 0; i < n; ++i) {
    if (wc[static_cast<unsigned>(i)].status != IBV_WC_SUCCESS)
      throw hosts::message_failed(wc[static_cast<unsigned>(i)]);
    lane& l = lanes_[wc[static_cast<unsigned>(i)].wr_id];
    const std::uint64_t done = std::min((l.completed / signal_every_ + 1) * signal_every_, l.target);
    completed_ += done - l.completed;
    l.completed = done;
    note_room(static_cast<std::uint32_t>(wc[static_cast<unsigned>(i)].wr_id));
  }
  return n > 0;
}

/// A sender's window may not have so many completions as a poll can take. wait_cq() ends with a poll that takes nothing
/// of what is there. One that finds nothing, behind a post, has its cost however much time is left.
void stream::note_poll(unsigned end, int found) {
  const hosts::endpoint& polls = end == 0 ? sender_ : receiver_;
  const host_driver::config& cost = system_.built_from(&polls == &system_.a() ? 0 : 1).driver;
  const double of_window = static_cast<double>(config_.qps) * std::max(1u, config_.depth / signal_every_);
  const double most = end == 0 ? std::min<double>(workloads::poll_batch, of_window) : workloads::poll_batch;
  const double spent = found == 0 ? 0 : static_cast<double>(cost.poll_ns) * sim::ps_per_ns;
  spare_ps_[end] += spent * std::max(0.0, 1 - std::max(found, 0) / most);
}

void stream::post_receives(std::uint32_t size) {
  for (std::uint32_t word = 0; word < without_receives_.size(); ++word) {
    for (std::uint64_t rest = std::exchange(without_receives_[word], 0); rest != 0; rest &= rest - 1) {
      const std::uint32_t i = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest));
      lane& l = lanes_[i];
      while (l.receives_posted < l.target && l.receives_posted - l.received < connection_.receive_depth) {
        // A receive that a lost message has left takes one of the next run, of whatever size.
        l.ends[1].post_receive(destination_.address(slot(i)), unreliable() ? config_.largest : size,
                               destination_.region->lkey, i);
        ++l.receives_posted;
      }
    }
  }
}

bool stream::take_receives() {
  std::array<ibv_wc, workloads::poll_batch> wc{};
  const int n = receiver_.device->poll_cq(receive_cq_, workloads::poll_batch, wc.data());
  hosts::require(n, "poll_cq");
  note_poll(1, n);
  if (n != 0) {
    const sim::time_ps now = system_.now_ps();
    longest_gap_ = std::max(longest_gap_, now - last_receive_);
    last_receive_ = now;
  }
  for (int i = 0; i < n; ++i) {
    if (const ibv_wc& c = wc[static_cast<unsigned>(i)]; c.status != IBV_WC_SUCCESS) {
      if (unreliable()) throw hosts::message_failed(c);
      continue;  // the sender is told what has failed, and ends the run
    }
    const std::uint64_t index = wc[static_cast<unsigned>(i)].wr_id;
    if (wc[static_cast<unsigned>(i)].opcode != config_.verb->received ||
        (config_.verb->immediate &&
         wc[static_cast<unsigned>(i)].imm_data != __builtin_bswap32(static_cast<std::uint32_t>(index))))
      throw std::runtime_error("a receive completed with another opcode or immediate than was sent");
    lanes_[index].ends[1].take_out(wc[static_cast<unsigned>(i)],
                                   destination_.at(slot(static_cast<std::uint32_t>(index))));
    ++lanes_[index].received;
    without_receives_[index / 64] |= std::uint64_t{1} << (index % 64);
    ++received_;
  }
  return n > 0;
}

void stream::start_lanes(bool sends, bool receives) {
  for (auto* mask : {sends ? &with_room_ : nullptr, receives ? &without_receives_ : nullptr})
    if (mask != nullptr) mask->assign((lanes_.size() + 63) / 64, 0);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    if (sends) note_room(i);
    if (receives) without_receives_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

void stream::start(const work& w, bool sends, bool receives) {
  const std::uint64_t lanes = lanes_.size();
  for (std::uint64_t i = 0; i < lanes; ++i) {
    lane& l = lanes_[i];
    if (receives) {
      l.receives_posted -= l.received;
      l.received = 0;
    }
    if (sends) l.posted = l.completed = 0;
    l.target = w.messages / lanes + (i < w.messages % lanes ? 1 : 0);
  }
  start_lanes(sends, receives);
  if (receives) {
    received_ = longest_gap_ = 0;
    last_receive_ = system_.now_ps();
  }
  if (sends) completed_ = 0;
  target_ = w.messages;
}

bool stream::ended_without_rest(sim::time_ps now) const {
  return unreliable() && completed_ >= target_ && in_vain(now - last_receive_);
}

bool stream::in_vain(sim::time_ps silence) const {
  const bool unusual = silence > std::max(long_silence, 4 * longest_gap_);  // a receiver may be slow
  return silence > longest_silence || (unusual && !system_.under_way());
}

stream* stream::receiving(const work& w) {
  return w.receives != nullptr && w.receives->receives() ? w.receives : nullptr;
}

void stream::prepare(const work& w) {
  stream* out = w.sends;
  stream* in = receiving(w);
  for (stream* s : {out, in})
    if (s != nullptr) s->start(w, s == out, s == in);
  if (in != nullptr) in->post_receives(w.size);
}

void stream::run_host(hosts::endpoint& e, const work& w) {
  stream* out = w.sends;
  stream* in = receiving(w);
  e.bus->spend_ps(1);
  e.bus->run_ahead(!e.device->is_bonded());  // a bond follows its links on that bus
  for (;;) {
    const bool sending = out != nullptr && out->completed_ < out->target_;
    const bool receiving = in != nullptr && in->received_ < in->target_;
    if (!sending && (!receiving || in->ended_without_rest(e.bus->now_ps()))) break;
    bool moved = false;
    if (sending) moved |= out->fill(w.size);
    if (sending) moved |= out->take_completions();
    if (receiving && in->take_receives()) {
      in->post_receives(w.size);
      moved = true;
    }
    if (moved) continue;
    // Nothing to do: the polling loop spins on the queue that will move next.
    std::array<ibv_wc, 1> none{};
    if (sending)
      e.device->wait_cq(out->send_cq_, 0, none.data(), receiving ? 200 * sim::ps_per_ns : 0);
    else
      e.device->wait_cq(in->receive_cq_, 0, none.data(), in->unreliable() ? long_silence : 0);
    if (sending)
      out->note_poll(0, waited_poll);
    else
      in->note_poll(1, waited_poll);
  }
  e.bus->run_ahead(false);
}

void stream::forget_content(std::uint32_t size) {
  if (config_.verb->atomic) return;
  const hosts::buffer& target = config_.verb->reads ? source_ : destination_;
  for (std::uint32_t i = 0; i < places(); ++i) std::memset(target.at(headroom_ + i * stride_), 0, size);
}

bool stream::has_arrived(std::uint32_t place, std::uint32_t size) const {
  const std::uint64_t at = headroom_ + place * stride_;
  return std::memcmp(source_.at(at), destination_.at(at), size) == 0;
}

void stream::check_content(std::uint32_t size) const {
  if (config_.verb->atomic) return check_counters();
  const sim::time_ps since = system_.now_ps();
  for (std::uint32_t i = 0; i < places(); ++i) {
    if (config_.places == 0 && lanes_[i].target == 0) continue;  // fewer messages than queue pairs
    while (unreliable() && !has_arrived(i, size) && !in_vain(system_.now_ps() - since))
      receiver_.bus->spend_ps(look_again);
    if (has_arrived(i, size)) continue;
    const std::string what = "the bytes of place " + std::to_string(i) + " did not arrive as they were sent";
    if (unreliable()) throw hosts::message_failed(what);
    throw hosts::content_differs(what);
  }
}

void stream::check_counters() const {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    std::uint64_t counter = 0, last = 0;
    std::memcpy(&counter, destination_.at(slot(i)), sizeof counter);
    std::memcpy(&last, source_.at(slot(i)), sizeof last);
    if (counter != lanes_[i].operations || (counter != 0 && last != counter - 1))
      throw hosts::content_differs("the counter of queue pair " + std::to_string(i) + " is " + std::to_string(counter) +
                                   " after " + std::to_string(lanes_[i].operations) +
                                   " operations, the last one found " + std::to_string(last));
  }
}

}  // namespace rnic::bench
