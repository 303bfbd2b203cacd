/**
 * The handles of one grant, one for each real id. The masked payload and the manifest's claims use the same handles, so a holder
 * of both can compare them without learning the ids. Hashes are keyed, so the holder of a manifest cannot guess its tenant or
 * user and verify the guess.
 */
import { createHmac } from "node:crypto";
import type { ManifestScope } from "@svc/contracts";
import type { SealKeys } from "./envelope.ts";
import { type Grant, sealObject, sealSession } from "./grant.ts";

export class HandleIndex {
  /** The write handle of the output session. */
  readonly output: string;
  readonly #keys: SealKeys;
  readonly #grant: Grant;
  readonly #handles = new Map<string, string>();

  constructor(keys: SealKeys, grant: Grant) {
    this.#keys = keys;
    this.#grant = grant;
    this.output = sealSession(keys, grant, grant.output_session_id, "write");
  }

  /** The read handle of a session. */
  session(sessionId: string): string {
    return this.#once(sessionId, () => sealSession(this.#keys, this.#grant, sessionId, "read"));
  }

  object(sessionId: string, objectId: string, name: string): string {
    return this.#once(`${sessionId}/${objectId}/${name}`, () =>
      sealObject(this.#keys, this.#grant, sessionId, objectId, name),
    );
  }

  /** The key under which runners cache an object. It is the same in every grant that names the object; other grants do not reveal it. */
  copyKey(sessionId: string, objectId: string): string {
    return createHmac("sha256", this.#keys.copying).update(`${sessionId}/${objectId}`).digest("base64url");
  }

  /** The grant's claims in the form for a manifest. */
  manifestScope(): ManifestScope {
    const { exec_id, tenant_id, user_id, session_key, input_files, read_sessions, ...rest } = this.#grant;
    const { max_upload_bytes, max_output_files, max_requests, max_tool_calls } = rest;
    return {
      exec_id,
      tenant_id: this.#hash("tenant", tenant_id),
      user_id: this.#hash("user", user_id),
      session_key: this.#hash("session_key", session_key),
      input_files: input_files.map(({ id, session_id, name }) => ({
        id: this.object(session_id, id, name),
        session_id: this.session(session_id),
        name,
      })),
      read_sessions: read_sessions.map((id) => this.session(id)),
      output_session_id: this.output,
      max_upload_bytes,
      max_output_files,
      max_requests,
      max_tool_calls,
    };
  }

  #once(place: string, make: () => string): string {
    const handle = this.#handles.get(place) ?? make();
    this.#handles.set(place, handle);
    return handle;
  }

  #hash(kind: string, value: string): string {
    return createHmac("sha256", this.#keys.hashing).update(`${kind}\0${value}`).digest("base64url");
  }
}
