# Run by quern_version. A source that is no checkout of its own, as in a tarball or vendored, has no commit; one with
# changes has a "+" behind it.
set(text ${VERSION})
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
file(REAL_PATH ${SOURCE} source)
if(top STREQUAL source)
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=9 --dirty=+ OUTPUT_VARIABLE commit
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(commit)
    string(APPEND text " (${commit})")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define QUERN_VERSION_TEXT \"${text}\"\n" @ONLY)
