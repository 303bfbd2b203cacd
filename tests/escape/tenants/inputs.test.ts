/**
 * Files of others and what is shared between programs: foreign ids, hostile names of inputs, fields that name an environment, read-only
 * inputs, caches and package folders that a next program might believe.
 */
import type { FileRef } from "@svc/contracts";
import { deletePath, downloadPath, metadataPath, output } from "@svc/test-kit/system/api";
import { expect, test } from "vitest";
import { besiege, hostile } from "../support/hostile.ts";
import { attacker, bystander, neighbour } from "../support/running.ts";

test("files of another user or tenant are not staged, read, listed or deleted, with right ids", async () => {
  const secret = await bystander.stage("secret.txt", "of the bystander");
  const near = await neighbour.stage("near.txt", "of the neighbour");
  await besiege(async () => {
    for (const file of [secret, near]) {
      for (const kind of [undefined, "user", "agent", "skill"]) {
        const ref = {
          ...file,
          ...(kind === undefined ? {} : { kind, resource_id: "x" }),
          ...(kind === "skill" ? { version: 1 } : {}),
        };
        const answer = await attacker.tryExec({ lang: "bash", code: "cat *", files: [ref] });
        expect([kind, answer.status >= 400 && answer.status < 500]).toEqual([kind, true]);
        expect(answer.text).not.toContain("of the");
      }
      for (const [method, path] of [
        ["GET", downloadPath(file)],
        ["HEAD", downloadPath(file)],
        ["GET", metadataPath(file)],
        ["DELETE", deletePath(file)],
      ] as const) {
        const { status } = await attacker.send(method, path);
        expect([method, [403, 404].includes(status)]).toEqual([method, true]);
      }
    }
  });
  expect((await bystander.bytes(secret)).toString()).toBe("of the bystander");
  expect((await neighbour.bytes(near)).toString()).toBe("of the neighbour");
});

test("outputs of others are theirs, and a caller's own file id does not open another's session", async () => {
  const made = await bystander.exec({ lang: "bash", code: "echo result > result.txt" });
  const own = await attacker.exec({ lang: "bash", code: "echo own > own.txt" });
  const theirs = output(made, "result.txt");
  const mine = output(own, "own.txt");
  const mixed = [
    { id: theirs.id, storage_session_id: mine.storage_session_id, name: "a" },
    { id: mine.id, storage_session_id: theirs.storage_session_id, name: "b" },
    { id: theirs.id, storage_session_id: theirs.storage_session_id, name: "c" },
  ];
  await besiege(async () => {
    for (const ref of mixed) {
      const answer = await attacker.tryExec({ lang: "bash", code: "cat *", files: [ref] });
      expect([ref.name, answer.status >= 400 && answer.status < 500]).toEqual([ref.name, true]);
      expect([403, 404]).toContain((await attacker.download(ref)).status);
    }
  });
});

test("who one is is not for the request to say", async () => {
  const answer = await hostile({
    lang: "py",
    code: "import os; print(sorted(k for k in os.environ if k.startswith(('LD_', 'X_', 'PYTHONS'))), os.getuid())",
    user_id: "bystander",
    tenant_id: "ordinary",
    session_id: "A".repeat(21),
    uid: 0,
    environment: { X_EVIL: "1" },
    limits: { memory: "100gb" },
    run_memory_limit: 1e12,
    __proto__: { env: { X_EVIL: "1" } },
  });
  expect(answer.stdout).toBe("[] 1000\n");
});

test("variables of a request steer its program and nothing before it, around it or after it", async () => {
  const env = {
    LD_PRELOAD: "/mnt/data/evil.so",
    LD_AUDIT: "/mnt/data/evil.so",
    PATH: ".",
    IFS: "/",
    PYTHONSTARTUP: "/etc/passwd",
  };
  const code = `
import os
print(os.getuid(), sorted(os.environ) == sorted(set(os.environ)), os.environ["PATH"])
environ = open("/proc/1/environ", "rb").read() if os.access("/proc/1/environ", os.R_OK) else b""
print(b"evil" in environ)`;
  const answer = await hostile({ lang: "py", code, env });
  expect(answer).toMatchObject({ code: 0, stdout: "1000 True .\nFalse\n" });
  const next = await hostile({ lang: "py", code: "import os; print('LD_PRELOAD' in os.environ)" });
  expect(next.stdout).toBe("False\n");
  const refused = await attacker.tryExec({ lang: "py", code: "", env: { SANDBOX_TOOL_SOCKET: "/x" } });
  expect([refused.status, refused.refusal.error]).toEqual([400, "invalid_request"]);
});

test("arguments that look like options, names or code reach the program as they are", async () => {
  const args = [
    "-c",
    "--help",
    "",
    " ",
    "$(id)",
    "`id`",
    "; id",
    "\n",
    "'\"",
    "=",
    "LD_PRELOAD=/x",
    "\u202e",
    "é",
    "e\u0301",
    "-",
    "--",
    "*",
    "~",
    "x".repeat(99_000),
  ];
  for (const [lang, code] of [
    ["py", "import json, sys; print(json.dumps(sys.argv[1:]) == sys.stdin.read())"],
    ["bash", `python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]) == sys.stdin.read())' "$@"`],
  ] as const) {
    const expected = pythonJson(args);
    const answer = await hostile({ lang, code, args, stdin: expected });
    expect([lang, answer.stdout, answer.stderr]).toEqual([lang, "True\n", ""]);
  }
});

