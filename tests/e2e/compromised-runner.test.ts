/**
 * Somebody has taken over the runner. The intruder holds its environment, its user, its place in the network, and everything of
 * the runs that live in it: grants, handles, signed requests. What was not granted to one of those runs stays closed.
 */

import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseSigningKey } from "@svc/capabilities";
import {
  GRANT_HEADER,
  INTERNAL_TOKEN_HEADER,
  NAMESPACE_HEADER,
  newId,
  ORIGINAL_FILENAME_HEADER,
  type RegisteredGrant,
} from "@svc/contracts";
import type { Answer } from "@svc/test-kit/system/api";
import { RUNNER } from "@svc/test-kit/system/guests";
import { type Run, SandboxSide, type Stored, underGrant } from "@svc/test-kit/system/sandbox-side";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";

const system = sharedSystem();
let side: SandboxSide;
/** Of two users with runs in the runner, and of one without a run. */
let mine: Stored;
let theirs: Stored;
let strange: Stored;
let myRun: Run;
let theirRun: Run;

beforeAll(async () => {
  side = new SandboxSide(system);
  mine = await side.store("t:user:alice", "mine.txt", "mine");
  theirs = await side.store("t:user:bob", "theirs.txt", "theirs");
  strange = await side.store("t:user:carol", "strange.txt", "strange");
});
beforeEach(async () => {
  myRun = await side.register("alice", [mine]);
  theirRun = await side.register("bob", [theirs]);
});
/** Status, code and reason of an answer. */
function said(answer: Answer): unknown[] {
  if (answer.status < 400) return [answer.status];
  const { error, reason, ledger_reason } = answer.json<Record<string, unknown>>();
  return [answer.status, error, reason ?? ledger_reason];
}
const MALFORMED = [400, "egress_grant_refused", "malformed"];
const OUT_OF_SCOPE = [403, "egress_grant_refused", "scope_mismatch"];
const WRONG_TYPE = [403, "egress_grant_refused", "wrong_type"];
const REVOKED = [403, "egress_ledger_refused", "revoked"];

const sessionPath = (handle: string) => `/sessions/${encodeURIComponent(handle)}/objects`;
const read = (grant: RegisteredGrant, session: string, object: string, more = {}) =>
  side.call("egress-gateway", "GET", `${sessionPath(session)}/${encodeURIComponent(object)}`, {
    headers: { ...underGrant(grant), ...more },
  });
const list = (grant: RegisteredGrant, session: string) =>
  side.call("egress-gateway", "GET", sessionPath(session), { headers: underGrant(grant) });
const write = (grant: RegisteredGrant, session: string, { id = newId(), body = "written", more = {} } = {}) =>
  side.call("egress-gateway", "PUT", `${sessionPath(session)}/${id}`, {
    headers: {
      ...underGrant(grant),
      "content-type": "text/plain",
      [ORIGINAL_FILENAME_HEADER]: "out.txt",
      ...more,
    },
    body,
  });
/** The handles of a run's one input. */
function handlesOf({ grant }: Run) {
  const [file] = grant.payload.files;
  if (file === undefined) throw new Error("the run has no input");
  return { session: file.storage_session_id, object: file.id, output: grant.payload.output_session_id };
}

/** One character of the middle is another one. */
function altered(token: string): string {
  const at = Math.floor(token.length / 2);
  return `${token.slice(0, at)}${token[at] === "A" ? "B" : "A"}${token.slice(at + 1)}`;
}

test("the granted is open: that much, and what is refused below is refused for no other reason", async () => {
  const { session, object, output } = handlesOf(myRun);
  expect((await read(myRun.grant, session, object)).text).toBe("mine");
  expect((await list(myRun.grant, session)).ok<unknown[]>()).toHaveLength(1);
  const id = newId();
  expect(said(await write(myRun.grant, output, { id }))).toEqual([200]);
  expect(await side.stored(myRun.output, id, "t:user:alice")).toBe("written");
  const answer = await side.execute(side.request(myRun, "cat mine.txt"));
  expect(answer.ok<{ stdout: string }>().stdout).toBe("mine");
});

