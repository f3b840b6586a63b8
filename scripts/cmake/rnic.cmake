# Compiler settings, libraries and the two functions with which every folder declares itself.
set(CMAKE_CXX_STANDARD 17)  # Debian's SystemC is built for C++17; another standard does not link
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# As a part of another project this one is the library alone, and what it sets is for its own files.
option(RNIC_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
option(RNIC_FUZZ "build the programs of libFuzzer, with the preset fuzz" OFF)
set(rnic_programs ${RNIC_TESTS})
if(RNIC_FUZZ)
  set(rnic_programs ON)
endif()
option(RNIC_PROGRAMS "build the programs rnic and rnic-perf" ${rnic_programs})
option(RNIC_WARNINGS "many warnings, each an error" ${PROJECT_IS_TOP_LEVEL})
option(RNIC_INSTALL "rules of installation" ${PROJECT_IS_TOP_LEVEL})
if(NOT RNIC_PROGRAMS AND (RNIC_TESTS OR RNIC_FUZZ))
  message(FATAL_ERROR "RNIC_PROGRAMS=OFF: must be ON with RNIC_TESTS or RNIC_FUZZ, whose tests run the programs' code")
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  find_program(RNIC_CCACHE ccache)
  if(RNIC_CCACHE)
    # The sloppiness is what it wants for precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${RNIC_CCACHE})
  endif()
endif()

include(GNUInstallDirs)
include(rnic_systemc)
include(rnic_dependencies)
if(rnic_missing)
  string(REPLACE ";" ", " rnic_missing "${rnic_missing}")
  message(FATAL_ERROR "not installed: ${rnic_missing} (scripts/packages has the names of Debian's packages)")
endif()
find_path(RNIC_TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
mark_as_advanced(RNIC_TOMLPLUSPLUS_INCLUDE_DIR)
if(RNIC_PROGRAMS)
  pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
  include(rnic_npm)
endif()
if(RNIC_TESTS OR RNIC_FUZZ)
  find_package(GTest REQUIRED)
endif()

# Of our own sources: the root that their includes begin at, and what the compiler is to say of them.
add_library(rnic_warnings INTERFACE)
if(RNIC_WARNINGS AND NOT RNIC_PGO)  # code that counts where it goes makes GCC 12 see overflows in fmt
  target_compile_options(rnic_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Werror)
  if(NOT RNIC_FUZZ)  # there several files are compiled as one, and a local name may be that of another file
    target_compile_options(rnic_warnings INTERFACE -Wshadow)
  endif()
endif()
target_include_directories(rnic_warnings INTERFACE ${PROJECT_SOURCE_DIR})
# Behind rnic_warnings, for tests that Clang compiles: its -Wconversion has more than GCC's.
add_library(rnic_warnings_of_gcc INTERFACE)
target_compile_options(rnic_warnings_of_gcc INTERFACE -Wno-sign-conversion)
# A name of one file hides no name of another one that is compiled with it. Linked behind rnic_warnings.
add_library(rnic_warnings_of_one_file INTERFACE)
target_compile_options(rnic_warnings_of_one_file INTERFACE -Wno-shadow)

# Assertions of toml++ refuse what users' files must not say (model/sim/toml_text.h).
foreach(config Release RelWithDebInfo MinSizeRel)
  string(TOUPPER CMAKE_CXX_FLAGS_${config} flags)
  if("${${flags}}" MATCHES "NDEBUG")
    add_compile_options($<$<CONFIG:${config}>:-UNDEBUG>)
  endif()
endforeach()

# Release libraries carry both machine code, which the many tests link quickly, and what link-time optimisation needs,
# which makes the programs a tenth faster (rnic_optimised_program).
option(RNIC_LTO "link-time optimisation of the programs in release builds" ${RNIC_PROGRAMS})
if(RNIC_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(rnic_lto ON)
endif()

# GCC clears and copies structures of 100 to 500 bytes, of which each message has a dozen, by string instructions that
# take some 30 cycles to begin. It collects two fields in a vector register to store them at once, which takes longer than
# to store both, and whoever reads one of them next waits for it.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options(-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign
                      -mmemcpy-strategy=vector_loop:256:noalign,libcall:-1:noalign
                      -fno-tree-slp-vectorize)
endif()

# Profile-guided optimisation, in two builds of one folder (scripts/pgo): `count` counts which way the code goes, and the
# programs leave their counts beside their objects; `use` lays the code out by them, what never ran apart from the rest.
set(RNIC_PGO "" CACHE STRING "profile-guided optimisation: count, use, or nothing")
if(RNIC_PGO STREQUAL "count")
  add_compile_options(-fprofile-generate -fprofile-update=single)
  add_link_options(-fprofile-generate)
elseif(RNIC_PGO STREQUAL "use")
  file(GLOB_RECURSE rnic_counts "${PROJECT_BINARY_DIR}/model/*.gcda")
  if(NOT rnic_counts)
    message(FATAL_ERROR "RNIC_PGO=use: ${PROJECT_BINARY_DIR} has no counts of a training run; scripts/pgo makes them")
  endif()
  # Code without counts is that of commands which the training does not use. Hot is what makes up 99.9 % of a run: a
  # packet goes through most of the model, and through little of it twice.
  add_compile_options(-fprofile-use -fprofile-partial-training -Wno-missing-profile)
  add_link_options(-fprofile-use --param=hot-bb-count-ws-permille=999)
elseif(NOT RNIC_PGO STREQUAL "")
  message(FATAL_ERROR "RNIC_PGO=${RNIC_PGO}: expected count, use or nothing")
endif()

option(RNIC_PRECOMPILED "precompiled headers of other people's libraries in release builds of testbenches" ON)
if(RNIC_PRECOMPILED AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(rnic_precompiled ON)
endif()

# rnic_compiled_quickly(NAME): for code whose speed nobody waits for, but whose compiler everybody does.
function(rnic_compiled_quickly name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

# rnic_precompiled_test(NAME): the test is compiled with the headers of testbenches/precompiled.
function(rnic_precompiled_test name)
  rnic_compiled_quickly(${name})
  if(rnic_precompiled)
    target_precompile_headers(${name} REUSE_FROM rnic_precompiled)
    target_compile_options(${name} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()

# rnic_together(NAME [ALONE files ...]): several files of the target are compiled as one in release and fuzz builds,
# because the headers that they share take longer than they do. Each can stand alone: the presets debug and asan, and
# RNIC_UNITY=OFF, compile it so. ALONE: files that always are, for their names.
# The preset fuzz compiles all libraries so; rnic_alone(files ...): those that cannot be part of it.
option(RNIC_UNITY "compile several files of a testbench or a test together in release and fuzz builds" ON)
function(rnic_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
function(rnic_together name)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  rnic_alone(${arg_ALONE})
  if(RNIC_UNITY AND (CMAKE_BUILD_TYPE STREQUAL "Release" OR RNIC_FUZZ))
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# rnic_library(NAME [COLD] SOURCES ... DEPENDS ... [PRIVATE ...]): a static library (or, without sources, an interface) of
# our own code. PRIVATE: what its sources need and its headers do not. COLD: no packet goes through it, and the
# optimisation of the programs leaves it out. Users know it as rnic::NAME without its rnic_, unless it is a testbench's.
function(rnic_library name)
  cmake_parse_arguments(arg "COLD" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:rnic_warnings> PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE})
    if(rnic_lto AND NOT arg_COLD)
      target_compile_options(${name} PRIVATE -flto=auto -ffat-lto-objects)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_DEPENDS})
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rnic>)
  target_compile_features(${name} ${scope} cxx_std_17)
  rnic_published(${name})
endfunction()

# rnic_published(NAME): the library is a part of what is installed.
function(rnic_published name)
  string(FIND "${CMAKE_CURRENT_SOURCE_DIR}/" "${PROJECT_SOURCE_DIR}/testbenches/" testbench)
  if(testbench EQUAL 0)
    return()
  endif()
  string(REGEX REPLACE "^rnic_" "" short ${name})
  if(NOT TARGET rnic::${short})
    add_library(rnic::${short} ALIAS ${name})
  endif()
  set_property(TARGET ${name} PROPERTY EXPORT_NAME ${short})
  if(RNIC_INSTALL)
    install(TARGETS ${name} EXPORT rnicTargets ARCHIVE COMPONENT library)
  endif()
endfunction()

# rnic_optimised_program(NAME): the executable is optimised as a whole, but for its own sources.
function(rnic_optimised_program name)
  if(rnic_lto)  # GCC 12 sees overflows in fmt there
    target_link_options(${name} PRIVATE -flto=auto -Wno-stringop-overflow)
  endif()
endfunction()

# rnic_test(LABEL NAME SOURCES ... [ALONE files ...] DEPENDS ... [TIMEOUT n]): a GoogleTest program; each TEST is a process
# of its own, named LABEL/Suite.Case (one SystemC kernel lives in one process). ALONE: those of the sources that are not
# compiled together with others (rnic_together), because they have local names that those have, too; APART: all.
function(rnic_test label name)
  cmake_parse_arguments(arg "APART" "TIMEOUT" "SOURCES;ALONE;DEPENDS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE rnic_warnings ${arg_DEPENDS} rnic_test_main rnic_quiet_kernel GTest::gtest)
  rnic_precompiled_test(${name})
  list(LENGTH arg_SOURCES sources)
  if(arg_APART OR sources EQUAL 1)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  else()
    rnic_together(${name} ALONE ${arg_ALONE})
  endif()
  get_target_property(together ${name} UNITY_BUILD)
  if(together)
    target_link_libraries(${name} PRIVATE rnic_warnings_of_one_file)
  endif()
  if(TARGET sanitized_tests)
    add_dependencies(sanitized_tests ${name})
    target_link_libraries(${name} PRIVATE rnic_warnings_of_gcc)
    target_compile_options(${name} PRIVATE -O0)  # to optimise a test takes Clang longer than to run it, with sanitizers
  endif()
  if(rnic_lto)
    target_link_options(${name} PRIVATE -fno-lto)
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX ${label}/ NO_PRETTY_VALUES PROPERTIES LABELS ${label} TIMEOUT ${arg_TIMEOUT}
                       DISCOVERY_TIMEOUT 60)
endfunction()

# rnic_slow(TESTS ...): tests of this folder, by their names in ctest, that alone take some 15 s or more: label `slow`
# beside their own.
function(rnic_slow)
  foreach(test ${ARGN})
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS slow)
    endif()
  endforeach()
endfunction()

find_package(verilator REQUIRED HINTS $ENV{VERILATOR_ROOT} /usr/share/verilator)

# rnic_verilate(NAME TOP module [PREFIX class] [ARGS ...] SOURCES ...): a static library with the class V<module>, or
# PREFIX where there are several, of a SystemVerilog module; ARGS are for Verilator (-G of parameters). Its
# code is not ours to warn about. -fno-const-bit-op-tree: 5.006 folds XOR trees wrongly in rare cases.
function(rnic_verilate name)
  cmake_parse_arguments(arg "" "TOP;PREFIX" "SOURCES;ARGS" ${ARGN})
  if(NOT arg_PREFIX)
    set(arg_PREFIX V${arg_TOP})
  endif()
  add_library(${name} STATIC)
  verilate(${name} TRACE_FST PREFIX ${arg_PREFIX} TOP_MODULE ${arg_TOP} SOURCES ${arg_SOURCES}
           VERILATOR_ARGS ${arg_ARGS} --no-timing -Wall --assert --x-assign unique --x-initial unique -fno-const-bit-op-tree -O3
           OPT_FAST -O3 OPT_SLOW -O1 OPT_GLOBAL -O2)
  get_target_property(includes ${name} INTERFACE_INCLUDE_DIRECTORIES)
  set_property(TARGET ${name} PROPERTY INTERFACE_INCLUDE_DIRECTORIES "")
  target_include_directories(${name} SYSTEM INTERFACE "$<BUILD_INTERFACE:${includes}>")
  target_compile_options(${name} PRIVATE -fno-sanitize=all)  # the writer of its traces stores unaligned words
  rnic_published(${name})
endfunction()