/** As Python's json writes it. */
const pythonJson = (values: readonly string[]) =>
  `[${values.map((value) => JSON.stringify(value).replaceAll(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)).join(", ")}]`;

test.each([
  [
    "written",
    "chmod 666 ro.txt; echo x > ro.txt; echo x >> ro.txt; truncate -s 0 ro.txt; chown sandbox ro.txt; dd if=/dev/zero of=ro.txt count=1 conv=notrunc",
  ],
  [
    "opened again by way of /proc",
    "exec 3< ro.txt; echo x > /proc/self/fd/3; echo x > /dev/fd/3; python3 -c 'import os; os.open(\"/proc/self/fd/3\", os.O_RDWR)'",
  ],
  [
    "mapped for writing",
    'python3 -c \'import mmap; mmap.mmap(open("ro.txt").fileno(), 0)[0:1] = b"x"\'; perl -e \'utime 0, 0, "ro.txt"\'',
  ],
  ["linked and changed by the other name", "ln ro.txt other; chmod 666 other; echo x > other; rm -f other"],
  ["renamed and made anew", "mv ro.txt aside; echo x > ro.txt; rm -f aside"],
  [
    "removed and made anew with the same time",
    "cp -p ro.txt c; rm -f ro.txt; sed -i s/orig/evil/ c; touch -d @0 c; mv c ro.txt",
  ],
  ["in a directory that is moved", "mkdir d; mv ro.txt d/; rm -rf d; mkdir ro.txt"],
  ["replaced by a device-like name", "rm -f ro.txt; ln -s /dev/null ro.txt"],
])("a read-only input that is %s stays what it was", async (_how, code) => {
  const ref = await attacker.stage("ro.txt", "original", { read_only: "true" });
  const answer = await hostile({ lang: "bash", code: `${code}\nexit 0`, files: [ref] });
  expect(answer.files.filter(({ name }) => name === "ro.txt")).toMatchObject([
    { ...ref, kind: "user", inherited: true },
  ]);
  expect((await attacker.bytes(ref)).toString()).toBe("original");
});

test("a changed input gets a new id, and its old one keeps the old bytes for others that use it", async () => {
  const ref: FileRef = await attacker.stage("shared.txt", "original");
  const [changed, read] = await besiege(async () => {
    const reader = attacker.exec({ lang: "bash", code: "sleep 1; cat shared.txt", files: [ref] });
    const writer = attacker.exec({ lang: "bash", code: "echo -n changed > shared.txt", files: [ref] });
    return [await writer, await reader];
  });
  expect(read.stdout).toBe("original");
  expect(output(changed, "shared.txt").modified_from?.id).toBe(ref.id);
  expect((await attacker.bytes(ref)).toString()).toBe("original");
});

test("caches and package folders that one program poisons are no other's", async () => {
  const poison = `site=$(python3 -m site --user-site)
mkdir -p $site ~/.config/matplotlib ~/node_modules/fs-extra ~/.cache /tmp/__pycache__ ~/.git
for f in usercustomize sitecustomize json random numpy; do echo 'print("poisoned")' > $site/$f.py; echo 'print("poisoned")' > ~/$f.py; echo 'print("poisoned")' > /tmp/$f.py; done
echo 'echo poisoned' | tee ~/.bashrc ~/.profile ~/.bash_profile ~/.bash_login /tmp/.bashrc > /dev/null
echo 'backend: poisoned' > ~/.config/matplotlib/matplotlibrc; echo 'console.log("poisoned")' > ~/node_modules/fs-extra/index.js
echo '[alias] x = poisoned' > ~/.gitconfig; echo 'poisoned' > ~/.npmrc; echo 'export PATH=/tmp' > ~/.bash_env
for d in /usr/lib/python3 /usr/lib/svc /usr/local/lib /var/cache /etc/profile.d /usr/lib/node_modules; do echo poisoned > $d/poisoned.pth 2> /dev/null && echo wrote $d; done
exit 0`;
  const [poisoned, ...answers] = await besiege(async () => {
    const first = await attacker.exec({ lang: "bash", code: poison });
    const next = [];
    for (let n = 0; n < 3; n++) {
      next.push(
        await bystander.exec({
          lang: "py",
          code: "import json, random, numpy\nprint(json.__file__, numpy.__file__)",
        }),
      );
      next.push(
        await bystander.exec({
          lang: "bash",
          code: "bash -l -c true; bash -i -c true 2> /dev/null; python3 -c 'import json'",
        }),
      );
      next.push(
        await bystander.exec({
          lang: "js",
          code: "try { require('fs-extra') } catch (error) { console.log(error.code) }",
        }),
      );
    }
    return [first, ...next];
  });
  expect(poisoned?.stdout).toBe("");
  for (const answer of answers) {
    expect(answer.code).toBe(0);
    expect(answer.stdout + answer.stderr).not.toContain("poisoned");
    expect(answer.stdout).not.toContain("/mnt/data");
  }
});
