/** Who may use whose files: every caller against every owner, on every route that names a file. */
import { newId } from "@svc/contracts";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FORM_TYPE, formBytes } from "../../support/file-api.ts";
import { type IdentityApi, startIdentityApi } from "../../support/identity-api.ts";

/** By token where nothing else is said. */
const CALLERS = {
  alice: { tenant_id: "t1", sub: "alice" },
  bob: { tenant_id: "t1", sub: "bob" },
  namesake: { tenant_id: "t2", sub: "alice" },
  forger: { tenant_id: "t1:user:alice", sub: "x" },
  "alice by API key": { tenant_id: "t1", sub: "alice" },
} as const;
type CallerName = keyof typeof CALLERS;
const API_KEYS: Partial<Record<CallerName, string>> = { "alice by API key": newApiKey() };
const ALICE = ["alice", "alice by API key"] as const;

interface Owner {
  kind: "user" | "agent" | "skill";
  id?: string;
  version?: number;
}
const OWNERS: Record<string, { owner: Owner; by: CallerName; allowed: readonly CallerName[] }> = {
  "alice's own": { owner: { kind: "user" }, by: "alice", allowed: ALICE },
  "the namesake's own": { owner: { kind: "user" }, by: "namesake", allowed: ["namesake"] },
  "an agent's of t1": {
    owner: { kind: "agent", id: "a1" },
    by: "alice by API key",
    allowed: [...ALICE, "bob"],
  },
  "an agent's of t2": { owner: { kind: "agent", id: "a1" }, by: "namesake", allowed: ["namesake"] },
  "a skill's of t1": {
    owner: { kind: "skill", id: "s1", version: 2 },
    by: "bob",
    allowed: [...ALICE, "bob"],
  },
};
/** What a caller may name besides the right owner of a file. */
const CLAIMS: readonly Owner[] = [
  { kind: "user" },
  { kind: "user", id: "alice" },
  { kind: "agent", id: "a1" },
  { kind: "agent", id: "alice" },
  { kind: "agent", id: "s1" },
  { kind: "skill", id: "s1", version: 2 },
  { kind: "skill", id: "s1", version: 3 },
  { kind: "skill", id: "a1", version: 2 },
];

let api: IdentityApi;
const keysFile = apiKeysFile();
beforeAll(async () => {
  const records = Object.entries(API_KEYS).map(([name, key]) => {
    const { tenant_id, sub } = CALLERS[name as CallerName];
    return apiKeyRecord(key, { tenant: tenant_id, user: sub });
  });
  keysFile.put(records);
  api = await startIdentityApi({ SVC_API_KEYS_FILE: keysFile.path });
});
afterAll(async () => {
  await api?.stop();
  keysFile.remove();
});

const tokens = new Map<CallerName, string>();
function as(caller: CallerName): Record<string, string> {
  const key = API_KEYS[caller];
  if (key !== undefined) return { "x-api-key": key };
  const token = tokens.get(caller) ?? api.signer.mint({ claims: CALLERS[caller] });
  tokens.set(caller, token);
  return { authorization: `Bearer ${token}` };
}

interface FileId {
  session: string;
  id: string;
}

