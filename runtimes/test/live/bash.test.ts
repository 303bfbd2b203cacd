import { describe, expect, it } from "vitest";
import { run } from "./support/program.ts";

const bash = (code: string, job = {}) => run("bash", { code, ...job });

describe("a Bash program", () => {
  it("gets its arguments, its standard input, its neighbours and its exit code", async () => {
    const { stdout, stderr, exitCode } = await bash('printf "%s|" "$@"; cat; cat data/in.txt; exit 3', {
      args: ["a b", "*", "ü"],
      stdin: "stdin\n",
      files: { "data/in.txt": "file\n" },
    });
    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: "a b|*|ü|stdin\nfile\n",
      stderr: "",
      exitCode: 3,
    });
  });

  it("gives python3 and node their programs as heredocs", async () => {
    const { stdout, stderr } = await bash(
      "python3 - one <<'E'\nimport sys\nprint(sys.argv[1:], 'naïve')\nE\nnode - <<'E'\nconsole.log(6 * 7)\nE\n",
    );
    expect({ stdout, stderr }).toEqual({ stdout: "['one'] naïve\n42\n", stderr: "" });
  });

  it("that does not parse ends with its line and exit code 2", async () => {
    const { stderr, exitCode } = await bash("echo one\nif true; then\n");
    expect(stderr).toContain("script.sh: line 3: syntax error");
    expect(exitCode).toBe(2);
  });

  it("counts characters, not bytes", async () => {
    expect((await bash('x=ÄÖÜ; expr length "$x"; declare -l y=$x; echo "$y"')).stdout).toBe("3\näöü\n");
  });

  it("finds itself at home in the workspace", async () => {
    const { stdout } = await bash("pwd; echo ~; whoami; id -gn; hostname; date +%Z; umask");
    expect(stdout).toBe("/mnt/data\n/mnt/data\nsandbox\nsandbox\nsandbox\nUTC\n0022\n");
  });

  it("uses process substitution, /dev/stdout, here strings and runs scripts of the workspace", async () => {
    const { stdout, stderr } = await bash(
      "diff <(echo a) <(echo a) && echo same | tee /dev/stdout; printf '#!/bin/sh\\necho run\\n' >x.sh; chmod +x x.sh; ./x.sh; bc <<<'2^70'",
    );
    expect({ stdout, stderr }).toEqual({ stdout: "same\nsame\nrun\n1180591620717411303424\n", stderr: "" });
  });
});

describe("the tools that Bash sees", () => {
  const tools =
    "awk base64 basename bc bunzip2 bzip2 cat cmp column comm cp curl-free cut date dd diff dirname du env expand expr file find fmt fold free gawk git grep gunzip gzip head hexdump hostname iconv id jq join less ln ls make md5sum mkdir mktemp mv nl node nproc numfmt od openssl paste patch perl pgrep ps python python3 readlink realpath rev rm sed seq sh sha1sum sha256sum shuf sleep sort split sqlite3 stat tac tail tar tee test time-free timeout top touch tr tree truncate tsort uname uniq unxz unzip uptime wc which xargs xxd xz yes zcat zip zstd";

  it("are all there and start", async () => {
    const names = tools.split(" ").filter((name) => !name.endsWith("-free"));
    const { stdout } = await bash(
      `for t in ${names.join(" ")}; do command -v "$t" >/dev/null || echo "$t"; done`,
    );
    expect(stdout).toBe("");
  });

  it.each([
    ["jq", `echo '{"a":[1,{"b":"é"}]}' | jq -c '.a[1].b'`, '"é"\n'],
    ["awk", "printf '1 2\\n3 4\\n' | awk '{ s += $2 } END { print s }'", "6\n"],
    ["sed", "echo abc | sed -E 's/(b)/[\\1]/'", "a[b]c\n"],
    ["grep", "printf 'x1\\ny2\\n' | grep -oP '\\d(?<=2)'", "2\n"],
    ["base64", "printf hé | base64 | base64 -d", "hé"],
    ["sha256sum", "printf '' | sha256sum | cut -c1-8", "e3b0c442\n"],
    ["find and xargs", "touch a b; find . -name '[ab]' -print0 | sort -z | xargs -0 echo", "./a ./b\n"],
    ["timeout", "timeout 0.2 sleep 5; echo $?", "124\n"],
    ["sqlite3", "sqlite3 x.db 'create table t(a); insert into t values(5); select a*2 from t;'", "10\n"],
    ["file", "printf '%%PDF-1.4\\n' >x; file -b --mime-type x", "application/pdf\n"],
    ["diff and patch", "echo a >x; echo b >y; diff -u x y >p; patch -s x p; cat x", "b\n"],
    ["openssl", "printf a | openssl dgst -md5 -r | cut -c1-6", "0cc175\n"],
    ["perl", "perl -e 'print join(q(,), map { $_ * 2 } 1..3), qq(\\n)'", "2,4,6\n"],
    ["xxd", "printf AB | xxd -p", "4142\n"],
    ["ps", "ps -o comm= -p $$", "bash\n"],
    ["free", "free | grep -c Mem", "1\n"],
    ["top", "TERM=dumb top -bn1 | grep -c Tasks", "1\n"],
  ])("%s", async (_name, code, expected) => {
    const { stdout, stderr } = await bash(code);
    expect({ stdout, stderr }).toEqual({ stdout: expected, stderr: "" });
  });

  it("pack and unpack archives of every kind", async () => {
    const { stdout, stderr } = await bash(
      [
        "set -e; mkdir d; echo content >d/f",
        "for kind in z j J; do tar -c -$kind -f a.tar d; rm -r d; tar -xf a.tar; done",
        "tar --zstd -cf a.zst d; zip -qr a.zip d; rm -r d; unzip -q a.zip; rm -r d; tar -xf a.zst; cat d/f; rm -r d a.*",
      ].join("\n"),
    );
    expect({ stdout, stderr }).toEqual({ stdout: "content\n", stderr: "" });
  });

  it("keep a git history without being set up first", async () => {
    const { stdout, stderr, exitCode } = await bash(
      "git init -q r && cd r && echo a >f && git add f && git commit -qm first && git log --format='%an %s' && git branch --show-current && git status --short && cd .. && git clone -q r s && cat s/f",
    );
    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: "sandbox first\nmain\na\n",
      stderr: "",
      exitCode: 0,
    });
  });
});
