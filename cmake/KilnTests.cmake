# All test executables, and what they need.
add_custom_target(kiln_tests)

# How test executables are run: in a few processes each, since starting one costs more than most tests take.

# kiln_add_tests(TARGET LABEL name [SHARDS count] [NAME name] [FILTER filter] [TIMEOUT seconds] [ENVIRONMENT settings...])
# The tests of a GoogleTest executable, dealt out among SHARDS processes (two, if not said).
function(kiln_add_tests target)
  add_dependencies(kiln_tests ${target})
  cmake_parse_arguments(given "" "LABEL;SHARDS;NAME;FILTER;TIMEOUT" "ENVIRONMENT" ${ARGN})
  set(count ${given_SHARDS})
  if(NOT count)
    set(count 2)
  endif()
  set(name ${given_NAME})
  if(NOT name)
    set(name ${target})
  endif()
  set(timeout ${given_TIMEOUT})
  if(NOT timeout)
    set(timeout 1500)
  endif()
  set(filter)
  if(given_FILTER)
    set(filter --gtest_filter=${given_FILTER})
  endif()
  foreach(number RANGE 1 ${count})
    math(EXPR index "${number} - 1")
    add_test(NAME ${name}.${number} COMMAND ${target} --gtest_brief=1 ${filter})
    set_tests_properties(${name}.${number} PROPERTIES LABELS ${given_LABEL} TIMEOUT ${timeout} COST ${timeout}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index};${given_ENVIRONMENT}")
  endforeach()
endfunction()
