// SPDX-License-Identifier: Apache-2.0
#include "model/icm/key_engine.h"

#include <algorithm>
#include <utility>

namespace rnic::icm {

namespace {
bool binds_or_invalidates(key_operation::kind k) { return k != key_operation::kind::fast_register; }
}  // namespace

key_engine::key_engine(sim::clocked_block& owner, const key_engine_config& config, key_tables_if& tables)
    : request{{sim::fifo_in<key_operation>(owner), sim::fifo_in<key_operation>(owner)}},
      response{{sim::fifo_out<key_answer>(owner), sim::fifo_out<key_answer>(owner)}},
      revoke{{sim::fifo_out<key_revocation>(owner), sim::fifo_out<key_revocation>(owner),
              sim::fifo_out<key_revocation>(owner), sim::fifo_out<key_revocation>(owner)}},
      revoked{{sim::fifo_in<key_revocation>(owner), sim::fifo_in<key_revocation>(owner),
               sim::fifo_in<key_revocation>(owner), sim::fifo_in<key_revocation>(owner)}},
      dma(owner),
      owner_(owner),
      config_(sim::checked(config, owner.name() + ".keys")),
      tables_(tables),
      engine_(owner, "keys"),
      memory_(owner, tables, dma),
      list_(memory_, tables, config.page_list_entries),
      revocations_(revoke, revoked) {}

void key_engine::run() {
  memory_.take_response();
  if (!active_ && !take()) return;
  while (active_ && !memory_.in_flight() && step()) continue;
  if (engine_.is_free()) engine_.waits_for(active_ ? held_up_by() : nullptr);
}

const char* key_engine::held_up_by() const {
  static constexpr std::array<const char*, clients> asking{"requester", "responder"};
  if (memory_.in_flight()) return "memory";
  if (at_ == phase::revoke || at_ == phase::wait) return "holders";
  if (at_ == phase::answer) return asking[client_];
  return dma.request.can_push() ? "entries" : "dma";
}

bool key_engine::take() {
  if (told_.waits) {
    told_.waits = false;
    operation_ = key_operation{};
    operation_.what = told_.what;
    operation_.key = told_.key;
    client_ = from_register;
  } else {
    std::uint64_t asking = 0;
    for (unsigned i = 0; i < clients; ++i)
      if (request[i].can_pop()) asking |= std::uint64_t{1} << i;
    if (asking == 0) return false;
    client_ = static_cast<unsigned>(arbiter_.pick(asking));
    operation_ = request[client_].pop();
  }
  active_ = true;
  at_ = phase::begin;
  answer_ = {operation_.tag, key_status::ok};
  revokes_ = false;
  memory_.begin();
  engine_.start(config_.operation_cycles);
  return true;
}

// False: has to wait.
bool key_engine::step() {
  if (!engine_.is_free()) {
    engine_.await();
    return false;
  }
  switch (at_) {
    case phase::begin:
      at_ = operation_.what == key_operation::kind::revoke ? phase::revoke : phase::target;
      revocations_.begin(operation_.key);
      return true;
    case phase::target:
      return check_entry();
    case phase::region:
      return bind_region();
    case phase::pages:
      return read_pages();
    case phase::copy:
      return write_pages();
    case phase::old_region:
      return leave_region();
    case phase::store:
      return store_target();
    case phase::revoke:
      return send_revocations();
    case phase::wait:
      if (!revocations_.answered()) return false;
      at_ = phase::answer;
      return true;
    default:
      return give_answer();
  }
}

bool key_engine::fail(key_status status) {
  answer_.status = status;
  at_ = phase::answer;
  ++stats_.refused;
  return true;
}

bool key_engine::check_entry() {
  using kind = key_operation::kind;
  const bool by_index = operation_.what == kind::release;
  const std::uint32_t slot = by_index ? operation_.key : tables_.slot_of(operation_.key);
  const result loaded = memory_.load(slot, target_);
  if (loaded == result::waits) return false;
  if (loaded == result::failed) return fail(key_status::bad_key);
  if (const key_status s = check_target(target_, operation_); s != key_status::ok) return fail(s);
  const bool has_region = !target_.region() && target_.length != 0 && target_.lkey != 0;
  if (operation_.what == kind::fast_register) {
    list_.begin(operation_, target_.mtt_address);
    at_ = phase::pages;
  } else if (operation_.what == kind::bind && operation_.length != 0) {
    at_ = phase::region;
  } else {
    at_ = has_region ? phase::old_region : phase::store;
  }
  // What was valid and will not be any more. A window that keeps its key is the business of who binds it.
  old_key_ = target_.key << 8 | target_.key >> 24;
  const bool was_valid = target_.status() == mpt_entry::status_hardware && (target_.region() || target_.length != 0);
  revokes_ = was_valid && binds_or_invalidates(operation_.what) &&
             !(operation_.what == kind::bind && old_key_ == operation_.key);
  return true;
}

bool key_engine::bind_region() {
  const std::uint32_t slot = tables_.slot_of(operation_.lkey);
  if (!memory_.stored()) {
    mpt_entry e;
    const result loaded = memory_.load_to_change(slot, e);
    if (loaded == result::waits) return false;
    if (loaded == result::failed) return fail(key_status::bad_key);
    if (const key_status s = check_bound_region(e, operation_); s != key_status::ok) return fail(s);
    ++e.windows;
    return store(slot, e);
  }
  at_ = !target_.region() && target_.length != 0 && target_.lkey != 0 ? phase::old_region : phase::store;
  return true;
}

bool key_engine::leave_region() {
  const std::uint32_t slot = tables_.slot_of(target_.lkey);
  if (!memory_.stored()) {
    mpt_entry e;
    const result loaded = memory_.load_to_change(slot, e);
    if (loaded == result::waits) return false;
    if (loaded == result::done && e.region() && e.key == key_to_index(target_.lkey) && e.windows != 0) {
      --e.windows;
      return store(slot, e);
    }
  }
  at_ = phase::store;
  return true;
}

bool key_engine::read_pages() {
  if (const result read = memory_.answer(); read != result::waits) {
    at_ = phase::copy;
    engine_.start(config_.page_cycles * list_.pages_of_piece());
    return read == result::done || fail(key_status::memory_error);
  }
  if (list_.copied()) {
    tables_.forget_mtts(target_.mtt_address, list_.pages());
    at_ = phase::store;
    return true;
  }
  return list_.read_piece() == result::done;
}

bool key_engine::write_pages() {
  if (const result written = memory_.answer(); written != result::waits) {
    list_.piece_written();
    at_ = phase::pages;
    return written == result::done || fail(key_status::memory_error);
  }
  const result r = list_.write_piece();
  return r == result::failed ? fail(key_status::memory_error) : r == result::done;
}

bool key_engine::store(std::uint32_t slot, const mpt_entry& entry) {
  const result r = memory_.store(slot, entry);
  return r == result::failed ? fail(key_status::memory_error) : r == result::done;
}

/// The entry may have been taken back by firmware meanwhile: it is looked at again.
bool key_engine::store_target() {
  using kind = key_operation::kind;
  const std::uint32_t slot = operation_.what == kind::release ? operation_.key : tables_.slot_of(operation_.key);
  if (!memory_.stored()) {
    mpt_entry e;
    const result loaded = memory_.load_to_change(slot, e);
    if (loaded == result::waits) return false;
    if (loaded == result::failed) return fail(key_status::bad_key);
    if (const key_status s = check_target(e, operation_); s != key_status::ok) return fail(s);
    return store(slot, after(e, operation_));
  }
  at_ = revokes_ ? phase::revoke : phase::answer;
  revocations_.begin(old_key_);
  std::uint64_t& count = operation_.what == kind::fast_register ? stats_.registrations
                         : operation_.what == kind::bind        ? stats_.bindings
                                                                : stats_.invalidations;
  ++count;
  return true;
}

bool key_engine::send_revocations() {
  if (!revocations_.send()) return false;
  ++stats_.revocations;
  at_ = phase::wait;
  return true;
}

bool key_engine::give_answer() {
  if (client_ != from_register) {
    if (!response[client_].claim()) return false;
    response[client_].push(answer_);
  }
  active_ = false;
  waited_for_ = told_.waits;
  if (asked()) owner_.wake_next();
  return true;
}

void key_engine::dropped(std::uint64_t first, std::uint64_t last) {
  if (!active_) return;
  waited_for_ = true;
  memory_.dropped(first, last);  // the operation reads what it was reading again
}

void key_engine::release_window(std::uint32_t index) { tell(key_operation::kind::release, index); }

void key_engine::revoke_key(std::uint32_t key) { tell(key_operation::kind::revoke, key); }

void key_engine::tell(key_operation::kind what, std::uint32_t key) {
  told_ = {true, what, key};
  waited_for_ = true;
  owner_.wake_next();
}

}  // namespace rnic::icm
