/** The state of a session beside the files of a request, and in languages that are compiled, as a worker sees it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ExecuteResponse, newId, SNAPSHOT_NAME } from "@svc/contracts";
import type { Input } from "@svc/test-kit/components/gateway";
import { afterAll, beforeAll, expect, it } from "vitest";
import { packagesWith, startSystemOfRunner } from "../support/runner.ts";

/** Its source is a shell script, which the compiler copies. */
const COMPILED = {
  ...{ language: "c", version: "1.0.0", entry: "main.c", env: {}, command: ["{build}/program"] },
  compile: {
    command: ["/bin/bash", "-c", "{ echo '#!/bin/bash'; cat {entry}; } > {build}/program"],
    env: {},
  },
};

const directory = mkdtempSync(join(tmpdir(), "svc-session-state-"));
let system: Awaited<ReturnType<typeof startSystemOfRunner>>;
let call: Awaited<ReturnType<(typeof system)["startRunner"]>>;
beforeAll(async () => {
  system = await startSystemOfRunner();
  call = await system.startRunner({
    SANDBOX_PACKAGES_DIRECTORY: packagesWith(directory, (runtimes) => [...runtimes, COMPILED]),
    SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
    SVC_PERSIST_SESSIONS: "true",
  });
});
afterAll(async () => {
  await system?.stop();
  rmSync(directory, { recursive: true, force: true });
});

interface More {
  /** Outputs of earlier runs. */
  files?: readonly (Input | undefined)[];
  inline?: object[];
}

/** A session of its own: each call is its next run, which must end well and be kept. */
function session() {
  let state: Input | undefined;
  return async (language: string, code: string, { files = [], inline = [] }: More = {}) => {
    const inputs = [...files, state].filter((input) => input !== undefined);
    const [session_id, fileId] = [newId(), newId()];
    const change = { output_session_id: session_id };
    const { payload, egressGrantToken } = await system.gateway.register(inputs, change);
    const answer = await call({
      method: "POST",
      path: "/execute",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        ...{ ...payload, language, version: "*", egress_grant: egressGrantToken },
        files: [
          { name: language === "c" ? "main.c" : "main.sh", content: code },
          ...payload.files,
          ...inline,
        ],
        persist_session: { file_id: fileId, filename: SNAPSHOT_NAME, restore: state !== undefined },
      }),
    });
    expect(answer.status, answer.bytes.toString()).toBe(200);
    const run = answer.json() as unknown as ExecuteResponse;
    expect(run).toMatchObject({
      ...{ code: 0, stderr: "", session_state_persisted: true, session_state_restore_failed: false },
    });
    if (run.session_snapshot?.unchanged === false) state = { id: fileId, session_id, name: SNAPSHOT_NAME };
    return { ...run, made: run.files.map(({ id, name }): Input => ({ id, session_id, name })) };
  };
}
const namesOf = ({ files }: Pick<ExecuteResponse, "files">) => files.map(({ name }) => name);
const LOOK = "stat -c '%n %a' charts; cat a.csv";
const SEEN = "charts 750\n1\n";

it.each(["bash", "c"])(
  "a directory that the session and the request have is that of the session: %s",
  async (language) => {
    const run = session();
    const first = await run(language, "mkdir -m 750 charts; echo 1 > a.csv");
    expect(namesOf(first)).toEqual(["a.csv", "charts/.dirkeep"]);
    const [file, dirkeep] = first.made;

    // Storage knows of the directory, by the file that is named.
    const beside = await run(language, LOOK, { files: [file] });
    expect([beside.stdout, namesOf(beside)]).toEqual([SEEN, ["a.csv"]]);
    const named = await run(language, LOOK, { files: [dirkeep] });
    expect([named.stdout, namesOf(named)]).toEqual([SEEN, ["charts/.dirkeep"]]);
    const inline = await run(language, LOOK, { inline: [{ name: "charts/.dirkeep", content: "" }] });
    expect([inline.stdout, namesOf(inline)]).toEqual([SEEN, []]);
    expect([named, inline].map(({ session_snapshot }) => session_snapshot?.unchanged)).toEqual([true, true]);

    // A new directory of the request becomes one of the session.
    await run(language, "true", { inline: [{ name: "new/.dirkeep", content: "" }] });
    expect((await run(language, `${LOOK}; ls -d new`)).stdout).toBe(`${SEEN}new\n`);
  },
);

it.each(["mkdir .build; echo mine > .build/x", "echo mine > .build"])(
  "a workspace may have what compiled programs lie in: %s",
  async (make) => {
    const run = session();
    await run("bash", make);
    for (const language of ["c", "bash"]) {
      const { stdout, files } = await run(language, "cat .build/x 2> /dev/null || cat .build");
      expect([stdout, files]).toEqual(["mine\n", []]);
    }
    await run("c", "rm -r .build; mkdir .build; echo compiled > .build/y");
    expect((await run("bash", "cat .build/y; ls -A")).stdout).toBe("compiled\n.build\nmain.sh\n");
  },
);