async function upload(
  caller: CallerName,
  owner: Owner,
  path: "upload" | "upload/batch" = "upload",
  more: Readonly<Record<string, string>> = {},
): Promise<FileId> {
  const fields = Object.entries({ ...owner, ...more }).map(([name, value]) => ({
    name,
    value: String(value),
  }));
  const answer = await fetch(`${api.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": FORM_TYPE, ...as(caller) },
    body: formBytes([...fields, { filename: "f.txt", body: "secret" }]),
  });
  expect(answer.status).toBe(200);
  const body = (await answer.json()) as {
    storage_session_id: string;
    files: { id?: string; fileId?: string }[];
  };
  return { session: body.storage_session_id, id: body.files[0]?.id ?? body.files[0]?.fileId ?? "" };
}

const query = (owner: Owner) =>
  Object.entries(owner)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");

type Route = (caller: CallerName, file: FileId, owner: Owner) => Promise<Response>;
const get =
  (path: (file: FileId) => string, method = "GET"): Route =>
  (caller, file, owner) =>
    fetch(`${api.url}/v1/${path(file)}?${query(owner)}`, { method, headers: as(caller) });
const ROUTES: Record<string, Route> = {
  download: get(({ session, id }) => `download/${session}/${id}`),
  head: get(({ session, id }) => `download/${session}/${id}`, "HEAD"),
  metadata: get(({ session, id }) => `sessions/${session}/objects/${id}`),
  list: get(({ session }) => `files/${session}`),
  reference: (caller, file, owner) => reference(caller, [[file, owner]]),
  delete: get(({ session, id }) => `files/${session}/${id}`, "DELETE"),
};

function reference(
  caller: CallerName,
  files: readonly (readonly [FileId, Owner])[],
  more: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${api.url}/v1/exec`, {
    method: "POST",
    headers: { "content-type": "application/json", ...as(caller), ...more },
    body: JSON.stringify({
      lang: "py",
      code: "",
      files: files.map(([file, owner], at) => ({
        id: file.id,
        storage_session_id: file.session,
        name: `f${at}`,
        kind: owner.kind,
        resource_id: owner.id,
        version: owner.version,
      })),
    }),
  });
}

/** Headers that differ in any two answers: the rest of the caller's own window is no news of a file. */
const MOVING = ["date", "x-request-id", "ratelimit-remaining", "ratelimit-reset"];

/** Everything of an answer that a caller can see, without what differs in any two answers. */
async function visible(answer: Response) {
  const id = answer.headers.get("x-request-id");
  const headers = [...answer.headers].filter(([name]) => !MOVING.includes(name));
  const body = (await answer.text()).replaceAll(id ?? "-", "<id>");
  return { status: answer.status, headers, body };
}

const isSame = (one: CallerName, other: CallerName) =>
  CALLERS[one].tenant_id === CALLERS[other].tenant_id && CALLERS[one].sub === CALLERS[other].sub;

const sameOwner = (a: Owner, b: Owner) =>
  a.kind === b.kind && (a.kind === "user" || (a.id === b.id && a.version === b.version));

describe.each(Object.keys(ROUTES))("%s", (name) => {
  const route = ROUTES[name] as Route;
  /** What a caller sees of a file that nobody has, by caller and claim: the same whosever file it is compared with. */
  const ofUnknown = new Map<string, ReturnType<typeof visible>>();
  const unknown = (caller: CallerName, claim: Owner) => {
    const key = `${caller} ${query(claim)}`;
    const seen = ofUnknown.get(key) ?? route(caller, { session: newId(), id: newId() }, claim).then(visible);
    ofUnknown.set(key, seen);
    return seen;
  };
  test.each(Object.entries(OWNERS))("of %s file", async (_title, { owner, by, allowed }) => {
    let file = await upload(by, owner);
    for (const caller of Object.keys(CALLERS) as CallerName[]) {
      for (const claim of CLAIMS) {
        const answer = await visible(await route(caller, file, claim));
        if (allowed.includes(caller) && sameOwner(claim, owner)) {
          expect([caller, claim, answer.status]).toEqual([caller, claim, 200]);
          if (name === "delete") file = await upload(by, owner);
        } else {
          expect([caller, claim, answer.status]).toEqual([caller, claim, name === "reference" ? 403 : 404]);
          expect(answer).toEqual(await unknown(caller, claim));
        }
      }
    }
    const still = await ROUTES.download?.(by, file, owner);
    expect(await still?.text()).toBe("secret");
  });
});

test("a second credential is no way to be two callers: the request is refused", async () => {
  api.ran.length = 0;
  for (const more of [{ "x-api-key": API_KEYS["alice by API key"] ?? "" }, { "x-api-key": "bob" }]) {
    expect((await reference("alice", [], more)).status).toBe(401);
  }
  expect(api.ran).toEqual([]);
});

