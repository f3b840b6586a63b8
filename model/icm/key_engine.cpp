// SPDX-License-Identifier: Apache-2.0
#include "model/icm/key_engine.h"

#include <algorithm>
#include <utility>

namespace rnic::icm {

namespace {
constexpr std::uint64_t page_entry_bytes = 8;
constexpr std::uint64_t table_page = 4096;

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
      pages_(config.page_list_entries * page_entry_bytes) {}

void key_engine::run() {
  take_response();
  if (!active_ && !take()) return;
  while (active_ && !in_flight_ && step()) continue;
  if (engine_.is_free()) engine_.waits_for(active_ ? held_up_by() : nullptr);
}

const char* key_engine::held_up_by() const {
  static constexpr std::array<const char*, clients> asking{"requester", "responder"};
  if (in_flight_) return "memory";
  if (at_ == phase::revoke || at_ == phase::wait) return "holders";
  if (at_ == phase::answer) return asking[client_];
  return dma.request.can_push() ? "entries" : "dma";
}

bool key_engine::take() {
  if (told_) {
    told_ = false;
    operation_ = key_operation{};
    operation_.what = told_what_;
    operation_.key = told_key_;
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
  revokes_ = have_ = failed_ = stored_ = false;
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
      revoked_key_ = operation_.key;
      sent_ = revoking_ = 0;
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
      return await_holders();
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
  if (!load(slot, target_)) return false;
  if (failed_) return fail(key_status::bad_key);
  if (const key_status s = check_target(target_, operation_); s != key_status::ok) return fail(s);
  const bool has_region = !target_.region() && target_.length != 0 && target_.lkey != 0;
  if (operation_.what == kind::fast_register) {
    pages_total_ = pages_of(operation_);
    pages_done_ = 0;
    at_ = phase::pages;
  } else if (operation_.what == kind::bind && operation_.length != 0) {
    at_ = phase::region;
  } else {
    at_ = has_region ? phase::old_region : phase::store;
  }
  // What was valid and will not be any more. A window that keeps its key is the business of who binds it.
  const std::uint32_t old_key = target_.key << 8 | target_.key >> 24;
  const bool was_valid = target_.status() == mpt_entry::status_hardware && (target_.region() || target_.length != 0);
  revokes_ = was_valid && binds_or_invalidates(operation_.what) &&
             !(operation_.what == kind::bind && old_key == operation_.key);
  revoked_key_ = old_key;
  return true;
}

bool key_engine::bind_region() {
  const std::uint32_t slot = tables_.slot_of(operation_.lkey);
  if (!stored_) {
    mpt_entry e;
    if (!may_change(slot) || !load(slot, e)) return false;
    if (failed_) return fail(key_status::bad_key);
    if (const key_status s = check_bound_region(e, operation_); s != key_status::ok) return fail(s);
    ++e.windows;
    return store(slot, e);
  }
  stored_ = false;
  at_ = !target_.region() && target_.length != 0 && target_.lkey != 0 ? phase::old_region : phase::store;
  return true;
}

bool key_engine::leave_region() {
  const std::uint32_t slot = tables_.slot_of(target_.lkey);
  if (!stored_) {
    mpt_entry e;
    if (!may_change(slot) || !load(slot, e)) return false;
    if (!failed_ && e.region() && e.key == key_to_index(target_.lkey) && e.windows != 0) {
      --e.windows;
      return store(slot, e);
    }
    failed_ = false;
  }
  stored_ = false;
  at_ = phase::store;
  return true;
}

bool key_engine::read_pages() {
  if (have_) {
    have_ = false;
    at_ = phase::copy;
    engine_.start(config_.page_cycles * pages_here_);
    return !failed_ || fail(key_status::memory_error);
  }
  if (pages_done_ == pages_total_) {
    tables_.forget_mtts(target_.mtt_address, pages_total_);
    at_ = phase::store;
    return true;
  }
  if (!dma.request.claim()) return false;
  const std::uint64_t into = target_.mtt_address + pages_done_ * page_entry_bytes;
  const std::uint64_t to_boundary = (table_page - into % table_page) / page_entry_bytes;
  pages_here_ = std::min({pages_total_ - pages_done_, std::uint64_t{config_.page_list_entries}, to_boundary});
  pcie::dma_request r;
  r.function = operation_.function;
  r.address = operation_.page_list + pages_done_ * page_entry_bytes;
  r.length = static_cast<std::uint32_t>(pages_here_ * page_entry_bytes);
  r.destination = pages_.data();
  dma.request.push(std::move(r));
  in_flight_ = true;
  return true;
}

bool key_engine::write_pages() {
  if (have_) {
    have_ = false;
    pages_done_ += pages_here_;
    at_ = phase::pages;
    return !failed_ || fail(key_status::memory_error);
  }
  std::uint64_t bus = 0;
  if (!tables_.mtt_address(target_.mtt_address + pages_done_ * page_entry_bytes, bus))
    return fail(key_status::memory_error);
  if (!dma.request.claim()) return false;
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = bus;
  r.length = static_cast<std::uint32_t>(pages_here_ * page_entry_bytes);
  r.source = pages_.data();
  dma.request.push(std::move(r));
  in_flight_ = true;
  return true;
}

/// The entry may have been taken back by firmware meanwhile: it is looked at again.
bool key_engine::store_target() {
  using kind = key_operation::kind;
  const std::uint32_t slot = operation_.what == kind::release ? operation_.key : tables_.slot_of(operation_.key);
  if (!stored_) {
    mpt_entry e;
    if (!may_change(slot) || !load(slot, e)) return false;
    if (failed_) return fail(key_status::bad_key);
    if (const key_status s = check_target(e, operation_); s != key_status::ok) return fail(s);
    return store(slot, after(e, operation_));
  }
  stored_ = false;
  at_ = revokes_ ? phase::revoke : phase::answer;
  sent_ = revoking_ = 0;
  std::uint64_t& count = operation_.what == kind::fast_register ? stats_.registrations
                         : operation_.what == kind::bind        ? stats_.bindings
                                                                : stats_.invalidations;
  ++count;
  return true;
}

bool key_engine::send_revocations() {
  for (unsigned i = 0; i < holders; ++i) {
    if ((sent_ >> i & 1) != 0 || !revoke[i].bound()) continue;
    if (!revoke[i].claim()) return false;
    revoke[i].push({revoked_key_});
    sent_ |= 1u << i;
  }
  revoking_ = sent_;
  ++stats_.revocations;
  at_ = phase::wait;
  return true;
}

bool key_engine::await_holders() {
  for (unsigned i = 0; i < holders; ++i)
    if (revoked[i].can_pop()) {
      revoked[i].drop();
      revoking_ &= ~(1u << i);
    }
  if (revoking_ != 0) return false;
  at_ = phase::answer;
  return true;
}

bool key_engine::give_answer() {
  if (client_ != from_register) {
    if (!response[client_].claim()) return false;
    response[client_].push(answer_);
  }
  active_ = false;
  waited_for_ = told_;
  if (asked()) owner_.wake_next();
  return true;
}

// ---------------------------------------------------------------- memory

/// False: not there yet. `failed_`: it cannot be read.
bool key_engine::load(std::uint32_t slot, mpt_entry& out) {
  if (have_ && slot_ == slot) {
    have_ = false;
    out = loaded_;
    return true;
  }
  have_ = false;
  if (const mpt_entry* e = tables_.cached(slot); e != nullptr) {
    if (!may_read(slot)) return false;
    out = *e;
    return true;
  }
  std::uint64_t bus = 0;
  if (!tables_.mpt_address(slot, bus)) {
    failed_ = true;
    return true;
  }
  if (!dma.request.claim()) return false;
  pcie::dma_request r;
  r.address = bus;
  r.length = mpt_bytes;
  r.destination = bytes_.data();
  dma.request.push(std::move(r));
  slot_ = slot;
  reading_ = in_flight_ = true;
  return false;
}

// One entry a cycle, which is in a register as long as the cycle lasts.
bool key_engine::may_read(std::uint32_t slot) {
  if (read_at_ == owner_.now()) {
    if (read_slot_ != slot) owner_.wake_next();
    return read_slot_ == slot;
  }
  if (!tables_.may_read()) return false;
  read_at_ = owner_.now();
  read_slot_ = slot;
  return true;
}

// An entry that is read to be changed is read when it can be written.
bool key_engine::may_change(std::uint32_t slot) {
  return dma.request.claim() && (tables_.cached(slot) == nullptr || tables_.may_replace());
}

bool key_engine::store(std::uint32_t slot, const mpt_entry& entry) {
  std::uint64_t bus = 0;
  if (!tables_.mpt_address(slot, bus)) return fail(key_status::memory_error);
  if (!dma.request.claim() || !tables_.may_replace()) return false;
  tables_.replace(slot, entry, true);
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = bus;
  r.length = mpt_bytes;
  encode_mpt(entry, r.bytes.data());
  dma.request.push(std::move(r));
  slot_ = slot;
  storing_ = in_flight_ = true;
  return true;
}

void key_engine::take_response() {
  if (!dma.response.can_pop()) return;
  failed_ = dma.response.front().status != pcie::dma_status::ok;
  const bool keeps = reading_ && !stale_ && !failed_;
  if (keeps && !tables_.may_replace()) return;
  dma.response.drop();
  in_flight_ = false;
  if (storing_) {
    storing_ = false;
    stored_ = true;
    failed_ = false;  // the port is off: a reset takes everything back
    owner_.wake_next();
  } else if (reading_) {
    have_ = !stale_;
    loaded_ = mpt_entry{};
    loaded_.flags = mpt_entry::status_software << 28;
    if (!failed_) loaded_ = decode_mpt(bytes_.data());
    if (keeps) tables_.replace(slot_, loaded_, false);
    failed_ = false;
  } else {
    have_ = true;
  }
  reading_ = stale_ = false;
}

void key_engine::dropped(std::uint64_t first, std::uint64_t last) {
  if (!active_) return;
  waited_for_ = true;
  if (reading_ && slot_ >= first && slot_ <= last) stale_ = true;  // the operation reads it again
}

void key_engine::release_window(std::uint32_t index) { tell(key_operation::kind::release, index); }

void key_engine::revoke_key(std::uint32_t key) { tell(key_operation::kind::revoke, key); }

void key_engine::tell(key_operation::kind what, std::uint32_t key) {
  told_what_ = what;
  told_key_ = key;
  told_ = waited_for_ = true;
  owner_.wake_next();
}

}  // namespace rnic::icm