describe("objects of other sessions", () => {
  test("cannot be read or listed by their real ids", async () => {
    const { session } = handlesOf(myRun);
    for (const other of [theirs, strange, mine]) {
      expect(said(await read(myRun.grant, other.session_id, other.id))).toEqual(MALFORMED);
      expect(said(await read(myRun.grant, session, other.id))).toEqual(MALFORMED);
      expect(said(await list(myRun.grant, other.session_id))).toEqual(MALFORMED);
    }
  });

  test("cannot be read with the handles of another run, in any mixture", async () => {
    const [my, their] = [handlesOf(myRun), handlesOf(theirRun)];
    expect(said(await read(myRun.grant, their.session, their.object))).toEqual(OUT_OF_SCOPE);
    expect(said(await read(myRun.grant, my.session, their.object))).toEqual(OUT_OF_SCOPE);
    expect(said(await read(myRun.grant, their.session, my.object))).toEqual(OUT_OF_SCOPE);
    expect(said(await list(myRun.grant, their.session))).toEqual(OUT_OF_SCOPE);
  });

  test("cannot be read by a handle in another's place", async () => {
    const { session, object, output } = handlesOf(myRun);
    const token = myRun.grant.egressGrantToken;
    expect(said(await list(myRun.grant, output))).toEqual(OUT_OF_SCOPE);
    expect(said(await read(myRun.grant, output, object))).toEqual(OUT_OF_SCOPE);
    for (const [where, what] of [
      [object, object],
      [token, object],
      [session, session],
      [session, token],
    ] as const) {
      expect(said(await read(myRun.grant, where, what))).toEqual(WRONG_TYPE);
    }
    expect(said(await list({ ...myRun.grant, egressGrantToken: session }, session))).toEqual(WRONG_TYPE);
  });

  test("cannot be read around the handles", async () => {
    const { session } = handlesOf(myRun);
    const [to, headers] = [`${theirs.session_id}/objects/${theirs.id}`, underGrant(myRun.grant)];
    for (const path of [
      `/sessions/${session}/objects/..%2f..%2f${encodeURIComponent(to)}`,
      `/sessions/${session}/../${to}`,
      `/sessions/${to}/metadata`,
      `//sessions/${to}`,
      `/sessions/${session}/objects?session_id=${theirs.session_id}&detail=normalized%26`,
    ]) {
      const answer = await side.call("egress-gateway", "GET", path, { headers });
      expect([400, 403, 404], path).toContain(answer.status);
      expect(answer.text).not.toContain("theirs");
    }
    for (const method of ["DELETE", "POST", "PATCH"]) {
      const answer = await side.call("egress-gateway", method, `/sessions/${to}`, { headers });
      expect(said(answer)).toEqual([405, "method_not_allowed", undefined]);
    }
  });
});

describe("other output sessions", () => {
  test("cannot be written by any handle but the run's own write handle", async () => {
    const [my, their] = [handlesOf(myRun), handlesOf(theirRun)];
    expect(said(await write(myRun.grant, their.output))).toEqual(OUT_OF_SCOPE);
    expect(said(await write(myRun.grant, my.session))).toEqual(OUT_OF_SCOPE);
    expect(said(await write(myRun.grant, my.object))).toEqual(WRONG_TYPE);
    for (const id of [theirRun.output, theirs.session_id, strange.session_id, myRun.output]) {
      expect(said(await write(myRun.grant, id))).toEqual(MALFORMED);
    }
  });

  test("an output is the run's user's, whatever the request says", async () => {
    const id = newId();
    const more = { [NAMESPACE_HEADER]: "t:user:carol", "x-user-id": "carol", "x-read-only": "true" };
    expect(said(await write(myRun.grant, handlesOf(myRun).output, { id, more }))).toEqual([200]);
    expect(await side.stored(myRun.output, id, "t:user:carol")).toBe(404);
    expect(await side.stored(myRun.output, id, "t:user:alice")).toBe("written");
  });

  test("an id of another's file is not written over", async () => {
    const { output } = handlesOf(myRun);
    await write(myRun.grant, output, { id: theirs.id, body: "overwritten" });
    expect(await side.stored(theirs.session_id, theirs.id, "t:user:bob")).toBe("theirs");
  });
});

