# kiln_llvm: LLVM 19, statically, with the X86 target alone. Only executables that compile CPU code
# link it; --gc-sections leaves out what they do not use.

find_package(LLVM 19.1 REQUIRED CONFIG)
if(KILN_STATIC)
  kiln_find_archives(zstd zstd)
  set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION ${zstd})
endif()
llvm_map_components_to_libnames(kiln_llvm_libraries
  core irprinter mc passes support target targetparser x86asmparser x86codegen x86desc x86info)

add_library(kiln_llvm INTERFACE)
target_include_directories(kiln_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(kiln_llvm INTERFACE ${kiln_llvm_libraries})
