# berth_module(NAME DEPS a b c): the targets of one folder under src/.
#
#   berth_<name>     static library of src/<name>/*.cpp (an INTERFACE library while there are none)
#   <name>_test      GoogleTest program of src/<name>/*_test.cpp
#   fuzz_<stem>      libFuzzer program of src/<name>/<stem>_fuzz.cpp       (BERTH_FUZZ)
#   bench_<stem>     Google Benchmark program of src/<name>/<stem>_bench.cpp (BERTH_BENCH)
#
# A folder that does not exist yet yields an empty library, so that the arrows can be written first.

# Flags that every target of berth is compiled and linked with.
add_library(berth_flags INTERFACE)
target_compile_features(berth_flags INTERFACE cxx_std_23)
target_include_directories(berth_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(berth_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(BERTH_WERROR)
  target_compile_options(berth_flags INTERFACE -Werror)
endif()
if(BERTH_ASSERTIONS)
  target_compile_definitions(berth_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(BERTH_SANITIZE)
  set(sanitize -fsanitize=${BERTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(berth_flags INTERFACE ${sanitize})
  target_link_options(berth_flags INTERFACE ${sanitize})
endif()
if(BERTH_FUZZ)
  # Coverage counters everywhere; the fuzzer's own main only in the fuzz programs.
  target_compile_options(berth_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Headers that nearly every file includes, compiled once for each kind of file: "plain", "wire" (with
# the messages), and "test", "wire_test" (with GoogleMock). Off while one works on a few files.
set(BERTH_PCH_plain <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <span>
    <string> <string_view> <variant> <vector> <fmt/format.h>)
function(berth_precompile target kind)
  if(NOT BERTH_PCH)
    return()
  endif()
  set(owner berth_pch_${kind})
  if(NOT TARGET ${owner})
    add_library(${owner} OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
    target_link_libraries(${owner} PRIVATE berth_flags berth_fmt)
    set(headers ${BERTH_PCH_plain})
    if(kind MATCHES "wire")
      target_link_libraries(${owner} PRIVATE berth_wire)
      list(APPEND headers "${PROJECT_SOURCE_DIR}/src/wire/frame.h")
    endif()
    if(kind MATCHES "test")
      target_compile_options(${owner} PRIVATE ${BERTH_TEST_OPTIONS})
      target_link_libraries(${owner} PRIVATE GTest::gmock)
      list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    target_precompile_headers(${owner} PRIVATE ${headers})
    if(CMAKE_CXX_COMPILER_LAUNCHER)
      set_target_properties(${owner} PROPERTIES CXX_COMPILER_LAUNCHER
                            "${PROJECT_SOURCE_DIR}/cmake/write-anew;${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# Tests spend their time in the libraries, and in the compiler.
set(BERTH_TEST_OPTIONS)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(BERTH_TEST_OPTIONS -O0)
endif()

# Modules that compute for long: the scheduler and what it calls, and what every message passes. The others read,
# write and wait: -O2 makes their compilation half as long again, and squeue of 10,000 jobs 2 % faster.
set(BERTH_COMPUTES base text cluster place reservation job schedule wire net store)
function(berth_optimise target module)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT module IN_LIST BERTH_COMPUTES)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

function(berth_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT" "SOURCES;LINK")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} berth_flags)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                             ${PROJECT_BINARY_DIR}/${arg_OUTPUT})
endfunction()

# C++ of .proto files, as <build>/gen/<module>/*.pb.{h,cc}, included as "<module>/x.pb.h". The files
# import each other by their bare names.
function(berth_generate result folder)
  get_filename_component(name ${folder} NAME)
  set(out ${PROJECT_BINARY_DIR}/gen/${name})
  file(MAKE_DIRECTORY ${out})
  set(made)
  foreach(proto IN LISTS ARGN)
    get_filename_component(stem ${proto} NAME_WE)
    list(APPEND made ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  add_custom_command(
    OUTPUT ${made}
    COMMAND protobuf::protoc --proto_path=${folder} --cpp_out=${out} ${ARGN}
    DEPENDS ${ARGN}
    VERBATIM)
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# Files are then compiled as one: what each has for itself needs a name that no other has.
function(berth_group target)
  if(BERTH_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${BERTH_UNITY})
  endif()
endfunction()

function(berth_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${folder}/*_fuzz.cpp)
  file(GLOB benches CONFIGURE_DEPENDS ${folder}/*_bench.cpp)
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|_bench|/main[^/]*)\\.cpp$")
  file(GLOB protos CONFIGURE_DEPENDS ${folder}/*.proto)
  if(protos)
    berth_generate(generated ${folder} ${protos})
    list(APPEND sources ${generated})
  endif()

  set(kind plain)
  if("wire" IN_LIST arg_DEPS)
    set(kind wire)
  endif()
  set_property(GLOBAL PROPERTY BERTH_KIND_OF_${name} ${kind})

  list(TRANSFORM arg_DEPS PREPEND berth_ OUTPUT_VARIABLE links)
  set(library berth_${name})
  if(sources)
    add_library(${library} STATIC ${sources})
    target_link_libraries(${library} PUBLIC ${links} berth_flags)
    berth_group(${library})
    berth_optimise(${library} ${name})
    if(NOT protos)
      berth_precompile(${library} ${kind})
    endif()
  else()
    add_library(${library} INTERFACE)
    target_link_libraries(${library} INTERFACE ${links} berth_flags)
  endif()

  if(BERTH_TESTS AND tests)
    berth_program(${name}_test OUTPUT tests SOURCES ${tests} LINK ${library} GTest::gmock
                  GTest::gtest_main)
    target_compile_definitions(${name}_test
                               PRIVATE BERTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_compile_options(${name}_test PRIVATE ${BERTH_TEST_OPTIONS})
    berth_precompile(${name}_test ${kind}_test)
    berth_group(${name}_test)
    file(GLOB properties CONFIGURE_DEPENDS ${folder}/*_property_test.cpp)  # each has its own world
    set_source_files_properties(${properties} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    add_test(NAME ${name}_test COMMAND ${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(
      ${name}_test
      PROPERTIES LABELS unit ENVIRONMENT
                 "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/results/${name}_test.xml")
  endif()

  if(BERTH_FUZZ)
    foreach(source IN LISTS fuzzers)
      string(REGEX REPLACE "^.*/([^/]+)_fuzz\\.cpp$" "fuzz_\\1" target ${source})
      berth_program(${target} OUTPUT fuzz SOURCES ${source} LINK ${library})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY BERTH_FUZZ_PROGRAMS ${target})
    endforeach()
  endif()

  if(BERTH_BENCH)
    foreach(source IN LISTS benches)
      string(REGEX REPLACE "^.*/([^/]+)_bench\\.cpp$" "bench_\\1" target ${source})
      berth_program(${target} OUTPUT bench SOURCES ${source} LINK ${library}
                    benchmark::benchmark_main)
      target_compile_definitions(${target} PRIVATE BERTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      berth_precompile(${target} ${kind})
      set_property(GLOBAL APPEND PROPERTY BERTH_BENCH_PROGRAMS ${target})
    endforeach()
  endif()
endfunction()

# Reads cmake/modules.txt, calls berth_module for each line of it, and lists the programs made in
# <build>/fuzz/programs.txt and <build>/bench/programs.txt.
function(berth_modules table)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(STRINGS ${table} lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([a-z_]+):(.*)$")
      message(FATAL_ERROR "${table}: cannot read \"${line}\"")
    endif()
    set(name ${CMAKE_MATCH_1})
    separate_arguments(deps UNIX_COMMAND "${CMAKE_MATCH_2}")
    berth_module(${name} DEPS ${deps})
  endforeach()
  # The programs there are now, without those left in the folder by an earlier build.
  foreach(kind IN ITEMS fuzz bench)
    string(TOUPPER BERTH_${kind}_PROGRAMS property)
    get_property(programs GLOBAL PROPERTY ${property})
    list(JOIN programs "\n" text)
    file(WRITE ${PROJECT_BINARY_DIR}/${kind}/programs.txt "${text}\n")
  endforeach()
endfunction()
