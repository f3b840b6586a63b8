// SPDX-License-Identifier: Apache-2.0
// Tests in which one side asks and the other side's adapter answers, without its software: WRITE, READ and atomics.
#include "testbenches/serve/perftest/one_sided.h"

#include <cstring>

#include "host_driver/hosts/connection.h"

namespace rnic::serve::perftest {

using namespace host_driver;

void one_sided::post_next(lane& l) {
  if (!atomic()) return post_request(l);
  std::optional<std::uint64_t>& value = counters_[index_of(l)][l.posted % places_.count];
  ibv_send_wr wr = request(l);
  hosts::make_atomic(wr, o_.compare_swap, l.peer.address + places_.offset(l.posted), l.peer.rkey, value.value_or(0));
  post(device_, l.qp, wr, l.out.sge(hosts::atomic_bytes, l.posted % depth_ * hosts::atomic_bytes));
  ++l.posted;
}

/// A counter of the peer's must be what our last operation on it made of it.
void one_sided::take(lane& l, application_result& r) {
  if (atomic()) {
    std::uint64_t found = 0;
    std::memcpy(&found, l.out.at(l.completed % depth_ * hosts::atomic_bytes), sizeof found);
    std::optional<std::uint64_t>& value = counters_[index_of(l)][l.completed % places_.count];
    if (value && *value != found) r.wrong_bytes += hosts::atomic_bytes;
    const bool changed = !o_.compare_swap || found == value.value_or(0);
    value = changed ? found + 1 : found;
  }
  ++l.completed;
  ++r.sent;
}

report one_sided::ask(application_result& r) {
  // No two atomics on one counter at a time: each one's result is known before the next.
  const std::uint64_t window =
      std::min<std::uint64_t>(atomic() ? std::min(depth_, places_.count) : depth_, iterations_);
  start();
  for (lane& l : lanes_)
    while (l.posted < window) post_next(l);
  std::uint64_t done = 0;
  for (const std::uint64_t all = iterations_ * lanes_.size(); done < all && !over();) {
    for (const ibv_wc& wc : completions()) {
      lane& l = lane_of(wc);
      take(l, r);
      ++done;
      if (l.posted < iterations_) post_next(l);
    }
  }
  r.took_ps = took();
  give_up();
  print_bandwidth(done, r.took_ps);
  return bandwidth(done, r.took_ps);
}

void one_sided::ask_one_by_one(application_result& r) {
  std::vector<sim::time_ps> times;
  lane& l = lanes_.front();
  r.took_ps = 0;
  start();
  while (l.completed < iterations_ && !over()) {
    const sim::time_ps posted_at = now();
    post_next(l);
    if (completions().empty()) break;
    take(l, r);
    times.push_back(now() - posted_at);
    r.took_ps += times.back();
  }
  print_latency(std::move(times));
}

void one_sided::report_all(application_result& r) {
  if (o_.verb == perftest_verb::read ? asks() : answers()) report_memory(r, o_.verb == perftest_verb::read);
  if (!atomic() || !answers()) return;
  r.counted = 0;
  for (const lane& l : lanes_) {
    for (unsigned i = 0; i < places_.count; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, l.in.at(places_.offset(i)), sizeof value);
      *r.counted += value;
    }
  }
}

void one_sided::ask_both_ways(application_result& r) {
  for (const std::uint32_t size : sizes()) {
    set_size(size);
    tell();
    const report ours = ask(r);
    if (o_.all_sizes) tell(true);
    exchange_->tell(ours);
  }
}

void one_sided::test(application_result& r) {
  counters_.assign(lanes_.size(), std::vector<std::optional<std::uint64_t>>(places_.count));
  tell();
  const std::vector<std::uint32_t> all = sizes();
  report ours;
  if (!o_.latency && o_.both_directions) {
    ask_both_ways(r);
  } else if (client()) {
    for (const std::uint32_t size : all) {
      set_size(size);
      if (o_.latency)
        ask_one_by_one(r);
      else
        ours = ask(r);
    }
  }
  if (!o_.latency && !o_.both_directions) {
    tell(true);
    const report theirs = exchange_->tell(ours);
    if (!client()) r.received = theirs.iterations * lanes_.size() * all.size();
  }
  end();
  report_all(r);
}

/// False: the end of a timed test came first.
bool write_latency::wait_for(lane& l, std::uint64_t message) {
  const std::uint64_t last = size_ - 1;
  const auto expected = static_cast<std::uint8_t>(message);
  while (*l.in.at(last) != expected) {
    if (over()) return false;
    if (!host_.bus().wait_for_write(l.in.memory.bus_address + last, 1, look_ps())) watch_->look();
  }
  watch_->progress();
  return true;
}

void write_latency::test(application_result& r) {
  tell();
  for (const std::uint32_t size : sizes()) {
    set_size(size);
    in_turns(r);
  }
  report_memory(r, false);
}

/// The server writes first; each waits for the other's last byte to change.
void write_latency::in_turns(application_result& r) {
  std::vector<sim::time_ps> times;
  lane& l = lanes_.front();
  start();
  while ((l.completed < iterations_ || l.received < iterations_) && !over()) {
    if (l.received < iterations_ && (client() || l.posted != 0)) {
      if (!wait_for(l, ++l.received)) break;
      ++r.received;
    }
    if (l.posted == iterations_) continue;
    const sim::time_ps posted_at = now();
    *l.out.at(size_ - 1) = static_cast<std::uint8_t>(l.posted + 1);
    post_request(l);
    if (completions().empty()) break;
    ++l.completed;
    ++r.sent;
    times.push_back(now() - posted_at);
  }
  r.took_ps = took();
  print_latency(std::move(times));
}

}  // namespace rnic::serve::perftest
