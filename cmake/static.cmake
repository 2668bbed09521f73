# -DQUERN_STATIC_LLVM=ON: a program that can be copied to another machine. LLVM, Abseil, ICU and the C++ library are in
# quern, and it asks the system for the C library alone; for LAPACK when a graph first has such ops. libquern.so has
# LLVM in it, hidden: Debian's other archives are not made for shared libraries. (quern-serve also wants cpp-httplib,
# OpenSSL and Brotli, which is why it is a program of its own.)
#
# Everything that links LLVM links quern_llvm: the shared library of Debian, or the archives that are needed of it.
option(QUERN_STATIC_LLVM "Link LLVM and other libraries statically: a program that can be copied" OFF)

add_library(quern_llvm INTERFACE)
if(NOT QUERN_STATIC_LLVM)
  target_link_libraries(quern_llvm INTERFACE LLVM)
  return()
endif()

llvm_map_components_to_libnames(archives AArch64 BitReader BitWriter DebugInfoDWARF JITLink Linker NVPTX Object
                                OrcDebugging OrcJIT OrcTargetProcess Passes X86)
target_link_libraries(quern_llvm INTERFACE ${archives})
# Debian's solver is in no part that we use.
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
                      "rt;dl;m;ZLIB::ZLIB;zstd::libzstd_shared;LLVMDemangle")

# Of every shared library that programs link, the archive.
set(archives "")
set(names z zstd minizip icui18n icuuc icudata xxhash)
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${imported})
  if(target MATCHES "^absl::(.*)")
    set(name ${CMAKE_MATCH_1})
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL SHARED_LIBRARY)
      list(APPEND names absl_${name})
    endif()
  endif()
endforeach()
foreach(name ${names})
  find_library(QUERN_ARCHIVE_${name} lib${name}.a REQUIRED)
  mark_as_advanced(QUERN_ARCHIVE_${name})
  list(APPEND archives ${QUERN_ARCHIVE_${name}})
endforeach()
list(JOIN archives "," QUERN_ARCHIVES)

# quern_copyable(TARGET): a program that can be copied. The archives come first, so that nothing is left to find in the
# shared libraries behind them, which are needed no more: lld looks at them in this order, other linkers do not.
function(quern_copyable target)
  target_link_options(${target} PRIVATE -fuse-ld=lld-19 -Wl,--start-group,${QUERN_ARCHIVES},--end-group
                      -Wl,--as-needed -Wl,--gc-sections -static-libstdc++ -static-libgcc
                      # 170,000 addresses in tables of LLVM's are put right at each start: as bitmaps they are 4 MB less
                      # to read. Needs glibc 2.36, which what is built here needs anyway.
                      -Wl,-z,pack-relative-relocs
                      # gdb finds kernels by these, also in a program without symbols.
                      -Wl,--export-dynamic-symbol=__jit_debug_register_code
                      -Wl,--export-dynamic-symbol=__jit_debug_descriptor)
endfunction()
