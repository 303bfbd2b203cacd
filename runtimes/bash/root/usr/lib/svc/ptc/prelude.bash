# shellcheck shell=bash disable=SC1078,SC1079
# The tools of a shell program as functions. Every non-interactive Bash of the program reads this first (BASH_ENV).
#
# Leaves nothing behind but the functions: no variable, option, descriptor, trap, nor a changed $_ or $?. The functions come from tools.tsv
# beside the socket of the tools: identifier, whether a builtin or command has the same name, position. Identifiers hold letters, digits and
# underscores only, so they need no quoting. What the program sets later (options, IFS, positional parameters, functions of its own) does
# not reach into a tool's function: it runs one command by its path and hands the argument over as its standard input.
#
# A tool that shares a name with a builtin or command is the function `<name>_tool`; the plain name is the tool when its one argument is a
# JSON object, else the builtin or command.
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
