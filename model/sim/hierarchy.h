// SPDX-License-Identifier: Apache-2.0
// The adapter in SystemC's hierarchy of objects: what it takes to be found by sc_find_object() and to be walked.
#pragma once

// Of <systemc> this is what a block needs; every block reads it.
#include <sysc/kernel/sc_module.h>
#include <sysc/kernel/sc_object.h>

#include <optional>
#include <string>

// IEEE 1666-2023 has a class for what older kernels do with two calls. The kernel's number is in a header that each
// source file pays for with an object; SystemC 3.0 is known by a header that it brought.
#if __has_include(<sysc/kernel/sc_stage_callback_if.h>)
#define RNIC_SYSTEMC_HAS_SCOPES 1
#else
#define RNIC_SYSTEMC_HAS_SCOPES 0
#endif

namespace rnic::sim {

/// Where an object with a given full name belongs. SystemC gives an object its leaf name and takes what is above it
/// from the module that is being built; here an object says its full name ("a.adapter.requester") and comes below the
/// module of the name before the last dot, whichever is being built. So a block built by a block, a channel made by the
/// adapter and one made after elaboration all get their place. To be used as a temporary of the base class's
/// initialiser.
///
/// A name without dots belongs to what is being built, as SystemC has it. One whose module does not exist (a test that
/// builds "cable.faults" alone) gets '_' for its dots in the hierarchy, and keeps the given text as name().
class hierarchy_place {
 public:
  explicit hierarchy_place(const std::string& full_name);
  ~hierarchy_place();
  hierarchy_place(const hierarchy_place&) = delete;
  hierarchy_place& operator=(const hierarchy_place&) = delete;

  const char* leaf() const { return leaf_.c_str(); }
  /// What the object is called: the kernel's name for it, or the given one when it is not below its module.
  static std::string name_of(const sc_core::sc_object& object, const std::string& given);

 private:
  std::string leaf_;
#if RNIC_SYSTEMC_HAS_SCOPES
  std::optional<sc_core::sc_hierarchy_scope> inside_;
#else
  bool inside_ = false;
#endif
};

/// What is in the hierarchy and has no parts: clock domains and channels. May be made at any time.
class hierarchy_object : public sc_core::sc_object {
 public:
  /// `kind`: string literal.
  hierarchy_object(const std::string& full_name, const char* kind)
      : sc_core::sc_object(hierarchy_place(full_name).leaf()),
        kind_(kind),
        name_(hierarchy_place::name_of(*this, full_name)) {}
  hierarchy_object(const hierarchy_object&) = delete;
  hierarchy_object& operator=(const hierarchy_object&) = delete;

  const char* kind() const override { return kind_; }
  /// Full name: "a.adapter.clock".
  const std::string& name() const { return name_; }

 private:
  const char* kind_;
  std::string name_;
};

/// What has parts: blocks. A module without processes; SystemC takes modules only until elaboration has ended.
class hierarchy_module : public sc_core::sc_module {
 public:
  /// `kind`: string literal.
  hierarchy_module(const std::string& full_name, const char* kind)
      : sc_core::sc_module(sc_core::sc_module_name(hierarchy_place(full_name).leaf())),
        kind_(kind),
        name_(hierarchy_place::name_of(*this, full_name)) {}
  hierarchy_module(const hierarchy_module&) = delete;
  hierarchy_module& operator=(const hierarchy_module&) = delete;

  const char* kind() const override { return kind_; }
  /// Full name: "a.adapter.requester".
  const std::string& name() const { return name_; }

 private:
  const char* kind_;
  std::string name_;
};

}  // namespace rnic::sim
