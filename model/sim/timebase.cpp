// SPDX-License-Identifier: Apache-2.0
#include "model/sim/timebase.h"

#include <algorithm>
#include <string>
#include <systemc>
#include <utility>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"

namespace rnic::sim {

void fail_invariant(const char* condition, const char* file, int line, const std::string& what) {
  throw invariant_error(std::string(file) + ":" + std::to_string(line) + ": " + condition + ": " + what);
}

// ---------------------------------------------------------------- timebase

/// The only process of the clocked world.
class timebase::process : public sc_core::sc_module {
 public:
#if !defined(IEEE_1666_SYSTEMC) || IEEE_1666_SYSTEMC < 202301L
  SC_HAS_PROCESS(process);
#endif
  process(const sc_core::sc_module_name& name, timebase& base) : sc_core::sc_module(name), base_(base) {
    SC_METHOD(serve);
    for (const sc_core::sc_event& e : wake_) sensitive << e;
    dont_initialize();
  }
  void wake_in(unsigned event, time_ps delay) { wake_[event].notify(sc_core::sc_time::from_value(delay)); }
  void take_back(unsigned event) { wake_[event].cancel(); }

 private:
  void serve() { base_.serve(); }
  timebase& base_;
  std::array<sc_core::sc_event, max_scheduled> wake_;
};

timebase::timebase(const options& opts) : options_(opts), rng_(opts.shuffle_seed) {
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS))
    throw config_error("sim.time_resolution: must be 1 ps");
  process_ = std::make_unique<process>(sc_core::sc_gen_unique_name("timebase"), *this);
}

timebase::~timebase() = default;

time_ps timebase::now_ps() const {
  if (const partition_turn* turn = partition_turn::here(); seldom(turn != nullptr)) return turn->now;
  return serving_ || ahead_ || apart_ ? now_ : sc_core::sc_time_stamp().value();
}

template <std::size_t... Domains>
constexpr auto timebase::loops_of(std::index_sequence<Domains...>) {
  return std::array<time_ps (timebase::*)(time_ps), sizeof...(Domains)>{&timebase::serve_to_horizon<Domains>...};
}

void timebase::add(clock_domain& domain) {
  domain.index_ = partitions_.add_domain();
  domains_.resize(domain.index_ + 1);
  domains_.back() = &domain;
  next_edges_.resize(domains_.size(), ~time_ps{0});
  for (clock_domain* d : domains_)
    if (d != nullptr) d->next_edge_ = &next_edges_[d->index_];  // they have moved
  static constexpr auto loops = loops_of(std::make_index_sequence<most_unrolled + 1>{});
  to_horizon_ = loops[domains_.size() <= most_unrolled ? domains_.size() : any_number];
}

void timebase::remove(clock_domain& domain) {
  domains_[domain.index_] = nullptr;
  next_edges_[domain.index_] = ~time_ps{0};
}

void timebase::remove(deferred_work& work) {
  const auto is_it = [&work](const auto& d) { return d.first == &work; };
  deferred_.erase(std::remove_if(deferred_.begin(), deferred_.end(), is_it), deferred_.end());
}

void timebase::request(std::size_t domain, time_ps when) {
  if (partition_turn* turn = partition_turn::here(); seldom(turn != nullptr)) {
    RNIC_ASSERT(partitions_.partition_of(domain) == turn->partition,
                "a partition acts on another one beside all crossings");
    turn->lowered = std::min(turn->lowered, when);
    return;
  }
  partitions_.request(domain, when);
  RNIC_ASSERT(partitions_.can_ask(domain, when), "a partition acts on another one within the lookahead");
  if (partitions_.is_foreign(domain)) return;
  if (serving_)
    lowered_ = std::min(lowered_, when);  // serve() schedules the earliest edge itself when it is done
  else if (seldom(!ahead_))               // pass() and leave() find it
    schedule(when);
}

