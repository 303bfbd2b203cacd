/** Access tokens, grants, handles and manifests: altered in each byte, of another kind, used by others, too often or too late. */

import { createPrivateKey } from "node:crypto";
import { GRANT_HEADER, newId, ORIGINAL_FILENAME_HEADER, type RegisteredGrant } from "@svc/contracts";
import { inputOf, mintHmac, newSigner, rightClaims, signerOf } from "@svc/test-kit/credentials/signer";
import { type Answer, Api, downloadPath, metadataPath } from "@svc/test-kit/system/api";
import { type Run, SandboxSide, type Stored } from "@svc/test-kit/system/sandbox-side";
import { beforeAll, describe, expect, test } from "vitest";
import { besiege } from "../support/hostile.ts";
import { attacker, bystander, principal, running, system } from "../support/running.ts";

/** Each of them is a connection that stays open for a while. */
const AT_ONCE = 10;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** The token with another letter at each place, one after the other. */
function* altered(token: string): Generator<string> {
  for (let at = 0; at < token.length; at++) {
    const letter = token[at] ?? "";
    // The highest bit of a letter's six: never one of those that the last letter does not use.
    const other = LETTERS[(LETTERS.indexOf(letter) + 32) % 64] ?? "A";
    yield `${token.slice(0, at)}${letter === other ? "B" : other}${token.slice(at + 1)}`;
  }
}

describe("access tokens", () => {
  const signer = signerOf(createPrivateKey(running.signingKey));
  const identity = { sub: "attacker", tenant_id: "hostile" };
  const api = new Api(running.tokenUrl);
  const ask = (token: string) =>
    api.send("GET", `/files/${newId()}`, { headers: { authorization: `Bearer ${token}` } });

  test("that are right open the door: what is refused below is refused for no other reason", async () => {
    expect((await ask(signer.mint({ claims: identity }))).status).not.toBe(401);
  });

  test("altered in any one byte open nothing", async () => {
    const token = signer.mint({ claims: identity });
    const open: string[] = [];
    await besiege(async () => {
      for (const text of altered(token)) if ((await ask(text)).status !== 401) open.push(text);
    });
    expect(open).toEqual([]);
  });

  const now = Math.floor(Date.now() / 1000);
  test.each<[string, () => string]>([
    [
      "of no algorithm",
      () => `${inputOf({ alg: "none", typ: "JWT", kid: "k1" }, { ...rightClaims(), ...identity })}.`,
    ],
    ["of no algorithm, with a signature", () => signer.mint({ header: { alg: "none" }, claims: identity })],
    ["signed with the public key as a secret", () => mintHmac(signer.pem, { claims: identity })],
    ["of another signer", () => newSigner().mint({ claims: identity })],
    [
      "of another signer, who brings a key",
      () => {
        const other = newSigner();
        return other.mint({ header: { jwk: other.publicKey.export({ format: "jwk" }) }, claims: identity });
      },
    ],
    ["of a key of another name", () => signer.mint({ header: { kid: "k2" }, claims: identity })],
    [
      "whose key's name is a path",
      () => signer.mint({ header: { kid: "../../../proc/self/environ" }, claims: identity }),
    ],
    [
      "whose key's name is an object's own",
      () => signer.mint({ header: { kid: "__proto__" }, claims: identity }),
    ],
    [
      "whose key is somewhere else",
      () => signer.mint({ header: { kid: "x", jku: "http://127.0.0.1:1/keys" }, claims: identity }),
    ],
    ["for another service", () => signer.mint({ claims: { ...identity, aud: "other" } })],
    [
      "for this service, with the issuer of another",
      () => signer.mint({ claims: { ...identity, iss: "other" } }),
    ],
    [
      "that have lapsed",
      () => signer.mint({ claims: { ...identity, iat: now - 1000, nbf: now - 1000, exp: now - 400 } }),
    ],
    [
      "of the future",
      () => signer.mint({ claims: { ...identity, iat: now + 1000, nbf: now + 1000, exp: now + 1300 } }),
    ],
    ["without an end", () => signer.mint({ claims: { ...identity, exp: undefined } })],
    ["that live for ever", () => signer.mint({ claims: { ...identity, exp: 10 ** 12 } })],
    ["without a user", () => signer.mint({ claims: { tenant_id: "hostile", sub: undefined } })],
    ["whose user is none", () => signer.mint({ claims: { ...identity, sub: "" } })],
    ["whose user is an object", () => signer.mint({ claims: { ...identity, sub: { toString: "x" } } })],
    [
      "with a critical header that nobody knows",
      () => signer.mint({ header: { crit: ["x"], x: 1 }, claims: identity }),
    ],
  ])("%s open nothing", async (_name, token) => {
    const answer = await ask(token());
    expect([answer.status, answer.refusal.error]).toEqual([401, "unauthorized"]);
  });

  test("of users whose names read like another's place open their own files alone", async () => {
    const identities = [
      { sub: "b", tenant_id: "x:user:a" },
      { sub: "a:user:b", tenant_id: "x" },
      { sub: "b", tenant_id: "x%3Auser%3Aa" },
      { sub: "../b", tenant_id: "x" },
      { sub: "b", tenant_id: "x:user:a/../x:user:a" },
      { sub: "B", tenant_id: "x:user:a" },
      { sub: "b ", tenant_id: "x:user:a" },
    ];
    const callers = identities.map(principal);
    const files = await Promise.all(callers.map((caller) => caller.stage("own.txt", "own")));
    for (const [owner, file] of files.entries()) {
      const seen = await Promise.all(callers.map(async (caller) => (await caller.download(file)).status));
      expect(seen).toEqual(callers.map((_, at) => (at === owner ? 200 : 404)));
    }
  });

  test("of another user open that user's files, and nobody else's", async () => {
    const file = await bystander.stage("theirs.txt", "theirs");
    for (const path of [downloadPath(file), metadataPath(file)]) {
      expect((await bystander.send("GET", path)).status).toBe(200);
      const answer = await attacker.send("GET", path);
      expect([answer.status, answer.refusal.error]).toEqual([404, "file_not_found"]);
    }
    const used = await attacker.tryExec({ lang: "bash", code: "cat theirs.txt", files: [file] });
    expect([used.status, used.refusal.error]).toEqual([403, "file_reference_denied"]);
  });
});

