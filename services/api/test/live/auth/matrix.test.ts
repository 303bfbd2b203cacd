/** Who may use whose files: every caller against every owner, on every route that names a file. */
import { newId } from "@svc/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FORM_TYPE, formBytes } from "../../support/file-api.ts";
import { type IdentityApi, startIdentityApi } from "../../support/identity-api.ts";

const CALLERS = {
  alice: { tenant_id: "t1", sub: "alice" },
  bob: { tenant_id: "t1", sub: "bob" },
  namesake: { tenant_id: "t2", sub: "alice" },
  forger: { tenant_id: "t1:user:alice", sub: "x" },
} as const;
type CallerName = keyof typeof CALLERS;

interface Owner {
  kind: "user" | "agent" | "skill";
  id?: string;
  version?: number;
}
const OWNERS: Record<string, { owner: Owner; by: CallerName; allowed: readonly CallerName[] }> = {
  "alice's own": { owner: { kind: "user" }, by: "alice", allowed: ["alice"] },
  "the namesake's own": { owner: { kind: "user" }, by: "namesake", allowed: ["namesake"] },
  "an agent's of t1": { owner: { kind: "agent", id: "a1" }, by: "alice", allowed: ["alice", "bob"] },
  "an agent's of t2": { owner: { kind: "agent", id: "a1" }, by: "namesake", allowed: ["namesake"] },
  "a skill's of t1": {
    owner: { kind: "skill", id: "s1", version: 2 },
    by: "bob",
    allowed: ["alice", "bob"],
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
beforeAll(async () => {
  api = await startIdentityApi();
});
afterAll(() => api?.stop());

const tokens = new Map<CallerName, string>();
function as(caller: CallerName): Record<string, string> {
  const token = tokens.get(caller) ?? api.signer.mint({ claims: CALLERS[caller] });
  tokens.set(caller, token);
  return { authorization: `Bearer ${token}` };
}

interface FileId {
  session: string;
  id: string;
}

async function upload(caller: CallerName, owner: Owner): Promise<FileId> {
  const fields = Object.entries(owner).map(([name, value]) => ({ name, value: String(value) }));
  const answer = await fetch(`${api.url}/v1/upload`, {
    method: "POST",
    headers: { "content-type": FORM_TYPE, ...as(caller) },
    body: formBytes([...fields, { filename: "f.txt", body: "secret" }]),
  });
  expect(answer.status).toBe(200);
  const body = (await answer.json()) as { storage_session_id: string; files: { id: string }[] };
  return { session: body.storage_session_id, id: body.files[0]?.id ?? "" };
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
  reference: (caller, file, owner) =>
    fetch(`${api.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...as(caller) },
      body: JSON.stringify({
        lang: "py",
        code: "",
        files: [
          {
            id: file.id,
            storage_session_id: file.session,
            name: "f",
            kind: owner.kind,
            resource_id: owner.id,
            version: owner.version,
          },
        ],
      }),
    }),
  delete: get(({ session, id }) => `files/${session}/${id}`, "DELETE"),
};

/** Headers that differ in any two answers: what is left of the caller's own window is no news of a file. */
const MOVING = ["date", "x-request-id", "ratelimit-remaining", "ratelimit-reset"];

/** Everything of an answer that a caller can see, without what differs in any two answers. */
async function visible(answer: Response) {
  const id = answer.headers.get("x-request-id");
  const headers = [...answer.headers].filter(([name]) => !MOVING.includes(name));
  const body = (await answer.text()).replaceAll(id ?? "-", "<id>");
  return { status: answer.status, headers, body };
}

const sameOwner = (a: Owner, b: Owner) =>
  a.kind === b.kind && (a.kind === "user" || (a.id === b.id && a.version === b.version));

describe.each(Object.keys(ROUTES))("%s", (name) => {
  const route = ROUTES[name] as Route;
  test.each(Object.entries(OWNERS))("of %s file", async (_title, { owner, by, allowed }) => {
    let file = await upload(by, owner);
    for (const caller of Object.keys(CALLERS) as CallerName[]) {
      for (const claim of CLAIMS) {
        const answer = await visible(await route(caller, file, claim));
        if (allowed.includes(caller) && sameOwner(claim, owner)) {
          expect([caller, claim, answer.status]).toEqual([caller, claim, 200]);
          if (name === "delete") file = await upload(by, owner);
        } else {
          const unknown = { session: newId(), id: newId() };
          expect([caller, claim, answer.status]).toEqual([caller, claim, name === "reference" ? 403 : 404]);
          expect(answer).toEqual(await visible(await route(caller, unknown, claim)));
        }
      }
    }
    const still = await ROUTES.download?.(by, file, owner);
    expect(await still?.text()).toBe("secret");
  });
});

test("an execution runs for its caller, whatever its body and headers say", async () => {
  api.ran.length = 0;
  const answer = await fetch(`${api.url}/v1/exec?user_id=bob`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-id": "bob",
      "x-user-id": "bob",
      "x-api-key": "bob",
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