describe("a grant", () => {
  test("is of no use after it was revoked, in the middle of the run", async () => {
    const { session, object, output } = handlesOf(myRun);
    expect((await read(myRun.grant, session, object)).status).toBe(200);
    const path = `/internal/egress-grants/${myRun.grant.grant_id}/revoke`;
    expect((await side.trusted(path, { reason: "cancelled" })).status).toBe(204);
    const id = newId();
    expect(said(await read(myRun.grant, session, object))).toEqual(REVOKED);
    expect(said(await list(myRun.grant, session))).toEqual(REVOKED);
    expect(said(await write(myRun.grant, output, { id }))).toEqual(REVOKED);
    expect(await side.stored(myRun.output, id, "t:user:alice")).toBe(404);
    expect((await read(theirRun.grant, handlesOf(theirRun).session, handlesOf(theirRun).object)).text).toBe(
      "theirs",
    );
  });

  test("and its handles cannot be altered", async () => {
    const { session, object, output } = handlesOf(myRun);
    const changed = { ...myRun.grant, egressGrantToken: altered(myRun.grant.egressGrantToken) };
    expect(said(await read(changed, session, object))).toEqual(MALFORMED);
    expect(said(await read(myRun.grant, altered(session), object))).toEqual(MALFORMED);
    expect(said(await read(myRun.grant, session, altered(object)))).toEqual(MALFORMED);
    expect(said(await list(myRun.grant, altered(session)))).toEqual(MALFORMED);
    expect(said(await write(myRun.grant, altered(output)))).toEqual(MALFORMED);
  });

  test("cannot be registered, revoked or exchanged: what a runner holds is no internal token", async () => {
    const environment = readFileSync(`/proc/${system.pid(RUNNER)}/environ`, "latin1").split("\0");
    const held = environment
      .map((line) => line.slice(line.indexOf("=") + 1))
      .filter((value) => /^[!-~]+$/.test(value));
    const tokens = [undefined, "", "undefined", myRun.grant.egressGrantToken, ...held];
    const { grant_id, payload } = theirRun.grant;
    for (const path of [
      "/internal/egress-grants",
      `/internal/egress-grants/${grant_id}/revoke`,
      `/internal/egress-grants/${grant_id}/restore-result`,
      "/internal/ptc-callback-token",
    ]) {
      for (const token of tokens) {
        const headers = {
          ...underGrant(myRun.grant),
          "content-type": "application/json",
          [INTERNAL_TOKEN_HEADER]: token,
          authorization: token === undefined ? undefined : `Bearer ${token}`,
        };
        const answer = await side.call("egress-gateway", "POST", path, {
          headers,
          body: JSON.stringify({ payload }),
        });
        expect([401, 404], path).toContain(answer.status);
      }
    }
    expect((await read(theirRun.grant, handlesOf(theirRun).session, handlesOf(theirRun).object)).text).toBe(
      "theirs",
    );
  });
});

