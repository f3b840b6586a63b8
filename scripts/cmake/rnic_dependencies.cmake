# What the library needs of others, as targets rnic::*: for its own build and, installed beside the package's
# configuration, for whoever links it. Sets rnic_missing to what is not there, which is empty when all is.
#
# The targets are global: who links a library of a subdirectory sees what that library links.
set(rnic_missing "")
find_package(PkgConfig QUIET)
find_package(Threads QUIET)
if(NOT TARGET ZLIB::ZLIB)
  find_package(ZLIB QUIET)
endif()
if(NOT PkgConfig_FOUND)
  list(APPEND rnic_missing pkg-config)
endif()
if(NOT TARGET Threads::Threads)
  list(APPEND rnic_missing threads)
endif()
if(NOT TARGET ZLIB::ZLIB)
  list(APPEND rnic_missing zlib)
endif()

# What pkg-config knows under the name `module`, as rnic::NAME.
function(rnic_find_module name module)
  if(TARGET rnic::${name} OR NOT PkgConfig_FOUND)
    return()
  endif()
  string(TOUPPER RNIC_${name} prefix)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${prefix}_FOUND)
    set(rnic_missing ${rnic_missing} ${module} PARENT_SCOPE)
    return()
  endif()
  add_library(rnic::${name} INTERFACE IMPORTED GLOBAL)
  set_property(TARGET rnic::${name} PROPERTY INTERFACE_LINK_LIBRARIES PkgConfig::${prefix})
endfunction()

rnic_find_module(systemc systemc)
rnic_find_module(isal libisal)
rnic_find_module(pcap libpcap)
if(TARGET rnic::systemc)
  # Processes that are made while the simulation runs; SystemC 2.3 wants to be told before its first header.
  set_property(TARGET rnic::systemc PROPERTY INTERFACE_COMPILE_DEFINITIONS SC_INCLUDE_DYNAMIC_PROCESSES)
endif()

# Types of verbs programs. Nothing of libibverbs is linked.
find_path(RNIC_VERBS_INCLUDE_DIR infiniband/verbs.h)
mark_as_advanced(RNIC_VERBS_INCLUDE_DIR)
if(NOT RNIC_VERBS_INCLUDE_DIR)
  list(APPEND rnic_missing libibverbs)
elseif(NOT TARGET rnic::verbs_headers)
  add_library(rnic::verbs_headers INTERFACE IMPORTED GLOBAL)
  set_property(TARGET rnic::verbs_headers PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${RNIC_VERBS_INCLUDE_DIR})
endif()
