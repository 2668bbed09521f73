# Compiles through ccache where there is one, as ./dev does: objects are found again in another checkout or build
# folder, and beside what is precompiled.
find_program(QUERN_CCACHE ccache)
mark_as_advanced(QUERN_CCACHE)
if(QUERN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${QUERN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
