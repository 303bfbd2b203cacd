# The ~/.zshrc of an interactive zsh: presses Tab at the end of each line of the file `lines`, and writes to the file
# `answers` the line that came of it and what was offered, each an item that ends with a NUL; an empty item ends an answer.
autoload -Uz compinit
compinit -u -d "$PWD/zcompdump"
. ./svc.zsh
# Each line is a first press of Tab, not one of several.
unsetopt auto_menu
typeset -ga offered

compadd() {
  # With -O, -A or -D the completion system only asks.
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a matches
    builtin compadd -A matches "$@"
    offered+=($matches)
  fi
  builtin compadd "$@"
}

complete-lines() {
  local line
  while IFS= read -r line; do
    BUFFER=$line CURSOR=$#line offered=()
    zle complete-word
    print -rN -- "$BUFFER" $offered '' >>answers
  done <lines
  exit
}
zle -N zle-line-init complete-lines
