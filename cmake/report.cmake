# What the report of a profile is made of, in the library that writes it: our page, and D3 with its licence from
# Debian's package.
find_file(QUERN_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH REQUIRED DOC "D3, from node-d3")
find_file(QUERN_D3_LICENCE copyright PATHS /usr/share/doc/node-d3 NO_DEFAULT_PATH REQUIRED
          DOC "D3's licence, from node-d3")

# quern_report_embed(TARGET): adds them to the library.
function(quern_report_embed target)
  set(folder ${PROJECT_SOURCE_DIR}/src/profile/report)
  set(files d3_js=${QUERN_D3} d3_licence=${QUERN_D3_LICENCE} page_html=${folder}/page.html
      style_css=${folder}/style.css)
  # In the order in which the page has them.
  foreach(script format timeline roofline arena tables stages page)
    list(APPEND files ${script}_js=${folder}/${script}.js)
  endforeach()
  quern_embed(${target} quern_report ${files})
endfunction()
