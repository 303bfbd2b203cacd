/** Resource URIs of stored files and of files in sessions. Pure. */
import { isId } from "@svc/contracts";

export const STORED_FILE = "svc://files/{session_id}/{id}";
export const SESSION_FILE = "svc://sessions/{id}/{+name}";

export type Address =
  | { kind: "stored"; session_id: string; id: string }
  | { kind: "session"; id: string; name: string };

export const fileUri = ({ session_id, id }: { session_id: string; id: string }): string =>
  `svc://files/${session_id}/${id}`;

export const sessionFileUri = (id: string, name: string): string =>
  `svc://sessions/${id}/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Undefined if the URI is not the address of a file. */
export function addressOf(uri: string): Address | undefined {
  const [, kind, first = "", rest = ""] = /^svc:\/\/(files|sessions)\/([^/]+)\/(.+)$/.exec(uri) ?? [];
  if (!isId(first)) return undefined;
  if (kind === "files") return isId(rest) ? { kind: "stored", session_id: first, id: rest } : undefined;
  try {
    return { kind: "session", id: first, name: rest.split("/").map(decodeURIComponent).join("/") };
  } catch {
    return undefined;
  }
}
