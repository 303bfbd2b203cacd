/** Names with a meaning in Bash that a tool's name may collide with. Only tool-identifiers.ts reads them. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Words of the grammar and declaration commands: a function with such a name would be useless. */
export const SHELL_KEYWORDS = words(`
  if then else elif fi case esac for while until do done in function select time coproc
  declare typeset local readonly export unset`);

/** Builtins that act on the function that calls them: a function cannot replace them. */
export const SHELL_FRAME_BUILTINS = words(`
  break builtin caller command continue eval exec getopts return set shift source trap`);

/** Builtins and common commands: a function can replace them and forward calls to them. */
export const SHELL_COMMANDS = words(`
  alias bg bind cd compgen complete compopt dirs disown echo enable exit false fc fg hash help history jobs kill let
  logout mapfile popd printf pushd pwd read readarray shopt suspend test times true type ulimit umask unalias wait
  arch awk b2sum base32 base64 basename bash bc bunzip2 bzip2 cat chmod chown cksum clear cmp column comm cp csplit curl
  cut date dd df diff diff3 dir dirname du egrep env esbuild expand expr factor fgrep file find fmt fold free gawk git
  grep gunzip gzip head hexdump hostname iconv id install jq join less link ln locale locate logname look ls lsof make
  man md5sum mkdir mkfifo mknod mktemp more mount mv nano nice nl node nohup nproc npm npx numfmt od openssl paste patch
  perl pgrep pip pip3 pkill pr printenv ps ptx python python3 readlink realpath rename rev rm rmdir rsync script sed seq
  sh sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split sqlite3 ssh stat stdbuf strings stty su
  sudo sum sync tac tail tar tee timeout top touch tr truncate tsort tty uname unexpand uniq unlink unxz unzip uptime
  users vdir vi vim watch wc wget which who whoami xargs xxd xz yes zcat zip zstd`);
