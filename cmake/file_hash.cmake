# Script: cmake -DROOT=... -DFILES="a.cc;b.h" -DOUT=file_hash.inc -P file_hash.cmake
#
# Writes one string literal: a hash of the names (relative to ROOT) and the contents of the files, the same in every
# checkout and build folder. Objects in the cache that were made by other sources are told apart by it.
set(text "")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND text "${name} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 32 hash)
set(text "\"${hash}\"\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")  # only on change, so that a touched file compiles nothing again
endif()