void timebase::schedule(time_ps when) {
  if (scheduled_count_ != 0 && scheduled_[scheduled_count_ - 1] <= when) return;  // asks again at that time
  const time_ps now = sc_core::sc_time_stamp().value();
  RNIC_ASSERT(when >= now, "edge asked for in the past");
  if (scheduled_count_ == max_scheduled) --scheduled_count_;  // the kernel replaces that one's notification
  scheduled_[scheduled_count_] = when;
  process_->wake_in(scheduled_count_++, when - now);
}

void timebase::notify(sc_core::sc_event& event, time_ps when) {
  when = std::max(when, now_ps());
  if (partition_turn* turn = partition_turn::here(); seldom(turn != nullptr)) {
    turn->notified.emplace_back(&event, when);
    turn->horizon = std::min(turn->horizon, when);
    return;
  }
  event.notify(sc_core::sc_time::from_value(when - sc_core::sc_time_stamp().value()));
  horizon_ = std::min(horizon_, when);
}

/// Whether the edge at `next` comes before everything else that is due.
bool timebase::may_serve(time_ps next) {
  if (next >= ahead_until_) return false;
  if (next < horizon_) return true;
  const time_ps others = sc_core::sc_time_to_pending_activity().value();
  horizon_ = std::min(ahead_until_, others > ~time_ps{0} - kernel_now_ ? ~time_ps{0} : kernel_now_ + others);
  RNIC_ASSERT(now_ == kernel_now_ || horizon_ >= now_ || partitions_.have_windows(),
              "an event was notified in the kernel's past: timebase::notify");
  return next < horizon_;
}

void timebase::serve() {
  ++activations_;
  now_ = kernel_now_ = sc_core::sc_time_stamp().value();
  apart_ = false;
  while (scheduled_count_ != 0 && scheduled_[scheduled_count_ - 1] <= now_) --scheduled_count_;
  serving_ = true;
  horizon_ = 0;
  if (partitions_.have_windows()) {
    while (scheduled_count_ != 0) process_->take_back(--scheduled_count_);  // may_serve() would see them
    windows_.serve();
  } else {
    time_ps next = now_;
    do next = (this->*to_horizon_)(next);
    while (may_serve(next));
    lowered_ = next;
    catch_up(std::max(horizon_, now_ + 1));
  }
  serving_ = false;
  if (lowered_ != ~time_ps{0}) schedule(lowered_);
}

/// The edge of domain `i`, if it is due at `now`; `next` becomes its next one, if that is earlier.
inline void timebase::serve_domain(std::size_t i, time_ps now, time_ps& next) {
  time_ps edge = next_edges_[i];
  if (edge <= now) edge = domains_[i]->serve(now);
  next = std::min(next, edge);
}

/// The edges that are due at `now`; returns when the next one is. Which domains are due is a branch for each, which the
/// machine foresees; what a search finds it would wait for.
template <std::size_t Domains>
inline time_ps timebase::serve_due(time_ps now) {
  time_ps next = lowered_ = ~time_ps{0};
  if constexpr (Domains == any_number) {
    partitions_.open(now, now + 1);
    for (std::size_t p = 0; p != partitions_.size(); ++p) {
      if (partitions_.of(p).next <= now) {
        partitions_.enter(p);
        partitions_.leave(serve_partition(p, now, lowered_), now);
      }
    }
    for (std::size_t p = 0; p != partitions_.size(); ++p) next = std::min(next, partitions_.of(p).next);
  } else {
#pragma GCC unroll 8
    for (std::size_t i = 0; i != Domains; ++i) serve_domain(i, now, next);
  }
  return std::min(next, lowered_);
}

/// The edges from that at `next` on that come before everything else; returns when the first other one is.
template <std::size_t Domains>
time_ps timebase::serve_to_horizon(time_ps next) {
  do {
    now_ = next;
    next = serve_due<Domains>(next);
  } while (next < horizon_);
  return next;
}

/// The edges of one partition that are due at `now`; returns when its next one is. `lowered`: where request() says what
/// it is asked for.
time_ps timebase::serve_partition(std::size_t p, time_ps now, time_ps& lowered) {
  time_ps next = lowered = ~time_ps{0};
  const auto [first, end] = partitions_[p];
  for (std::size_t i = first; i != end; ++i) serve_domain(i, now, next);
  return std::min(next, lowered);
}

