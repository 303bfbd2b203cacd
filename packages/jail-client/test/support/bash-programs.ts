/** Programs of Bash whose behaviour must not depend on how they started. What they print must be the same every time. */
import type { PrestartedJob } from "./prestarted.ts";

const script = (source: string, job: Omit<PrestartedJob, "files"> = {}): PrestartedJob => ({
  language: "bash",
  files: { "script.sh": source },
  ...job,
});

/** What differs between any two runs. */
const VOLATILE = "RANDOM|SRANDOM|SECONDS|EPOCHSECONDS|EPOCHREALTIME|BASH_ARGV0|BASHPID|COLUMNS|LINES";

export const SHELLS: Record<string, PrestartedJob> = {
  "its arguments and itself": script(
    `echo "$0" "$#" "$*" "$-" "$$" "$PPID" "$BASHPID" "$SHLVL" "$_" "$BASH" "$BASH_VERSION" "$PWD" "\${OLDPWD-none}" "\${BASH_SOURCE[0]}" "$LINENO" "$BASH_SUBSHELL"`,
  ),
  "its variables, options and functions": script(
    `declare -p | grep -vE ' (${VOLATILE})='; declare -F; set +o; shopt; alias; trap -p; enable | wc -l; hash; umask; ulimit -a; ulimit -Ha`,
  ),
  "its environment": script(
    `env; export -p; echo "$GREETING $UMLAUT [$EMPTY]" "$(printenv 'strange.name')"; unset GREETING; export LATER=1; env | sort; bash -c 'echo $LATER [$GREETING]'`,
    { env: { GREETING: "hello", UMLAUT: "ü ☃", EMPTY: "", "strange.name": "x=y", IFS: ":", PS4: "> " } },
  ),
  "variables that steer a shell": script(
    `set -o | grep -E 'posix|xtrace|noglob'; shopt nullglob; printf '%(%H)T\\n' 0; echo done`,
    {
      env: { SHELLOPTS: "noglob:xtrace", BASHOPTS: "nullglob", POSIXLY_CORRECT: "1", TZ: "Asia/Tokyo" },
    },
  ),
  BASH_ENV: {
    ...script("greet", { env: { BASH_ENV: "/mnt/data/before.sh" } }),
    files: { "script.sh": "greet", "before.sh": "greet() { echo from before; }" },
  },
  "functions of the environment": script("greet; declare -f", {
    env: { "BASH_FUNC_greet%%": "() {  echo hi\n}", "BASH_FUNC_bad%%": "() { echo x; }; echo injected" },
  }),
  "a language that is not there": script(`echo $LC_ALL; printf '%q\\n' 'ü'; echo \${#LC_ALL}`, {
    env: { LC_ALL: "xx_YY.UTF-8" },
  }),
  "another language": script(`x=ü☃; echo \${#x}`, { env: { LC_ALL: "C" } }),
  // Its own state is read without a further process: while Bash starts one, it blocks and catches other signals.
  "what the kernel shows of it": script(`
mapfile -t status </proc/$$/status
for line in "\${status[@]}"; do [[ $line =~ ^(Name|Umask|Pid|PPid|NSpid|Uid|Gid|Groups|Sig|Shd|Cap|NoNewPrivs|Seccomp|CoreDumping|Threads|Tgid) ]] && echo "$line"; done
echo /proc/[0-9]* /proc/$$/task/*
cat /proc/$$/limits /proc/$$/oom_score_adj /proc/$$/cgroup; tr '\\0' ' ' </proc/$$/cmdline; tr '\\0' '\\n' </proc/$$/environ | grep .
for fd in /proc/$$/fd/*; do echo "\${fd##*/} $(readlink "$fd" | tr -d 0-9)"; done; readlink /proc/$$/exe /proc/$$/cwd /proc/$$/root
wc -l </proc/$$/mountinfo; cat /proc/meminfo`),
  "the next descriptors": script(
    `exec {a}</etc/passwd {b}</etc/group; echo $a $b; exec 5</etc/passwd; ls /proc/self/fd`,
  ),
  "standard input": script(`read -r a; echo "[$a]"; read -rn 2 b; echo "[$b]"; cat; read -r c; echo $?`, {
    stdin: "first\nsecönd\nthird",
  }),
  "no standard input": script(`readlink /proc/$$/fd/0; read -r a; echo $? "[$a]"; cat`),
  "much output": script(`for ((i = 0; i < 5000; i++)); do echo "line $i"; done; echo done >&2`),
  "a closed output": script(`exec >&-; echo lost; echo $? >&2`),
  "an exit": script("echo before; exit 3"),
  "an exit beyond 255": script("exit 300"),
  "the last status": script("echo before; false"),
  "a command that is not there": script(
    "no_such_command; echo $?; /no/such/command; echo $?; /etc/passwd; echo $?",
  ),
  "a syntax error": script("echo before\nif true; then\necho ("),
  "an unfinished quote": script(`echo before\necho "never ends`),
  "set -e": script("set -euo pipefail; trap 'echo at $LINENO: $?' ERR; echo a; false | true; echo b"),
  "set -u": script("set -u; echo a; echo $missing; echo b"),
  "set -x": script(`set -x; x=1; [[ $x == 1 ]] && echo "$x"`),
  "a trap at its end": script("trap 'echo bye $?' EXIT; (exit 7)"),
  "traps of signals": script(
    "trap 'echo got' USR1 TERM; kill -USR1 $$; kill -TERM $$; trap - TERM; kill -TERM $$; echo never",
  ),
  "a signal": script("echo before; kill -SEGV $$"),
  SIGKILL: script("kill -9 $$"),
  SIGPIPE: script(`trap -p PIPE; yes | head -1; echo \${PIPESTATUS[@]}`),
  "a file that is too large": script("head -c 3000000 /dev/zero >big; echo $?; ls", {
    limits: { fileBytes: 1_000_000 },
  }),
  "children that stay": script("sleep 60 & echo started; disown"),
  "background jobs": script("set -m; sleep 0.01 & jobs; wait %1; echo $?; (exit 4) & wait $!; echo $?"),
  "a coprocess": script(`coproc cat; echo hello >&"\${COPROC[1]}"; read -r x <&"\${COPROC[0]}"; echo "$x"`),
  "process substitution": script("diff <(echo a) <(echo b); echo $?; tee >(cat >&2) <<<hello; sleep 0.05"),
  "here documents": script(`cat <<END\n$((6 * 7)) $(echo sub)\nEND\ncat <<'END'\n$x\nEND`),
  "subshells and levels": script(
    "(echo $BASHPID $BASH_SUBSHELL; (echo $BASH_SUBSHELL)); bash -c 'echo $SHLVL $$'",
  ),
  "functions, callers and lines": script(
    `f() { echo "\${FUNCNAME[@]}" "\${BASH_LINENO[@]}" "\${BASH_SOURCE[@]}"; caller 0; }\ng() { f; }\ng`,
  ),
  "endless recursion": script("f() { f; }; FUNCNEST=50; f; echo $?"),
  "arrays and arithmetic": script(
    `a=(1 2 "3 4"); declare -A m=([x]=1 [y]=2); echo "\${a[@]: -1}" \${#a[@]} $((m[x] + m[y])); printf '%s\\n' "\${!m[@]}" | sort; let "x = 2 ** 40"; echo $x; echo $((1 / 0)); echo after`,
  ),
  globs: script(
    "shopt -s extglob globstar; touch a.txt b.txt; mkdir d; touch d/c.txt; echo *.txt !(a.txt) **/*.txt [[:alpha:]].*",
  ),
  "mapfile, printf and read": script(
    `mapfile -t l < <(printf '%s\\n' a b c); echo \${#l[@]} "\${l[1]}"; printf -v v '%05.1f|%q' 3.14159 "a b"; echo "$v"; IFS=, read -ra p <<<"x,y,z"; echo "\${p[2]}"`,
  ),
  files: script(
    "echo hello >out.txt; mkdir -p d; echo x >>d/y; ls -la | awk '{print $1, $3, $NF}'; stat -c %a out.txt",
  ),
  "another program in its place": script(
    "exec /usr/bin/env -i A=1 /bin/sh -c 'echo $0 $$ $A; ls /proc/self/fd | wc -l'",
  ),
  "itself again": script(
    `[[ $1 == again ]] && { echo "$0 $1 $$"; env; exit; }; exec /usr/bin/bash "$0" again`,
  ),
  "Python and its environment": script(
    `python3 -c 'import os; print(sorted(os.environ.items()), os.getppid(), os.listdir("/proc/self/fd"))'`,
  ),
  "what was loaded cannot be loaded again": script(
    `LD_PRELOAD=/proc/self/fd/506 /bin/echo hi; exec 506</etc/passwd; LD_PRELOAD=/proc/self/fd/506 /bin/echo hi`,
  ),
  "a null byte": script(`x=$(printf 'a\\0b'); echo "$x" \${#x}`),
  "carriage returns": script("echo a\r\nif true; then\r\necho b\r\nfi\r\n"),
  "no last newline": script("echo a; echo b"),
  nothing: script(""),
  "comments and an interpreter line": script("#!/usr/bin/env python3\n# nothing else\necho still bash"),
  "a file that is not text": script("\u007fELF\u0002\u0001\u0001\u0000\u0000\u0000"),
  "no entry file": { language: "bash", files: { "other.sh": "echo other" } },
  "limits of its own": script("ulimit -n; ulimit -f; exec {a}</etc/passwd; echo $?", {
    limits: { openFiles: 64 },
  }),
  "time that is over": script("echo before; while :; do :; done", { limits: { wallMs: 300 } }),
};

/** What a pre-started shell cannot be: it executes it. */
export const COLD_SHELLS: Record<string, PrestartedJob> = {
  "an argument": { ...script(`echo "$0" "$@"`), argv: ["script.sh", "a", "b c"] },
  "an option": { ...script("echo traced"), argv: ["-x", "script.sh"] },
  "another entry": { language: "bash", files: { "other.sh": "echo $0" }, argv: ["other.sh"] },
  "a library to load first": script("echo hi", { env: { LD_PRELOAD: "/nowhere.so" } }),
  "a path of libraries": script("echo $LD_LIBRARY_PATH", { env: { LD_LIBRARY_PATH: "/nowhere" } }),
  "settings of the C library": script("echo $GLIBC_TUNABLES", {
    env: { GLIBC_TUNABLES: "glibc.malloc.perturb=1" },
  }),
  "settings of its allocator": script("echo $MALLOC_ARENA_MAX", { env: { MALLOC_ARENA_MAX: "1" } }),
};
