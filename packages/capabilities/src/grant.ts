/**
 * Egress grants, and the handles that replace real ids inside the sandbox. A handle is valid only together with its grant:
 * both name the same grant and execution, and the grant lists what the handle points to.
 */
import { type GrantClaims, newId } from "@svc/contracts";
import { type Envelope, open, type SealKeys, seal, TokenRefused } from "./envelope.ts";

export interface Grant extends Omit<GrantClaims, "lifetime_seconds"> {
  grant_id: string;
  iat: number;
  exp: number;
}

/** What all handles contain: the grant and the execution that they belong to, and the session that they refer to. */
interface HandleBase extends Envelope {
  grant_id: string;
  exec_id: string;
  session_id: string;
}

export interface SessionHandle extends HandleBase {
  dir: "read" | "write";
}

export interface ObjectHandle extends HandleBase {
  object_id: string;
  name: string;
}

/** A new grant from claims. It is valid for `lifetime_seconds`, but at most for `maxLifetime` seconds. */
export function issueGrant(claims: GrantClaims, now: number, maxLifetime: number): Grant {
  const { lifetime_seconds, ...rest } = claims;
  return { ...rest, grant_id: newId(), iat: now, exp: now + Math.min(lifetime_seconds, maxLifetime) };
}

export function sealGrant(keys: SealKeys, grant: Grant): string {
  return seal(keys, { v: 1, typ: "grant", ...grant });
}

export function openGrant(keys: SealKeys, token: unknown, now: number): Grant {
  return open(keys, token, "grant", now) as unknown as Grant;
}

const envelopeOf = (grant: Grant) => ({
  v: 1 as const,
  iat: grant.iat,
  exp: grant.exp,
  grant_id: grant.grant_id,
  exec_id: grant.exec_id,
});

export function sealSession(keys: SealKeys, grant: Grant, sessionId: string, dir: "read" | "write"): string {
  return seal(keys, { ...envelopeOf(grant), typ: "session", session_id: sessionId, dir });
}

export function sealObject(
  keys: SealKeys,
  grant: Grant,
  sessionId: string,
  objectId: string,
  name: string,
): string {
  return seal(keys, {
    ...envelopeOf(grant),
    typ: "object",
    session_id: sessionId,
    object_id: objectId,
    name,
  });
}

/** Opens a session handle. Throws unless the grant covers the session in this direction. */
export function openSession(
  keys: SealKeys,
  grant: Grant,
  handle: unknown,
  dir: "read" | "write",
  now: number,
): SessionHandle {
  const session = open(keys, handle, "session", now) as unknown as SessionHandle;
  const covered =
    dir === "write"
      ? session.session_id === grant.output_session_id
      : grant.read_sessions.includes(session.session_id);
  if (!belongs(session, grant) || session.dir !== dir || !covered) throw new TokenRefused("scope_mismatch");
  return session;
}

/** Opens an object handle. Throws unless the grant lists the object as an input in the given session. */
export function openObject(
  keys: SealKeys,
  grant: Grant,
  session: SessionHandle,
  handle: unknown,
  now: number,
): ObjectHandle {
  const object = open(keys, handle, "object", now) as unknown as ObjectHandle;
  const enumerated = grant.input_files.some(
    (input) => input.id === object.object_id && input.session_id === object.session_id,
  );
  if (!belongs(object, grant) || object.session_id !== session.session_id || !enumerated) {
    throw new TokenRefused("scope_mismatch");
  }
  return object;
}

/** The real id behind a handle of this grant, for an object or a session. */
export function resolveHandle(keys: SealKeys, grant: Grant, handle: unknown, now: number): string {
  let resolved: HandleBase & { object_id?: string };
  try {
    resolved = open(keys, handle, "object", now) as unknown as ObjectHandle;
  } catch (error) {
    if (!(error instanceof TokenRefused && error.reason === "wrong_type")) throw error;
    resolved = open(keys, handle, "session", now) as unknown as SessionHandle;
  }
  if (!belongs(resolved, grant)) throw new TokenRefused("scope_mismatch");
  return resolved.object_id ?? resolved.session_id;
}

const belongs = (handle: HandleBase, grant: Grant) =>
  handle.grant_id === grant.grant_id && handle.exec_id === grant.exec_id;