time_ps timebase::earliest_edge() const { return *std::min_element(next_edges_.begin(), next_edges_.end()); }

void timebase::catch_up(time_ps before) {
  for (const auto& [work, partition] : deferred_) work->catch_up(before);
}

/// In a program: whether `when` comes before everything that is due in the kernel, but for the edges. Their
/// notifications are in the way of the question; those up to `when` have served their purpose when that is served here,
/// and their records in the kernel go as soon as it gets there.
bool timebase::is_first(time_ps when) {
  if (when < horizon_) return true;
  while (scheduled_count_ != 0 && scheduled_[scheduled_count_ - 1] <= when) process_->take_back(--scheduled_count_);
  return may_serve(when);
}

/// The order of things is that of a process that waits in the kernel: at an instant the edges come first, and what was
/// deferred is caught up with before the program looks.
bool timebase::pass(time_ps until) {
  RNIC_ASSERT(!serving_, "a tick cannot wait");
  if (ahead_until_ == 0 || partitions_.have_windows()) return false;
  kernel_now_ = sc_core::sc_time_stamp().value();
  if (!ahead_) now_ = kernel_now_;
  ahead_ = serving_ = true;
  ended_ = false;
  horizon_ = 0;
  time_ps next = earliest_edge();
  while (!ended_ && next <= until && is_first(next)) {
    if (until < horizon_) horizon_ = until + 1;
    next = (this->*to_horizon_)(next);
  }
  bool there = ended_;
  if (!there && next > until && is_first(until)) {
    there = true;
    if (now_ != until) {
      now_ = until;
      catch_up(until);  // may ask for an edge at this instant
      if (earliest_edge() == until) serve_due<any_number>(until);
    }
  }
  catch_up(there ? now_ + 1 : std::max(horizon_, now_ + 1));
  serving_ = false;
  if (!there) leave();
  return there;
}

void timebase::leave() {
  if (!std::exchange(ahead_, false)) return;
  const time_ps next = earliest_edge();
  if (next != ~time_ps{0}) schedule(next);
}

unsigned timebase::pick_id(std::uint64_t taken) {
  unsigned id = 0;
  if (options_.shuffle_seed == 0) {
    while ((taken >> id) & 1) ++id;
    return id;
  }
  do id = static_cast<unsigned>(rng_() % clock_domain::max_blocks);
  while ((taken >> id) & 1);
  return id;
}

// ---------------------------------------------------------------- clock_domain

clock_domain::clock_domain(const std::string& name, timebase& base, clock_period period)
    : clock_state(clock_edges(name, period)), hierarchy_object(name, "clock_domain"), base_(base) {
  base_.add(*this);
}

clock_domain::~clock_domain() { base_.remove(*this); }

cycle_t clock_domain::passed_edge() const { return edges_.at_or_before(base_.now_ps()); }

void clock_domain::add(clocked_block& block) {
  if ((all_ | watcher_bit) == ~std::uint64_t{0})
    throw config_error(name() + ": more than " + std::to_string(max_blocks) + " blocks in one clock domain");
  const unsigned id = base_.pick_id(all_);
  block.id_ = id;
  blocks_[id] = &block;
  all_ |= std::uint64_t{1} << id;
  if (!base_.opts().always_tick) return;
  forced_ = all_;
  at_each_ |= all_;
  if (next_ == never) {
    set_next(edge_at_or_after(base_.now_ps() + 1));
    base_.request(index_, *next_edge_);
  }
}

void clock_domain::remove(clocked_block& block) {
  const std::uint64_t bit = std::uint64_t{1} << block.id_;
  all_ &= ~bit;
  forced_ &= ~bit;
  at_each_ &= ~bit;
  blocks_[block.id_] = nullptr;
  wheel_.forget(block.id_);
  soon_ &= ~bit;
}

