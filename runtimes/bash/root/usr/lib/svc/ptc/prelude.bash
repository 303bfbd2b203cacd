# shellcheck shell=bash disable=SC1078,SC1079
# The tools of a shell program as functions. Every non-interactive Bash of the program reads this first (BASH_ENV).
#
# Leaves nothing behind but the functions: no variable, option, descriptor or trap, and no changed $_ or $?. The functions are made from
# tools.tsv beside the socket of the tools: identifier, whether a builtin or command has the same name, position. Identifiers hold
# letters, digits and underscores only, so they need no quoting. What the program sets later (options, IFS, positional parameters,
# functions of its own) does not affect a tool's function: it runs one command by its path and passes the argument as its standard input.
#
# For a tool that shares a name with a builtin or command there is a function `<name>_tool`. The plain name calls the tool when its only
# argument is a JSON object, and otherwise the builtin or command.
__svc_define_tools() {
  unset -f __svc_define_tools
  local name shared index table=${SANDBOX_TOOL_SOCKET-/run/svc/3190.sock} call=/usr/lib/svc/ptc/tool-call functions=
  table=${table%/*}/tools.tsv
  [[ -r $table ]] || return 0
  while IFS=$'\t' read -r name shared index; do
    if [[ $shared == 0 ]]; then
      functions+="$name() { $call $index $name \"\$#\" <<<\"\${1-}\"; }"$'\n'
    else
      functions+="${name}_tool() { $call $index ${name}_tool \"\$#\" <<<\"\${1-}\"; }
$name() {
  if [[ \$# -eq 1 && \$1 == *'{'*'}'* ]]; then
    if $call $index $name 1 quiet <<<\"\$1\"; then return 0; elif [[ \$? -ne 2 ]]; then return 1; fi
  fi
  command $name \"\$@\"
}"$'\n'
    fi
  done <"$table"
  builtin eval "$functions"
}
{ __svc_define_tools "$_"; } 2>/dev/null
