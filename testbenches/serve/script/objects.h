// SPDX-License-Identifier: Apache-2.0
// The verbs objects of a client, by the names that it gave them, and their end.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "host_driver/device.h"
#include "testbenches/serve/cm/cm_service.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/script/fields.h"

namespace rnic::serve::script {

// What a client may have; documented in the README of this folder.
inline constexpr std::size_t most_objects = 4096;              ///< of each kind
inline constexpr std::uint64_t most_memory_bytes = 256 << 20;  ///< in all of its regions, each byte counted once
inline constexpr std::size_t longest_name = 64;

/// Objects of one kind.
template <class T>
class shelf {
 public:
  explicit shelf(const char* kind) : kind_(kind) {}

  /// The name that a new object is to have: the client's (field `name`), or the kind with a number.
  std::string new_name(fields& f) {
    if (all_.size() >= most_objects)
      throw command_error("there are " + std::to_string(most_objects) + " objects of this kind, and no more");
    if (!f.has("name")) {
      std::string name;
      do name = kind_ + std::to_string(next_++);
      while (all_.count(name) != 0);
      return name;
    }
    std::string name = f.text("name", longest_name);
    if (name.empty() || all_.count(name) != 0)
      f.wrong("name", name.empty() ? "is empty" : "there is one called " + name);
    return name;
  }
  /// The object that field `field` names. without `field` the kind.
  T& at(fields& f, const char* field = nullptr) {
    const char* where = field != nullptr ? field : kind_;
    const std::string name = f.text(where, longest_name);
    const auto found = all_.find(name);
    if (found == all_.end()) f.wrong(where, "there is none called " + name);
    return found->second;
  }
  void put(const std::string& name, T object) { all_.emplace(name, std::move(object)); }
  void remove(const std::string& name) { all_.erase(name); }
  std::map<std::string, T>& all() { return all_; }
  const std::map<std::string, T>& all() const { return all_; }
  /// Name of the first for which `is` holds, or nothing.
  template <class Is>
  std::string name_of(Is is) const {
    for (const auto& [name, object] : all_)
      if (is(object)) return name;
    return {};
  }
  const char* kind() const { return kind_; }

 private:
  const char* kind_;
  unsigned next_ = 1;
  std::map<std::string, T> all_;
};

/// Memory that regions share.
struct memory {
  memory(host_driver::device& owner, std::size_t bytes) : device(owner), dma(owner.allocate_buffer(bytes)) {}
  ~memory() {
    if (dma.pointer != nullptr && !kept) device.free_buffer(dma);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  host_driver::device& device;
  host_driver::bus_if::dma_memory dma;
  bool kept = false;  ///< the device may still write there: it is not given back
};
struct region {
  host_driver::memory_region* mr = nullptr;
  std::shared_ptr<memory> bytes;
  std::size_t offset = 0, length = 0;
  std::uint8_t* pointer() const { return bytes->dma.pointer + offset; }
};

/// What commands work on: the host, and what this client has made.
struct session {
  session(served_host& h, cm_service& s, int gid) : host(h), device(h.device()), service(s), gid_index(gid) {}
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  /// Destroys what is there, in an order that the verbs allow. Gives the number of objects that would not go.
  std::size_t clear();
  /// Bytes of memory that belong to no region but these.
  std::uint64_t memory_bytes() const;
  /// Whether all of these bus addresses are memory of this client.
  bool owns(std::uint64_t address, std::uint64_t length) const;

  served_host& host;
  host_driver::device& device;
  cm_service& service;
  int gid_index;                                      ///< that commands take when they name none
  std::function<bool()> gone = [] { return false; };  ///< nobody waits for an answer any more
  std::uint64_t sent = 0, received = 0;               ///< successful completions
  shelf<host_driver::protection_domain*> pds{"pd"};
  shelf<region> mrs{"mr"};
  shelf<host_driver::memory_window*> mws{"mw"};
  shelf<host_driver::completion_queue*> cqs{"cq"};
  shelf<host_driver::shared_receive_queue*> srqs{"srq"};
  shelf<host_driver::xrc_domain*> xrcds{"xrcd"};
  shelf<host_driver::queue_pair*> qps{"qp"};
  shelf<host_driver::address_handle*> ahs{"ah"};
  std::set<std::uint64_t> listening;
  std::set<cm_service::connection_id> connections;
};

/// Throws command_error when a verb gave an error: 0 or positive is none.
void require_verb(int result, const char* verb);
[[noreturn]] void failed(const char* verb, int code);
template <class T>
T* made_by(T* object, const char* verb) {
  if (object == nullptr) failed(verb, errno);
  return object;
}

}  // namespace rnic::serve::script
