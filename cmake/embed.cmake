# Files of the tree or of the system as bytes of a library.

# quern_embed(TARGET PREFIX name=file...): each file as the bytes from PREFIX_name to PREFIX_name_end, hidden C symbols.
function(quern_embed target prefix)
  set(text ".section .rodata\n")
  set(files "")
  foreach(row ${ARGN})
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 name)
    list(GET row 1 file)
    list(APPEND files ${file})
    set(symbol ${prefix}_${name})
    string(APPEND text ".globl ${symbol}\n.hidden ${symbol}\n.globl ${symbol}_end\n.hidden ${symbol}_end\n.balign 16\n"
      "${symbol}:\n.incbin \"${file}\"\n${symbol}_end:\n")
  endforeach()
  string(APPEND text ".section .note.GNU-stack,\"\",%progbits\n")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embed/${prefix}.S)
  file(CONFIGURE OUTPUT ${source} CONTENT "${text}")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${source})
endfunction()
