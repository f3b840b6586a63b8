# What Doxygen would take for a tag or for a link in a comment is itself: <by whom>, ::ffff:10.0.0.1.
/^ *\/\//{
  s/<([a-z_ ]+)>/\\<\1\\>/g
  s/::([a-z])/\\::\1/g
}
s/(^|[^\])::ffff/\1\\::ffff/g
