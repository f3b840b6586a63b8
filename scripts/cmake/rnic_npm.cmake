# Packages of npm, which a folder names in package.json and package-lock.json.
find_program(RNIC_NODE node)
find_program(RNIC_NPM npm)
mark_as_advanced(RNIC_NODE RNIC_NPM)
if(NOT RNIC_NODE OR NOT RNIC_NPM)
  message(FATAL_ERROR "not installed: nodejs or npm (scripts/packages has the names of Debian's packages)")
endif()

# rnic_npm(VARIABLE FOLDER): sets VARIABLE to the folder of node_modules that a build has, with exactly the versions of
# FOLDER/package-lock.json, and the file .installed, on which what uses them depends. They come from npm's cache where
# scripts/setup or an earlier build has left them there; no script of theirs runs.
function(rnic_npm variable folder)
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${folder})
  set(packages ${PROJECT_BINARY_DIR}/npm/${name})
  set(${variable} ${packages} PARENT_SCOPE)
  add_custom_command(OUTPUT ${packages}/.installed
    COMMAND ${CMAKE_COMMAND} -E make_directory ${packages}
    COMMAND ${CMAKE_COMMAND} -E copy ${folder}/package.json ${folder}/package-lock.json ${packages}
    COMMAND ${CMAKE_COMMAND} -E chdir ${packages} ${RNIC_NPM} ci --ignore-scripts --prefer-offline --no-audit --no-fund
            --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E touch ${packages}/.installed
    DEPENDS ${folder}/package.json ${folder}/package-lock.json VERBATIM
    COMMENT "Packages of npm for ${name}")
endfunction()
