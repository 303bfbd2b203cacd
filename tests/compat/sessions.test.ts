/** Programs of a session in a language that is compiled: the compiler and the program find the session's files. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({
    env: { ...OPEN_LIMITS, SVC_LANGUAGES: "all", SVC_PERSIST_SESSIONS: "true" },
  });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

test("a program that does not compile leaves the state as it is; the next one is made with it and changes it", async () => {
  const run = (lang: string, code: string) => api.exec({ lang, code, runtime_session_hint: "compiled" });
  await run("bash", "echo '#define N 7' > n.h");
  const wrong = await run("c", '#include "n.h"\nint main( {');
  expect(wrong).toMatchObject({
    status: "CE",
    session_state_persisted: false,
    session_state_restore_failed: false,
  });
  expect(wrong.stderr).not.toContain("[sandbox] Session");
  const code =
    '#include <stdlib.h>\n#include "n.h"\nint main(void) { system("echo 8 > made; ls -A"); return N; }';
  const right = await run("c", code);
  expect(right).toMatchObject({
    code: 7,
    stdout: expect.stringMatching(/^\.build-[\w-]{21}\nmade\nmain\.c\nn\.h\n$/),
    session_state_persisted: true,
  });
  expect((await run("bash", "ls -A; cat made")).stdout).toBe("made\nn.h\nscript.sh\n8\n");
});
