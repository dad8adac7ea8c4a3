# The wire: kiln_proto (messages, protobuf only) and kiln_grpc (services). The google.rpc messages come
# from the PyPI package googleapis-common-protos, since Debian has none.

set(KILN_PROTO_DIR ${CMAKE_SOURCE_DIR}/proto)
set(KILN_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${KILN_GENERATED})

set(googleapis ${CMAKE_BINARY_DIR}/googleapis)
if(NOT EXISTS ${googleapis}/google/rpc/status.proto)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip install --quiet --disable-pip-version-check --no-deps
            --target ${googleapis} googleapis-common-protos==1.63.2
    RESULT_VARIABLE failed ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "googleapis-common-protos could not be installed by pip: ${output}")
  endif()
endif()

function(kiln_generate out_sources root plugin_args)
  set(sources)
  foreach(proto ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(outputs ${KILN_GENERATED}/${stem}.pb.cc ${KILN_GENERATED}/${stem}.pb.h)
    set(command protobuf::protoc -I ${root} -I ${KILN_PROTO_DIR} -I ${googleapis} --cpp_out ${KILN_GENERATED})
    if(plugin_args STREQUAL "grpc")
      set(outputs ${KILN_GENERATED}/${stem}.grpc.pb.cc ${KILN_GENERATED}/${stem}.grpc.pb.h)
      find_program(KILN_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
      set(command protobuf::protoc -I ${root} -I ${KILN_PROTO_DIR} -I ${googleapis}
                  --grpc_out ${KILN_GENERATED} --plugin=protoc-gen-grpc=${KILN_GRPC_PLUGIN})
    endif()
    add_custom_command(OUTPUT ${outputs} COMMAND ${command} ${root}/${proto} DEPENDS ${root}/${proto}
                       COMMENT "Generating ${stem}" VERBATIM)
    list(FILTER outputs INCLUDE REGEX "\\.cc$")
    list(APPEND sources ${outputs})
  endforeach()
  set(${out_sources} ${sources} PARENT_SCOPE)
endfunction()

kiln_generate(messages ${KILN_PROTO_DIR} "" kiln/v1/artifact.proto kiln/v1/calls.proto kiln/v1/error.proto kiln/v1/gradient.proto
  kiln/v1/kernel.proto kiln/v1/local.proto kiln/v1/predict.proto kiln/v1/program.proto kiln/v1/region.proto kiln/v1/schedule.proto kiln/v1/service.proto
  kiln/v1/trace.proto kiln/v1/types.proto kiln/v1/uploads.proto)
kiln_generate(google_messages ${googleapis} "" google/rpc/status.proto google/rpc/error_details.proto)

# The language needs these three only, so that it links nothing of the service.
# Generated: checking it costs minutes and says nothing of ours.
function(kiln_unsanitized name)
  if(KILN_SANITIZE)
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
endfunction()

add_library(kiln_proto STATIC ${messages} ${google_messages})
kiln_unsanitized(kiln_proto)
target_include_directories(kiln_proto SYSTEM PUBLIC ${KILN_GENERATED})
target_link_libraries(kiln_proto PUBLIC protobuf_library)

kiln_generate(services ${KILN_PROTO_DIR} "grpc" kiln/v1/artifact.proto kiln/v1/calls.proto kiln/v1/predict.proto kiln/v1/program.proto kiln/v1/service.proto kiln/v1/trace.proto
  kiln/v1/uploads.proto)
add_library(kiln_grpc STATIC ${services})
kiln_unsanitized(kiln_grpc)
target_link_libraries(kiln_grpc PUBLIC kiln_proto grpc_library)

# The headers of gRPC are most of what is read. (Files of messages have names in common.)
if(KILN_UNITY STREQUAL "ON")
  set_target_properties(kiln_grpc PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
endif()