test("an execution runs for its caller, whatever its body and headers say", async () => {
  api.ran.length = 0;
  const answer = await fetch(`${api.url}/v1/exec?user_id=bob`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-id": "bob",
      "x-user-id": "bob",
      "x-tenant-id": "t2",
      ...as("alice"),
    },
    body: JSON.stringify({
      lang: "py",
      code: "",
      user_id: "bob",
      tenant_id: "t2",
      principal: { tenantId: "t2", userId: "bob" },
    }),
  });
  expect(answer.status).toBe(200);
  expect(api.ran).toEqual([
    { principal: { tenantId: "t1", userId: "alice" }, output_namespace: "t1:user:alice" },
  ]);
});

describe.each(["upload", "upload/batch"] as const)("%s", (path) => {
  test.each(Object.keys(CALLERS) as CallerName[])(
    "by %s is the caller's own, whatever the form says",
    async (caller) => {
      const said = {
        session_id: newId(),
        storage_session_id: newId(),
        user_id: "bob",
        tenant_id: "t2",
        namespace: "t2:user:alice",
        "X-SVC-Namespace": "t2:user:alice",
      };
      const file = await upload(caller, { kind: "user", id: "bob" }, path, said);
      for (const reader of Object.keys(CALLERS) as CallerName[]) {
        const answer = await ROUTES.download?.(reader, file, { kind: "user" });
        expect([reader, answer?.status]).toEqual([reader, isSame(reader, caller) ? 200 : 404]);
      }
      expect(file.session).not.toBe(said.storage_session_id);
    },
  );

  test("under the name of another tenant's agent or skill makes nothing of theirs", async () => {
    for (const owner of [
      { kind: "agent", id: "a1" },
      { kind: "skill", id: "s1", version: 2 },
    ] as const) {
      const [ours, theirs] = [await upload("alice", owner, path), await upload("namesake", owner, path)];
      for (const [caller, file, status] of [
        ["alice", ours, 200],
        ["alice", theirs, 404],
        ["namesake", ours, 404],
        ["namesake", theirs, 200],
      ] as const) {
        expect((await ROUTES.download?.(caller, file, owner))?.status).toBe(status);
      }
    }
  });
});

test("outputs are the caller's own, also of runs over files of agents and skills", async () => {
  const agent = { kind: "agent", id: "a1" } as const;
  const skill = { kind: "skill", id: "s1", version: 2 } as const;
  const files = [
    [await upload("alice", agent), agent],
    [await upload("alice", skill), skill],
  ] as const;
  api.ran.length = 0;
  for (const caller of ["alice", "bob"] as const) expect((await reference(caller, files)).status).toBe(200);
  expect(api.ran.map(({ output_namespace }) => output_namespace)).toEqual(["t1:user:alice", "t1:user:bob"]);
});

test("one file of another user among the caller's own refuses the whole request, and nothing runs", async () => {
  const own = { kind: "user" } as const;
  const [mine, bobs] = [await upload("alice", own), await upload("bob", own)];
  api.ran.length = 0;
  for (const files of [
    [
      [mine, own],
      [bobs, own],
    ],
    [
      [bobs, own],
      [mine, own],
    ],
  ] as const) {
    const answer = await reference("alice", files);
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      403,
      "file_reference_denied",
    ]);
  }
  expect(api.ran).toEqual([]);
});

test("a key of repetition is its caller's own: nobody gets another's answer by it", async () => {
  const key = { "idempotency-key": newId() };
  api.ran.length = 0;
  const others = Object.keys(CALLERS).filter((name) => !Object.hasOwn(API_KEYS, name)) as CallerName[];
  for (const caller of others) {
    const answer = await reference(caller, [], key);
    expect([caller, answer.status, answer.headers.get("idempotency-replayed")]).toEqual([caller, 200, null]);
  }
  expect(new Set(api.ran.map(({ output_namespace }) => output_namespace)).size).toBe(others.length);
  // A caller is the same one whatever it proves that with.
  for (const caller of ALICE) {
    expect((await reference(caller, [], key)).headers.get("idempotency-replayed")).toBe("true");
  }
});