describe("grants, handles and manifests", () => {
  const side = new SandboxSide(system);
  let mine: Stored;
  let my: Run;
  const said = (answer: Answer) => {
    const { error, reason, ledger_reason } = answer.json<Record<string, string>>();
    return answer.status < 400 ? [answer.status] : [answer.status, error, reason ?? ledger_reason];
  };
  const path = (session: string, object: string) =>
    `/sessions/${encodeURIComponent(session)}/objects/${encodeURIComponent(object)}`;
  const read = (grant: string, session: string, object: string) =>
    side.call("egress-gateway", "GET", path(session, object), { headers: { [GRANT_HEADER]: grant } });
  const write = (
    { egressGrantToken, payload }: RegisteredGrant,
    body = "written",
    session = payload.output_session_id,
  ) =>
    side.call("egress-gateway", "PUT", path(session, newId()), {
      headers: {
        [GRANT_HEADER]: egressGrantToken,
        "content-type": "text/plain",
        [ORIGINAL_FILENAME_HEADER]: "out.txt",
      },
      body,
    });
  const handles = ({ grant }: Run) => {
    const [file] = grant.payload.files;
    if (file === undefined) throw new Error("the run has no input");
    return { token: grant.egressGrantToken, session: file.storage_session_id, object: file.id };
  };
  const register = async (budgets: Record<string, number>) => {
    const output = newId();
    const claims = {
      exec_id: newId(),
      tenant_id: "t",
      user_id: "mallory",
      session_key: "t:user:mallory",
      input_files: [mine],
      read_sessions: [mine.session_id],
      output_session_id: output,
      max_upload_bytes: 1_000_000,
      max_output_files: 50,
      max_requests: 1000,
      max_tool_calls: 200,
      lifetime_seconds: 300,
      ...budgets,
    };
    const payload = {
      session_id: newId(),
      output_session_id: output,
      files: [{ id: mine.id, storage_session_id: mine.session_id, name: mine.name }],
    };
    const answer = await side.trusted("/internal/egress-grants", { payload, claims });
    if (answer.status !== 201) throw new Error(answer.text);
    return { grant: answer.json<RegisteredGrant>(), output };
  };
  const race = async (count: number, call: () => Promise<Answer>) => {
    const answers = await Promise.all(Array.from({ length: count }, call));
    return answers.filter(({ status }) => status === 200).length;
  };

  beforeAll(async () => {
    mine = await side.store("t:user:mallory", "mine.txt", "mine");
    my = await side.register("mallory", [mine]);
  });

  test("that are right are good: what is refused below is refused for no other reason", async () => {
    const { token, session, object } = handles(my);
    expect((await read(token, session, object)).text).toBe("mine");
    expect((await write(my.grant)).status).toBe(200);
  });

  test.each(["token", "session", "object"] as const)(
    "altered in any one byte of the %s open nothing",
    async (which) => {
      const right = handles(my);
      const open: string[] = [];
      await besiege(async () => {
        for (const text of altered(right[which])) {
          const { token, session, object }: typeof right = { ...right, [which]: text };
          const answer = await read(token, session, object);
          if (answer.status < 400 || answer.status >= 500) open.push(`${answer.status} ${text}`);
        }
      });
      expect(open).toEqual([]);
    },
  );

  test("a manifest altered in any one byte starts nothing", async () => {
    const { execution_manifest, ...request } = side.request(my, "echo ran");
    const started: string[] = [];
    for (const text of altered(String(execution_manifest))) {
      const answer = await side.execute({ ...request, execution_manifest: text });
      if (answer.status !== 400 && answer.status !== 403)
        started.push(`${answer.status} ${answer.text.slice(0, 100)}`);
    }
    expect(started).toEqual([]);
    expect((await side.execute({ ...request, execution_manifest })).status).toBe(200);
  });

  test("of one kind are of no use as another", async () => {
    const { token, session, object } = handles(my);
    const { token: callback } = await side.openTools("search");
    const manifest = String(side.request(my, "true").execution_manifest);
    const access = signerOf(createPrivateKey(running.signingKey)).mint();
    const kinds = { session, object, output: my.grant.payload.output_session_id, manifest, access };
    for (const [kind, other] of Object.entries(kinds)) {
      expect([kind, (await read(other, session, object)).status >= 400]).toEqual([kind, true]);
    }
    for (const [kind, other] of Object.entries({ token, object, manifest, callback, access })) {
      expect([kind, (await read(token, other, object)).status >= 400]).toEqual([kind, true]);
    }
    const api = new Api(running.tokenUrl);
    for (const other of [token, session, callback, manifest]) {
      const answer = await api.send("GET", `/files/${newId()}`, {
        headers: { authorization: `Bearer ${other}` },
      });
      expect(answer.status).toBe(401);
    }
    const body = side.request(my, "true");
    for (const other of [token, access, callback]) {
      const answer = await side.execute({ ...body, execution_manifest: other });
      expect([400, 403]).toContain(answer.status);
    }
  });

  test("budgets hold to the last request, file and byte when many spend them at once", async () => {
    const requests = await register({ max_requests: 4 });
    const { token, session, object } = handles(requests);
    const files = await register({ max_output_files: 3 });
    const bytes = await register({ max_upload_bytes: 300 });
    await besiege(async () => {
      expect(await race(AT_ONCE, () => read(token, session, object))).toBe(4);
      expect(await race(AT_ONCE, () => write(files.grant))).toBe(3);
      expect(await race(AT_ONCE, () => write(bytes.grant, "x".repeat(90)))).toBe(3);
    });
    expect(said(await read(token, session, object))).toEqual([
      403,
      "egress_ledger_refused",
      "request_budget",
    ]);
    expect(said(await write(files.grant))).toEqual([403, "egress_ledger_refused", "output_files"]);
  });

  test("a grant that is revoked in the middle of its use is refused from then on, whatever the caller", async () => {
    const run = await register({});
    const { token, session, object } = handles(run);
    let isRevoked = false;
    let late = 0;
    const reader = async () => {
      for (let n = 0; n < 20; n++) {
        const began = isRevoked;
        const answer = await read(token, session, object);
        if (began && answer.status === 200) late++;
      }
    };
    const readers = Array.from({ length: 10 }, reader);
    const revoked = await side.trusted(`/internal/egress-grants/${run.grant.grant_id}/revoke`, {
      reason: "cancelled",
    });
    isRevoked = true;
    expect(revoked.status).toBe(204);
    await Promise.all(readers);
    expect(late).toBe(0);
    expect(said(await write(run.grant))).toEqual([403, "egress_ledger_refused", "revoked"]);
  });

  test("a manifest is good once, among many who use it at once", async () => {
    const request = side.request(await side.register("mallory", [mine]), "cat mine.txt");
    expect(await race(AT_ONCE, () => side.execute(request))).toBe(1);
  });

  test("what the request of a signed run asks for beyond the limits is not given", async () => {
    const wishes = { run_timeout: 10 ** 15, run_memory_limit: 10 ** 15 };
    const run = await side.register("mallory", [mine]);
    const { execution_manifest: _, egress_grant: __, ...body } = side.request(run, "head -1 /proc/meminfo");
    const answer = await side.execute(side.resign(run, { ...body, ...wishes }));
    expect(answer.ok<{ stdout: string }>().stdout).toMatch(/^MemTotal:\s+524288 kB\n$/);
  });
});