describe("a manifest", () => {
  const REFUSED = (reason: string) => [403, "manifest_refused", reason];

  test("cannot be minted with what a runner holds", async () => {
    const { privateKey } = generateKeyPairSync("ed25519", {
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    const { execution_manifest, egress_grant: _g, ...body } = side.request(myRun, "id");
    const own = parseSigningKey(privateKey);
    const [header = ""] = String(execution_manifest).split(".");
    const { kid } = JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string };
    for (const key of [own, { ...own, kid }]) {
      expect(said(await side.execute(side.sign(myRun.grant, body, key)))).toEqual(REFUSED("bad_signature"));
    }
    const unsigned = { ...body, egress_grant: myRun.grant.egressGrantToken };
    expect(said(await side.execute(unsigned))).toEqual([401, "manifest_missing", undefined]);
  });

  test("of a live run fits no other body, no other grant, and no second time", async () => {
    const request = side.request(myRun, "cat mine.txt");
    const files = request.files as object[];
    const bodies = [
      { files: [{ name: "main.sh", content: "id" }, ...files.slice(1)] },
      { args: ["x"] },
      { stdin: "x" },
    ];
    for (const change of bodies) {
      const fresh = side.request(myRun, "cat mine.txt");
      expect(said(await side.execute({ ...fresh, ...change }))).toEqual(REFUSED("body_mismatch"));
    }
    const swapped = { ...side.request(myRun, "cat mine.txt"), egress_grant: theirRun.grant.egressGrantToken };
    expect(said(await side.execute(swapped))).toEqual(REFUSED("scope_mismatch"));
    expect((await side.execute(request)).status).toBe(200);
    expect(said(await side.execute(request))).toEqual(REFUSED("replayed"));
  });
});

describe("tools", () => {
  const callTool = (token: string, executionId: string, tool_name: string, more = {}) =>
    side.call("egress-gateway", "POST", "/tool-call", {
      headers: {
        "content-type": "application/json",
        "x-execution-id": executionId,
        "x-tool-call-id": newId(),
        "x-callback-token": token,
        ...more,
      },
      body: JSON.stringify({ tool_name, input: {} }),
    });

  test("cannot be called by a run that has none", async () => {
    const { egressGrantToken, executionManifestClaims } = myRun.grant;
    for (const token of ["", "x".repeat(43), egressGrantToken, handlesOf(myRun).session]) {
      const answer = await callTool(
        token,
        executionManifestClaims.exec_id,
        "search",
        underGrant(myRun.grant),
      );
      expect(["missing_headers", "egress_grant_refused"]).toContain(answer.refusal.error);
    }
  });

  test("that were not declared, and other programs' calls, are refused; a call that is allowed is there", async () => {
    const [my, their] = [await side.openTools("search"), await side.openTools("transfer_money")];
    expect(said(await callTool(my.token, my.executionId, "transfer_money"))).toEqual([
      403,
      "tool_not_declared",
      undefined,
    ]);
    expect((await callTool(my.token, their.executionId, "transfer_money")).status).toBe(401);
    expect(said(await callTool(altered(my.token), my.executionId, "search"))).toEqual(MALFORMED);
    const mixed = await callTool(my.token, my.executionId, "search", underGrant(theirRun.grant));
    expect(mixed.status).toBeGreaterThanOrEqual(400);
    const granted = callTool(my.token, my.executionId, "search");
    expect(await side.pendingTools(my.executionId)).toEqual(["search"]);
    expect(await side.pendingTools(their.executionId)).toEqual([]);
    await side.answerTools(my.executionId);
    expect((await granted).status).toBe(200);
  });

  test("give no way to files or to other grants", async () => {
    const { token, executionId } = await side.openTools("search");
    const asGrant = { ...myRun.grant, egressGrantToken: token };
    expect(said(await list(asGrant, handlesOf(myRun).session))).toEqual(WRONG_TYPE);
    expect(said(await write(asGrant, handlesOf(myRun).output))).toEqual(WRONG_TYPE);
    const minted = await side.call("egress-gateway", "POST", "/internal/ptc-callback-token", {
      headers: { "content-type": "application/json", [INTERNAL_TOKEN_HEADER]: token },
      body: JSON.stringify({ executionId, sessionId: newId(), callbackToken: "x", allowedToolNames: ["y"] }),
    });
    expect(minted.status).toBe(401);
  });
});

describe("what lies behind the gateway", () => {
  test.each(["file-server", "tool-call-server"] as const)(
    "the %s answers nobody without the internal token",
    async (part) => {
      const { session_id, id } = theirs;
      const object = `/sessions/${session_id}/objects/${id}`;
      const routes: [method: string, path: string][] = [
        ["GET", object],
        ["HEAD", object],
        ["PUT", object],
        ["DELETE", object],
        ["GET", `${object}/metadata`],
        ["GET", `${object}/record`],
        ["GET", `/sessions/${session_id}/objects`],
        ["POST", "/inputs"],
        ["POST", "/tool-call"],
        ["POST", "/tool-calls"],
        ["POST", "/sessions"],
      ];
      for (const [method, path] of routes) {
        for (const token of [undefined, myRun.grant.egressGrantToken, "x".repeat(64)]) {
          const headers = {
            ...underGrant(theirRun.grant),
            [NAMESPACE_HEADER]: "t:user:bob",
            [ORIGINAL_FILENAME_HEADER]: "a",
            "content-type": "text/plain",
            [INTERNAL_TOKEN_HEADER]: token,
          };
          const { status } = await side.call(part, method, path, { headers });
          const routed = part === "file-server" && path.includes("/objects");
          expect(routed ? [401] : [401, 404, 405], `${method} ${path}`).toContain(status);
        }
      }
      expect(await side.stored(session_id, id, "t:user:bob")).toBe("theirs");
    },
  );
});

test("the grant header of the tests is the one that the gateway reads", async () => {
  const { session, object } = handlesOf(myRun);
  expect(said(await read(myRun.grant, session, object, { [GRANT_HEADER]: "" }))).toEqual(MALFORMED);
});