/// Near is what has a slot in the wheel, from the last edge on that was served. For what has none, edges that were
/// slept through count as served, but for one at this very instant, which may still be served. `never` + 1 is edge 0.
void clock_domain::wake_slow(unsigned id, cycle_t when) {
  if (seldom(!wake_wheel::is_near(when - (served_ + 1)))) {
    if (!serving_) {
      const cycle_t passed = edge_at_or_after(base_.partitions_.passed(index_, base_.now_ps())) - 1;
      if (passed + 1 > served_ + 1) served_ = passed;
    }
    RNIC_ASSERT(served_ == never || when > served_, name() + ": wake-up asked for an edge that has passed");
  }
  if (mostly(wake_wheel::is_near(when - (served_ + 1))))
    wheel_.mark(id, when);
  else
    wheel_.keep_far(id, when);
  if (mostly(when < next_)) {
    set_next(when);
    RNIC_ASSERT(*next_edge_ >= base_.partitions_.passed(index_, base_.now_ps()),
                name() + ": wake-up asked for an edge that has passed");
    base_.request(index_, *next_edge_);
  }
}

clock_domain::between::between(clock_domain& domain) : domain_(domain) {
  RNIC_ASSERT(!domain.serving_, domain.name() + ": an edge is being served");
  domain.served_ = domain.passed_edge();
  domain.served_ps_ = domain.passed_edge_ps();
  domain.serving_ = true;
}

clock_domain::between::~between() {
  clock_domain& d = domain_;
  d.serving_ = false;
  const cycle_t next = d.soon_ != 0 ? d.served_ + 1 : d.wheel_.next_after(d.served_);
  if (next == d.next_) return;
  d.set_next(next);
  d.base_.request(d.index_, *d.next_edge_);
}

/// One function for each place of a block: the machine foresees which one is called and begins with the block before
/// it has found out that it is this one's turn.
template <unsigned Id>
void clock_domain::tick_one(clock_domain& d) {
  if constexpr (Id != max_blocks) {
    d.blocks_[Id]->tick();
  } else {
    --d.ticks_;  // is none of a block
    d.watcher_->served(d);
  }
}

template <std::size_t... Id>
constexpr auto clock_domain::ticks_of(std::index_sequence<Id...>) {
  return std::array<void (*)(clock_domain&), sizeof...(Id)>{&tick_one<Id>...};
}

time_ps clock_domain::serve(time_ps now) {
  static constexpr auto tick_of_each = ticks_of(std::make_index_sequence<places>{});
  RNIC_ASSERT(*next_edge_ == now, name() + ": served at a time that is not its edge");
  served_ = next_;
  served_ps_ = now;
  serving_ = true;
  std::uint64_t mask = std::exchange(soon_, forced_) | at_each_ | wheel_.take(served_);
  ++active_edges_;
  while (mask != 0) {
    const unsigned id = static_cast<unsigned>(__builtin_ctzll(mask));
    mask &= mask - 1;
    ++ticks_;
    tick_of_each[id](*this);
  }
  serving_ = false;
  set_next(soon_ != 0 ? served_ + 1 : wheel_.next_after(served_));
  return *next_edge_;
}

namespace {
/// From a list of what a domain has, which keeps its order.
template <class T>
void take_out(std::vector<T*>& list, T& one) {
  list.erase(std::find(list.begin(), list.end(), &one));
}
}  // namespace

void clock_domain::remove(server& s) { take_out(servers_, s); }
void clock_domain::remove(memory_ports& m) { take_out(memories_, m); }
void clock_domain::remove(channel& c) { take_out(channels_, c); }

void clock_domain::set_next(cycle_t edge) {
  next_ = edge;
  *next_edge_ = edge == never ? ~time_ps{0} : edge_time(edge);
}

// ---------------------------------------------------------------- clocked_block

clocked_block::clocked_block(const std::string& name, clock_domain& domain)
    : ticked(domain), hierarchy_module(name, "clocked_block") {
  domain_.add(*this);
}

clocked_block::~clocked_block() { domain_.remove(*this); }

void clocked_block::take_place_of(clocked_block& of) {
  RNIC_ASSERT(&of.domain() == &domain_ && &of != this, name() + ": no place in the clock domain of " + of.name());
  domain_.remove(*this);
  id_ = of.id_;
  domain_.blocks_[id_] = this;
}

}  // namespace rnic::sim
