# cmake -D source=FOLDER -D version=TEXT -D file=FILE -P commit.cmake: writes FILE, a header with the version, the commit
# of the sources in FOLDER and whether they differ from it; not when it says so already. Without git, or where FOLDER is
# not the root of a git tree, the commit is that of the archive which git made, or "".
set(commit "")
set(modified false)
find_program(git git)
if(git AND EXISTS ${source}/.git)
  execute_process(COMMAND ${git} describe --always --tags --dirty WORKING_DIRECTORY ${source}
                  OUTPUT_VARIABLE said RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    string(REGEX REPLACE "-dirty$" "" commit "${said}")
    if(NOT commit STREQUAL said)
      set(modified true)
    endif()
  endif()
else()
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/archived_commit.txt archived)
  if(archived MATCHES "^[0-9a-f]+$")  # else it is the place for it, which `git archive` fills
    set(commit ${archived})
  endif()
endif()
file(CONFIGURE OUTPUT ${file} CONTENT [[
#define RNIC_VERSION "@version@"
#define RNIC_COMMIT "@commit@"
#define RNIC_MODIFIED @modified@
]] @ONLY)
