import { type GrantClaims, newId } from "@svc/contracts";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import {
  type Grant,
  issueGrant,
  openGrant,
  openObject,
  openSession,
  type RefusalReason,
  sealGrant,
  sealKeys,
  sealObject,
  sealSession,
  TokenRefused,
} from "../../src/index.ts";

const NOW = 1_800_000_000;
const keys = sealKeys("a-secret-of-at-least-thirty-two-bytes");
const [READ_A, READ_B, OUTPUT, FILE_A, FILE_B] = [newId(), newId(), newId(), newId(), newId()];

const claims = (change: Partial<GrantClaims> = {}): GrantClaims => ({
  exec_id: newId(),
  tenant_id: "tenant",
  user_id: "user",
  session_key: "tenant:user:user",
  input_files: [
    { id: FILE_A, session_id: READ_A, name: "a.csv" },
    { id: FILE_B, session_id: READ_B, name: "b.csv" },
  ],
  read_sessions: [READ_A, READ_B],
  output_session_id: OUTPUT,
  max_upload_bytes: 1000,
  max_output_files: 50,
  max_requests: 1000,
  max_tool_calls: 200,
  lifetime_seconds: 300,
  ...change,
});
const grantOf = (change?: Partial<GrantClaims>) => issueGrant(claims(change), NOW, 900);

const refusal = (check: () => unknown): RefusalReason | undefined => thrown(TokenRefused, check)?.reason;

describe("a grant", () => {
  it("opens to what was issued", () => {
    const grant = grantOf();
    expect(openGrant(keys, sealGrant(keys, grant), NOW)).toMatchObject(grant);
  });

  it("lives as long as asked for, but never longer than allowed", () => {
    expect(issueGrant(claims({ lifetime_seconds: 300 }), NOW, 900).exp).toBe(NOW + 300);
    expect(issueGrant(claims({ lifetime_seconds: 3000 }), NOW, 900).exp).toBe(NOW + 900);
  });

  it("has an id of its own each time", () => {
    expect(grantOf().grant_id).not.toBe(grantOf().grant_id);
    expect(grantOf().grant_id).toMatch(/^[A-Za-z0-9_-]{21}$/);
  });

  it("with 256 inputs of the longest names still opens", () => {
    const name = `${"🎉".repeat(63)}/`.repeat(4).slice(0, -1);
    const input_files = Array.from({ length: 256 }, () => ({ id: newId(), session_id: newId(), name }));
    const read_sessions = input_files.map(({ session_id }) => session_id);
    const grant = grantOf({ input_files, read_sessions });
    expect(openGrant(keys, sealGrant(keys, grant), NOW).input_files).toEqual(input_files);
  });

  it("is no handle, and no handle is a grant", () => {
    const grant = grantOf();
    const session = sealSession(keys, grant, READ_A, "read");
    expect(refusal(() => openGrant(keys, session, NOW))).toBe("wrong_type");
    expect(refusal(() => openSession(keys, grant, sealGrant(keys, grant), "read", NOW))).toBe("wrong_type");
  });
});

describe("a session handle", () => {
  const grant = grantOf();

  it.each([
    [READ_A, "read"],
    [READ_B, "read"],
    [OUTPUT, "write"],
  ] as const)("opens for a session and direction of its grant: %s, %s", (id, dir) => {
    const handle = openSession(keys, grant, sealSession(keys, grant, id, dir), dir, NOW);
    expect(handle).toMatchObject({ session_id: id, dir, grant_id: grant.grant_id, exec_id: grant.exec_id });
  });

  const refused: [string, () => string, "read" | "write"][] = [
    ["of another grant", () => sealSession(keys, grantOf(), READ_A, "read"), "read"],
    [
      "of another grant of the same execution",
      () => sealSession(keys, grantOf({ exec_id: grant.exec_id }), READ_A, "read"),
      "read",
    ],
    [
      "of another execution under the same grant id",
      () => sealSession(keys, { ...grant, exec_id: newId() }, READ_A, "read"),
      "read",
    ],
    ["of a session that the grant does not read", () => sealSession(keys, grant, newId(), "read"), "read"],
    ["to read, used to write", () => sealSession(keys, grant, READ_A, "read"), "write"],
    ["to write, used to read", () => sealSession(keys, grant, OUTPUT, "write"), "read"],
    ["to read the output session", () => sealSession(keys, grant, OUTPUT, "read"), "read"],
    ["to write an input's session", () => sealSession(keys, grant, READ_A, "write"), "write"],
  ];
  it.each(refused)("%s is out of scope", (_what, handle, dir) => {
    expect(refusal(() => openSession(keys, grant, handle(), dir, NOW))).toBe("scope_mismatch");
  });

  it("keeps its direction even where the grant both reads and writes the session", () => {
    const both = grantOf({ read_sessions: [OUTPUT] });
    const [read, write] = [sealSession(keys, both, OUTPUT, "read"), sealSession(keys, both, OUTPUT, "write")];
    expect(refusal(() => openSession(keys, both, read, "write", NOW))).toBe("scope_mismatch");
    expect(refusal(() => openSession(keys, both, write, "read", NOW))).toBe("scope_mismatch");
    expect(refusal(() => openSession(keys, both, read, "read", NOW))).toBeUndefined();
  });

  it("lapses with its grant", () => {
    const handle = sealSession(keys, grant, READ_A, "read");
    expect(refusal(() => openSession(keys, grant, handle, "read", grant.exp + 30))).toBeUndefined();
    expect(refusal(() => openSession(keys, grant, handle, "read", grant.exp + 31))).toBe("expired");
  });
});

describe("an object handle", () => {
  const grant = grantOf();
  const session = (of: Grant, id: string) =>
    openSession(keys, of, sealSession(keys, of, id, "read"), "read", NOW);
  const open = (handle: string, under = session(grant, READ_A)) =>
    refusal(() => openObject(keys, grant, under, handle, NOW));

  it("opens for an enumerated input in its session", () => {
    const handle = sealObject(keys, grant, READ_A, FILE_A, "a.csv");
    expect(openObject(keys, grant, session(grant, READ_A), handle, NOW)).toMatchObject({
      object_id: FILE_A,
      session_id: READ_A,
      name: "a.csv",
    });
  });

  const refused: [string, () => string][] = [
    ["of another grant", () => sealObject(keys, grantOf(), READ_A, FILE_A, "a.csv")],
    ["of another execution", () => sealObject(keys, { ...grant, exec_id: newId() }, READ_A, FILE_A, "a.csv")],
    ["of an object that is not enumerated", () => sealObject(keys, grant, READ_A, newId(), "a.csv")],
    ["of an input under another session", () => sealObject(keys, grant, READ_A, FILE_B, "b.csv")],
    ["of another session than the one in the path", () => sealObject(keys, grant, READ_B, FILE_B, "b.csv")],
  ];
  it.each(refused)("%s is out of scope", (_what, handle) => {
    expect(open(handle())).toBe("scope_mismatch");
  });

  it("is no session handle and the other way round", () => {
    expect(open(sealSession(keys, grant, READ_A, "read"))).toBe("wrong_type");
    const handle = sealObject(keys, grant, READ_A, FILE_A, "a.csv");
    expect(refusal(() => openSession(keys, grant, handle, "read", NOW))).toBe("wrong_type");
  });
});
