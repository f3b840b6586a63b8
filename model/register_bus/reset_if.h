// SPDX-License-Identifier: Apache-2.0
// What the reset register reaches.
#pragma once

namespace rnic::register_bus {

/// A block that forgets everything when software resets the device: contexts, queues, what is under way (answers to
/// requests of before are to be ignored). Called between two edges of the core clock, like a register write.
class reset_target_if {
 public:
  virtual ~reset_target_if() = default;
  virtual void device_reset() = 0;
};

}  // namespace rnic::register_bus
